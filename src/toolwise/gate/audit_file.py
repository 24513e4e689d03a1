"""The audit log as a file of JSON lines: every line with its sequence number and hash, so that the file proves itself.

Written whole or not at all, and read back strictly: a line that is not exactly what was exported is `corrupt`. Not
covered: who wrote the file; compare its last hash with a head that was noted elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from toolwise.core import jsonio
from toolwise.core.durable import output, storage, write_all
from toolwise.core.errors import Corrupt, ToolwiseError
from toolwise.core.limits import LIMITS
from toolwise.gate.audit import Line, Row

_TEXTS: Mapping[str, type] = dict.fromkeys(Line._fields, str)
_TYPES = {**_TEXTS, "seconds": float, "sequence": int, "hash": str}
_WIDE = replace(LIMITS, string_bytes=LIMITS.json_size)  # a line was bounded when it was made
_BUFFER = 1_000  # lines written at one time


def write(path: Path, rows: Iterable[Row]) -> int:
    """Write every row, one line each; how many. Raises BadInput, StorageUnavailable."""
    count = 0
    with output(path) as descriptor:
        lines = map(text, rows)
        while some := list(islice(lines, _BUFFER)):
            write_all(descriptor, "".join(some).encode())
            count += len(some)
    return count


def read(path: Path) -> Iterator[Row]:
    """The rows of a file that `write` made. Raises Corrupt for a line that is none, BadInput, StorageUnavailable."""
    for number, told in json_lines(path):
        found = row_of(told)
        if found is None:
            raise Corrupt(f"Line {number} is not a line of an exported audit log.")
        yield found


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Number and value of each line of a file, None where it is no JSON. Raises BadInput, StorageUnavailable."""
    with storage(path), path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(LIMITS.json_size), b""), 1):
            try:
                value = jsonio.loads(line, _WIDE)
            except ToolwiseError:
                value = None
            yield number, value


def text(row: Row) -> str:
    """One row as a line of JSON, with its end."""
    return jsonio.dumps(as_json(row)) + "\n"


def as_json(row: Row) -> dict[str, Any]:
    """One row as a JSON object."""
    return {"sequence": row.sequence, "hash": row.hash, **row.line._asdict()}


def row_of(told: Any) -> Row | None:
    """The row that a JSON value is, if it is exactly one."""
    if not isinstance(told, dict) or told.keys() != _TYPES.keys():
        return None
    if any(type(value) is not _TYPES[name] for name, value in told.items()):
        return None
    line = {name: value for name, value in told.items() if name not in ("sequence", "hash")}
    return Row(told["sequence"], told["hash"], Line(**line))
