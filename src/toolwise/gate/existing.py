"""The state that a gate made, for whoever looks at it from outside: found, or refused, and never made by looking.

Covered: a path that was mistyped, a file of something else (it is not changed), a server that holds no gate's state.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from toolwise.core.durable import storage
from toolwise.core.errors import BadInput, StorageUnavailable
from toolwise.gate.state import State, open_state


def existing_state(where: str | Path) -> State:
    """The state at a path or a PostgreSQL address. Raises BadInput where no gate made one, StorageUnavailable."""
    missing = BadInput("No gate keeps its state there: give the path or the address that the gate was given.")
    if "://" not in str(where) and not _was_made(Path(where)):
        raise missing
    state = open_state(where)
    try:
        state.read("SELECT 1 FROM audit LIMIT 1")
    except StorageUnavailable:
        state.close()
        raise missing from None
    return state


def _was_made(path: Path) -> bool:
    """Whether the file is an SQLite database with an audit log; asked in a way that changes no file.

    It is asked of SQLite alone: had this process the state open, to open and close the file would drop its locks.
    """
    with storage(path):
        if not path.exists():
            raise BadInput(f"There is no state {str(path)!r}: name the gate's with --state or TOOLWISE_STATE.")
        if not path.is_file():
            return False
    try:
        with closing(sqlite3.connect(path)) as connection:
            return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'audit'").fetchall())
    except sqlite3.Error as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
            return False
        raise StorageUnavailable(
            f"The gate's state cannot be read ({error}); check its disk and its permissions."
        ) from error
