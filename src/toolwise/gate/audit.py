"""What happened, one line a transition, each chained to the one before it.

    intent    a call passed every check and starts now
    retried   an attempt failed in a way that may pass, and the next one starts now
    result    it ended, with this code (also when its result was invalid or its outcome is unknown: it was executed)
    late      what a call said after its deadline; recorded, never delivered
    refused   it ended before it started, with this code
    replayed  its stored result was given again; nothing ran
    approved  a person decided, `detail` names who; likewise `rejected`
    resolved  an operator said what became of a call whose outcome was unknown
    pinned    a tool's definition is the approved one from now on, `digest` is its hash; a line of no call

Lines are ordered by `sequence`; wall time is for people. `hash` is SHA-256 over the hash of the line before and every
field of this one: whoever changes, removes or inserts a line breaks the chain from there on, and whoever rewrites the
whole chain or cuts its end off is found out by a head that was noted elsewhere (`toolwise audit verify --head`).

How durable a line is follows from the tool's effect: `write` lines are on the disk before `append` returns; `read`
lines survive the end of the process but not a power cut; `pure` and unresolved ones wait in memory, at most
`limits.audit_batch` of them, for the next line of another kind, a full batch, `rows` or `close`: a killed process loses
at most one batch of lines about calls that had no effect. While a batch cannot be written, no further line is taken,
and so no further call starts.

Not covered: someone who rewrites the whole file before anybody noted its head.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from toolwise.core.errors import Corrupt, StorageUnavailable
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Effect
from toolwise.gate.state import Sql, State

Event = Literal[
    "intent", "retried", "result", "late", "refused", "replayed", "approved", "rejected", "resolved", "pinned"
]

START = "0" * 64  # what the first line is chained to

_NO_EFFECT = frozenset({"", Effect.PURE.value})
_OWED = frozenset({"result", "late"})  # of what was executed: kept until it can be written
_PAGE = 1_000  # lines read at one time
_ANY: Mapping[str, str] = {}


class Line(NamedTuple):
    """One transition of one call; every text bounded and free of lone surrogates by whoever makes it.

    `arguments` are canonical JSON without secrets, or the start of the text that did not parse; `fingerprint` is the
    digest of tool and arguments; `detail` is for operators (a traceback), `digest` the SHA-256 of the result that was
    kept; `labels` say what the model had read when it asked ("untrusted private", or less).
    """

    run: str
    call: str
    principal: str
    event: Event = "refused"
    tool: str = ""
    effect: str = ""
    arguments: str = ""
    fingerprint: str = ""
    labels: str = ""
    policy: str = ""
    code: str = ""
    seconds: float = 0.0
    digest: str = ""
    detail: str = ""
    wall: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A line with its place in the order of all lines, and the hash that chains it."""

    sequence: int
    hash: str
    line: Line


_NAMES = Line._fields
_COLUMNS = ", ".join(_NAMES)
_TYPED = ", ".join(f"{name} {'DOUBLE PRECISION' if name == 'seconds' else 'TEXT'} NOT NULL" for name in _NAMES)
_TABLE = f"CREATE TABLE IF NOT EXISTS audit (sequence BIGINT PRIMARY KEY, hash TEXT NOT NULL, {_TYPED})"
_LAST = "SELECT sequence, hash FROM audit ORDER BY sequence DESC LIMIT 1"
_INSERT = f"INSERT INTO audit (sequence, hash, {_COLUMNS}) VALUES (?, ?, {', '.join('?' * len(_NAMES))})"  # noqa: S608
_SELECT = f"SELECT sequence, hash, {_COLUMNS} FROM audit WHERE sequence > ? {{}}ORDER BY sequence LIMIT ?"  # noqa: S608


class _Due(NamedTuple):
    """A line to be written, and what stands or falls with it."""

    line: Line
    also: Callable[[Sql], None] | None = None
    durable: bool = False


