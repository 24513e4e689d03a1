"""The passages of an index by their number, from memory-mapped files."""

from __future__ import annotations

import mmap
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path

import numpy as np

from toolwise.core import jsonio
from toolwise.core.durable import storage
from toolwise.core.errors import Corrupt, ToolwiseError
from toolwise.tools.index.manifest import MATRIX, STARTS, Manifest, passages_file
from toolwise.tools.index.passages import Passage


class Texts:
    """Raises BadInput or StorageUnavailable when a file cannot be opened."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self._starts = np.asarray(np.load(folder / MATRIX / STARTS, mmap_mode="r"))
        self._first = list(accumulate(manifest.shards, initial=0))
        self._maps = [mapped(folder / passages_file(number)) for number in range(len(manifest.shards))]

    def __getitem__(self, number: int) -> Passage:
        """Passage `number`, from 0. Raises Corrupt when the file no longer holds it."""
        lines = self._maps[bisect_right(self._first, number) - 1]
        start = int(self._starts[number])
        try:
            return Passage(**jsonio.loads(lines[start : lines.find(b"\n", start)]))
        except (ToolwiseError, TypeError) as error:
            raise Corrupt(f"Passage {number} of the index is damaged; run its toolwise index build again.") from error


def mapped(path: Path) -> mmap.mmap:
    """The bytes of a file, read where they lie. Raises BadInput or StorageUnavailable."""
    with storage(path), path.open("rb") as stream:
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
