"""What happened, one line a transition, in one SQLite file.

    intent    a call passed every check and starts now
    result    it ended, with this code (also when its result was invalid or its outcome is unknown: it was executed)
    refused   it ended before it started, with this code
    replayed  its stored result was given again; nothing ran

Lines are ordered by `sequence`; wall time is for people. How durable a line is follows from the tool's effect:
`write` lines are on the disk before `append` returns (WAL, synchronous FULL); `read` lines survive the end of the
process but not a power cut; `pure` and unresolved ones wait in memory, at most `limits.audit_batch` of them, for the
next line of another kind, a full batch, `rows` or `close`: a killed process loses at most one batch of lines about
calls that had no effect. While a batch cannot be written, no further line is taken, and so no further call starts.

Covers: threads of one process; several processes writing one file. Not covered: use in a forked child (refused),
someone who edits the file, redaction of secrets in arguments.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import Literal

from toolwise.core.errors import StorageUnavailable
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Effect

Event = Literal["intent", "result", "refused", "replayed"]

_EXECUTED = ("intent", "result")
_WAIT_SECONDS = 5.0  # for another process that is writing the same file


@dataclass(frozen=True, slots=True)
class Line:
    """One transition of one call; every text bounded and free of lone surrogates by whoever makes it.

    `arguments` are canonical JSON, or the start of the text that did not parse; `fingerprint` is the digest of name and
    arguments; `detail` is for operators (a traceback), `digest` the SHA-256 of the result that was kept.
    """

    run: str
    call: str
    principal: str
    event: Event = "refused"
    tool: str = ""
    effect: str = ""
    arguments: str = ""
    fingerprint: str = ""
    policy: str = ""
    code: str = ""
    seconds: float = 0.0
    digest: str = ""
    detail: str = ""
    wall: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A line with its place in the order of all lines."""

    sequence: int
    line: Line


_NAMES = [field.name for field in fields(Line)]
_values = attrgetter(*_NAMES)
_COLUMNS = ", ".join(_NAMES)
_TABLE = f"CREATE TABLE IF NOT EXISTS audit (sequence INTEGER PRIMARY KEY AUTOINCREMENT, {_COLUMNS})"
_INDEX = "CREATE INDEX IF NOT EXISTS writes ON audit (principal, run, call) WHERE effect = 'write'"
_INSERT = f"INSERT INTO audit ({_COLUMNS}) VALUES ({', '.join('?' * len(_NAMES))})"  # noqa: S608  names of ours
_SELECT = f"SELECT sequence, {_COLUMNS} FROM audit ORDER BY sequence"  # noqa: S608
_WRITTEN = (
    "SELECT event FROM audit WHERE effect = 'write' AND principal = ? AND run = ? AND call = ?"
    " AND event IN ('intent', 'result') ORDER BY sequence"
)


class Audit:
    """The audit log at `path`, or in memory with `":memory:"`. Every method raises StorageUnavailable."""

    def __init__(self, path: str | Path, *, limits: Limits = LIMITS) -> None:
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._batch = limits.audit_batch
        self._pending: list[Line] = []
        with _storage():
            self.connection = sqlite3.connect(
                path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            for statement in ("PRAGMA journal_mode = WAL", _TABLE, _INDEX):
                self.connection.execute(statement)

    def append(self, line: Line) -> None:
        """Add the line; when this returns, it is as durable as the effect demands.

        On an error an intent was not added. A result is kept and written before any later line, since what was
        executed must not be forgotten: until it is written, no call with an effect starts. A refusal is kept while
        there is room.
        """
        with self._exclusive():
            if line.effect not in (Effect.READ, Effect.WRITE) and len(self._pending) < self._batch:
                self._pending.append(line)
                return
            try:
                self._write([*self._pending, line], durable=line.effect == Effect.WRITE and line.event in _EXECUTED)
            except sqlite3.Error:
                if line.event == "result" or (line.event == "refused" and len(self._pending) < self._batch):
                    self._pending.append(line)
                raise

    def written(self, principal: str, run: str, call: str) -> list[str]:
        """The events of the `write` call of this id, oldest first: empty if it never started."""
        with self._exclusive():
            return [event for (event,) in self.connection.execute(_WRITTEN, (principal, run, call))]

    def rows(self) -> list[Row]:
        """Every line, in order."""
        with self._exclusive():
            self._flush()
            return [Row(sequence, Line(*rest)) for sequence, *rest in self.connection.execute(_SELECT)]

    def close(self) -> None:
        """Write what is pending and close the file."""
        with self._exclusive():
            self._flush()
            self.connection.close()

    def _flush(self) -> None:
        if self._pending:
            self._write(self._pending)

    def _write(self, lines: list[Line], *, durable: bool = False) -> None:
        """All of the lines or none; only when they are written is nothing pending any more."""
        self.connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            self.connection.executemany(_INSERT, map(_values, lines))
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:  # SQLite has often rolled back by itself
                self.connection.execute("ROLLBACK")
            raise
        self._pending = []

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        if os.getpid() != self._process:  # asked before the lock, which another thread may have held at the fork
            raise StorageUnavailable("The audit log belongs to the process that opened it; open another one here.")
        with self._lock, _storage():
            yield


@contextmanager
def _storage() -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeError) as error:
        raise StorageUnavailable(
            f"The audit log cannot be used ({type(error).__name__}: {error}); check its disk and its permissions."
        ) from error