class Audit:
    """The audit log in `state`. Every method raises StorageUnavailable."""

    def __init__(self, state: State, *, limits: Limits = LIMITS) -> None:
        self._state = state
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._batch = limits.audit_batch
        self._pending: list[_Due] = []
        self._tried: tuple[int, str, list[_Due]] | None = None  # number and hash of a last line, and what went with it
        with state.transaction() as sql:
            sql(_TABLE)

    def append(self, line: Line, also: Callable[[Sql], None] | None = None, *, durable: bool = False) -> None:
        """Add the line; when this returns, it is as durable as the effect demands.

        `also` writes in the same transaction, before the line: both stand or none does, and they are on the disk. On an
        error an intent was not added. A result is kept, with its `also`, and written before any later line, since what
        was executed must not be forgotten: until it is written, no call with an effect starts. A refusal is kept while
        there is room.
        """
        if os.getpid() != self._process:  # asked before the lock, which another thread may have held at the fork
            raise StorageUnavailable("The audit log belongs to the process that opened it; open another one here.")
        with self._lock:
            due = _Due(line, also, durable or also is not None)
            room = len(self._pending) < self._batch
            if not due.durable and line.effect in _NO_EFFECT and room:
                self._pending.append(due)
                return
            try:
                self._write([*self._pending, due])
            except StorageUnavailable:
                if line.event in _OWED or (line.event == "refused" and room):
                    self._pending.append(due)
                raise

    def rows(self, after: int = 0) -> Iterator[Row]:
        """Every line behind the sequence number `after`, in order, read page by page."""
        self.flush()
        yield from read_rows(self._state, after)

    def verify(self, head: str = "") -> Row | None:
        """What the function `verify` says of this log."""
        return verify(self.rows(), head)

    def flush(self) -> None:
        """Write what waits."""
        with self._lock:
            if self._pending:
                self._write([*self._pending])

    def _write(self, due: list[_Due]) -> None:
        """All of the lines or none; only when they are written is nothing pending any more."""
        with self._state.transaction(durable=any(each.durable for each in due)) as sql:
            written = self._written(sql)
            due = [each for each in due if id(each) not in written]
            for each in due:
                if each.also is not None:
                    each.also(sql)
            ((sequence, hash),) = sql(_LAST) or [(0, START)]
            for each in due:
                sequence, hash = sequence + 1, chained(hash, each.line)
                sql(_INSERT, (sequence, hash, *each.line))
            self._tried = sequence, hash, due
        self._pending, self._tried = [], None

    def _written(self, sql: Sql) -> set[int]:
        """Which lines are not due any more: a server may have committed a transaction and failed to say so."""
        if self._tried is None:
            return set()
        sequence, hash, tried = self._tried
        self._tried = None
        if not sql("SELECT 1 FROM audit WHERE sequence = ? AND hash = ?", (sequence, hash)):
            return set()
        written = set(map(id, tried))
        self._pending = [each for each in self._pending if id(each) not in written]
        return written


def read_rows(state: State, after: int = 0, equal: Mapping[str, str] = _ANY) -> Iterator[Row]:
    """The rows behind `after` of an audit log that somebody else writes, those whose fields have these values.

    Raises StorageUnavailable, also where `state` holds no audit log.
    """
    assert set(equal) <= set(_NAMES)
    select = _SELECT.format("".join(f"AND {name} = ? " for name in equal))
    while page := state.read(select, (after, *equal.values(), _PAGE)):
        for sequence, hash, *rest in page:
            yield Row(sequence, hash, Line(*rest))
        after = page[-1][0]


def last_sequence(state: State) -> int:
    """How many lines the log has. Raises StorageUnavailable."""
    return int((state.read(_LAST) or [(0, START)])[0][0])


def verify(rows: Iterable[Row], head: str = "") -> Row | None:
    """Follow the whole chain; the last row, or None where there is none.

    Raises Corrupt for the first line that was changed, put in or taken out, and when the chain does not hold `head`, a
    hash that was noted earlier (so that nothing was rewritten or cut off since).
    """
    last, before, found = None, START, not head
    for row in rows:
        number = last.sequence if last else 0
        if row.sequence != number + 1 or row.hash != chained(before, row.line):
            raise Corrupt(f"The audit log was changed at or before line {number + 1}; keep the file for evidence.")
        last, before, found = row, row.hash, found or row.hash == head
    if not found:
        raise Corrupt("The audit log does not hold the head that was noted: its end was cut off or rewritten.")
    return last


def chained(before: str, line: Line) -> str:
    """The hash of a line behind a line with the hash `before`: every field with its length, so that none can move."""
    fields = "".join([f"{len(value)}:{value}" for value in map(str, line)])
    return hashlib.sha256(f"{before}{fields}".encode()).hexdigest()
