"""C* as a folder that `datasets.load_dataset` reads and the hub shows: Parquet below `data/`, and a card.

Arguments are JSON texts, since columns have one type and the arguments of two tools do not.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from toolwise.core.types import Tool
from toolwise.teach.export.card import card
from toolwise.teach.export.run import Run, callable_by_name, calls_of
from toolwise.teach.records import Augmented
from toolwise.teach.source import in_lists
from toolwise.teach.store.rows import write_parquet

_FILE_ROWS = 20_000  # some 50 MB of passages, held in memory while a file is written


@dataclass(frozen=True, slots=True)
class DatasetCall:
    """One call: `text[start:end]` is all of it, and in `plain` it stands before the character `at`."""

    tool: str
    arguments: str
    result: str | None
    at: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """One passage, with its calls in `text`, without them in `plain`."""

    id: str
    document: str
    text: str
    plain: str
    calls: tuple[DatasetCall, ...]


def write(run: Run, folder: Path) -> Mapping[str, int]:
    """The folder. Raises BadInput for calls that do not fit the run's tools."""
    tools = callable_by_name(run.tools)
    count, calls = 0, Counter[str]()
    folder.mkdir(exist_ok=True)
    (folder / "data").mkdir()
    for number, batch in enumerate(in_lists(run.rows, _FILE_ROWS)):
        rows = [_dataset_row(row, tools) for row in batch]
        write_parquet(folder / "data" / f"train-{number:05d}.parquet", [rows], DatasetRow)
        count += len(rows)
        calls.update(call.tool for row in rows for call in row.calls)
    (folder / "README.md").write_bytes(card(run, count, calls).encode())
    return {}


def _dataset_row(row: Augmented, tools: Mapping[str, Tool]) -> DatasetRow:
    calls = tuple(
        DatasetCall(
            call.tool, json.dumps(call.arguments, ensure_ascii=False), call.result, call.at, call.start, call.end
        )
        for call in calls_of(row, tools)
    )
    return DatasetRow(row.passage, row.document, row.text, row.plain, calls)
