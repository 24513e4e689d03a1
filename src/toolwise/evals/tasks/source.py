"""Where a task's rows come from: a folder of files, or the hub's own sets.

A folder has a file a table, `asdiv.jsonl` or `asdiv.jsonl.gz`. Sets of the hub are read by the `datasets` package, as
`documents.hub` reads corpora, and given the fields of the files.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from toolwise.core.durable import sha256
from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS
from toolwise.documents.hub import hub_source
from toolwise.documents.read import read_objects
from toolwise.evals.tasks.base import Example, Row, Source, Table

HUB = "hub"
_DIGITS = 16


def data_source(data: str) -> Source:
    """The folder that `data` names, or the hub for `hub`. Raises BadInput where there is no such folder."""
    return Hub() if data == HUB else Folder(Path(data))


class Folder:
    """Files in a folder."""

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise BadInput(f"There is no folder {str(path)!r}; give one with the tasks' files, or {HUB}.")
        self._path = path

    def rows(self, table: Table) -> Iterator[tuple[str, Row]]:
        return read_objects(self._file(table))

    def digest(self, table: Table) -> str:
        return sha256(self._file(table))[:_DIGITS]

    def _file(self, table: Table) -> Path:
        for name in (table.file, f"{table.file}.gz"):
            if (self._path / name).is_file():
                return self._path / name
        other = f", or take it from the hub: --data {HUB}" if table.hub else ""
        raise BadInput(f"{str(self._path)!r} has no {table.file!r}; put it there{other}.")


class Hub:
    """Sets of the hub, downloaded once into the `datasets` package's own cache."""

    def rows(self, table: Table) -> Iterator[tuple[str, Row]]:
        for found in hub_source(self._name(table)).find(LIMITS):
            try:
                row = table.shape(found.fields)
            except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                raise BadInput(f"{found.place} has other fields than expected; give a folder of files.") from error
            yield found.place, row

    def digest(self, table: Table) -> str:
        return hub_source(self._name(table)).digest()[:_DIGITS]

    def _name(self, table: Table) -> str:
        if not table.hub:
            raise BadInput(f"The hub has no {table.file!r} as this task needs it; give a folder with that file.")
        return table.hub


def sample(examples: Sequence[Example], most: int | None, seed: int) -> list[Example]:
    """The first `most` in an order by lot, so that a larger sample holds a smaller one; all, in their own order, for
    None."""
    if most is None:
        return list(examples)
    drawn = list(examples)
    random.Random(seed).shuffle(drawn)  # noqa: S311 - not for secrets
    return drawn[:most]
