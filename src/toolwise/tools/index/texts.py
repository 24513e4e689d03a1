"""The passages of an index by their number, read from where they lie.

A file is opened for each passage (some 20 microseconds): an index of thousands of shards would otherwise hold as many
descriptors, and a process has often no more than 1,024.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from pathlib import Path

import numpy as np

from toolwise.core import jsonio
from toolwise.core.errors import Corrupt, ToolwiseError
from toolwise.tools.index.manifest import MATRIX, STARTS, Manifest, passages_file
from toolwise.tools.index.passages import Passage


class Texts:
    """Any number of threads may read."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._folder = folder.absolute()  # a process may change its own
        self._starts = np.asarray(np.load(folder / MATRIX / STARTS, mmap_mode="r"))
        self._first = list(accumulate(manifest.shards, initial=0))

    def __getitem__(self, number: int) -> Passage:
        """Passage `number`, from 0. Raises Corrupt when the file no longer holds it."""
        shard = bisect_right(self._first, number) - 1
        try:
            with (self._folder / passages_file(shard)).open("rb") as stream:
                stream.seek(int(self._starts[number]))
                return Passage(**jsonio.loads(stream.readline()))
        except (ToolwiseError, TypeError, OSError) as error:
            raise Corrupt(f"Passage {number} of the index is damaged; run its toolwise index build again.") from error
