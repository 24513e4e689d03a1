"""Results that are whole or not there: made under another name beside their own, synced, then renamed.

Covered: a kill or a full disk at any instant leaves nothing under the name that was asked for, or all of it; what is
there already is never replaced.
Not covered: two processes that export to one name at the same time; the last one wins, and is whole. A killed process
leaves its unfinished file, whose name begins with a dot.
"""

from __future__ import annotations

import filecmp
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from toolwise.core.durable import TEMPORARY, storage, sync_folder, sync_tree
from toolwise.core.errors import BadInput


@contextmanager
def whole(out: Path) -> Iterator[Path]:
    """Where to write a file or a folder that becomes `out` in the end.

    An `out` that is there already stays as it is: if it says the same, nothing more is done. Raises BadInput when it
    says something else or cannot be written, StorageUnavailable.
    """
    out = Path(os.path.abspath(out))
    if not out.name:
        raise BadInput(f"Nothing can be written to {str(out)!r}; choose a new name.")
    making = out.with_name(f".{out.name}.{os.getpid()}{TEMPORARY}")
    with storage(out):
        _remove(making)
        try:
            yield making
            sync_tree(making)
            if not _taken(out):
                os.replace(making, out)
                sync_folder(out.parent)
            elif not _same(making, out):
                raise BadInput(f"{str(out)!r} exists already and says something else; choose another name.")
        finally:
            _remove(making)


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """JSON Lines: an object a line in UTF-8, keys in their own order."""
    with path.open("wb") as stream:
        for row in rows:
            stream.write(json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n")


def _taken(out: Path) -> bool:
    return os.path.lexists(out) and not (out.is_dir() and not any(out.iterdir()))


def _same(made: Path, there: Path) -> bool:
    files = _files(made)
    return files == _files(there) and all(filecmp.cmp(made / name, there / name, shallow=False) for name in files)


def _files(path: Path) -> list[str]:
    """The names of all files below a folder; one empty name for a file itself."""
    if not path.is_dir():
        return [""] if path.is_file() else []
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if not file.is_dir())


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
