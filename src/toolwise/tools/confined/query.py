"""`safe_query`: one SELECT that a model wrote, over a SQLite database that it may only read.

Covers: the connection cannot write, and SQLite asks about every part of a statement before it compiles it, so that
nothing but reading and a list of functions gets through: no ATTACH, no PRAGMA, no VACUUM INTO, no extension. Values are
bound, never written into the text. Rows, bytes, steps and time are bounded, and a query that meets a bound is an
error, not a part of the answer.

Not covered
- what may be read: whoever may query a database may read all of it; make a copy or a view's table for the rest
- virtual tables, full-text search and json_each among them: they compile statements of their own, which are refused
- the memory that sorting and grouping take, and the time of one function between two looks at the clock (two seconds
  for trim() with thousands of characters): let the tool run in a child process, that is, do not mark it `bounded`
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from toolwise.core.clock import Clock, SystemClock
from toolwise.core.errors import (
    BadInput,
    Corrupt,
    DeadlineExceeded,
    InvalidArguments,
    LimitExceeded,
    StorageUnavailable,
    ToolwiseError,
    UnsafeTarget,
)
from toolwise.core.limits import LIMITS, Limits

Value = str | int | float | bytes | None

_CLOCK = SystemClock()
_STEPS = 100  # between two looks at the bounds; a microsecond, and a look costs a quarter of one
_READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
# Not printf and format, whose precision costs seconds in one step; nor what only virtual tables need
_HARMLESS = """
    abs avg ceil ceiling char coalesce concat concat_ws count cume_dist date datetime degrees dense_rank exp first_value
    floor glob group_concat hex ifnull iif instr json json_array json_array_length json_extract json_group_array
    json_group_object json_object json_quote json_type json_valid julianday lag last_value lead length like ln log log10
    log2 lower ltrim max min mod nth_value ntile nullif octet_length percent_rank pi pow power quote radians random rank
    replace round row_number rtrim sign sqrt strftime string_agg substr substring sum time timediff total trim trunc
    typeof unicode unixepoch upper -> ->>
"""
_FUNCTIONS = frozenset(_HARMLESS.split())

_MISTAKEN = (InvalidArguments, "Give one SELECT that fits the database; sqlite_schema has its tables and columns.")
_CHANGING = (UnsafeTarget, "A query may only read plain tables, with the usual functions: give one SELECT.")
_WRITTEN = (DeadlineExceeded, "The database is being written: try again later.")
_UNSOUND = (Corrupt, "The file is no sound SQLite database: restore it.")
_UNREADABLE = (StorageUnavailable, "The database cannot be read: repair the disk or its permissions.")
_MEANINGS: Mapping[int, tuple[type[ToolwiseError], str]] = {
    sqlite3.SQLITE_AUTH: _CHANGING,
    sqlite3.SQLITE_READONLY: _CHANGING,
    sqlite3.SQLITE_TOOBIG: (LimitExceeded, "The query or a value in it is too long: ask for less."),
    sqlite3.SQLITE_BUSY: _WRITTEN,
    sqlite3.SQLITE_LOCKED: _WRITTEN,
    sqlite3.SQLITE_CORRUPT: _UNSOUND,
    sqlite3.SQLITE_NOTADB: _UNSOUND,
    sqlite3.SQLITE_IOERR: _UNREADABLE,
    sqlite3.SQLITE_FULL: _UNREADABLE,
    sqlite3.SQLITE_CANTOPEN: _UNREADABLE,
    sqlite3.SQLITE_PERM: _UNREADABLE,
}


@dataclass(frozen=True, slots=True)
class Rows:
    """The whole answer: the names of the columns, and the rows in order."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


def safe_query(
    database: str | Path,
    sql: str,
    parameters: Sequence[Value] | Mapping[str, Value] = (),
    *,
    limits: Limits = LIMITS,
    clock: Clock = _CLOCK,
) -> Rows:
    """The answer to one SELECT; `parameters` fill its `?` or `:name` places.

    Raises UnsafeTarget where the statement does more than read, InvalidArguments where it does not fit the database,
    LimitExceeded and DeadlineExceeded at a bound. Of the database: BadInput where there is none, Corrupt, and
    StorageUnavailable.
    """
    bounds = _Bounds(limits, clock)
    try:
        if len(sql.encode()) > limits.sql_bytes:
            raise LimitExceeded(f"A query may take {limits.sql_bytes} bytes: bind long values, or ask for less.")
        with closing(_opened(database, limits)) as connection:
            _confine(connection, limits, bounds)
            cursor = connection.execute(sql, parameters)
            if cursor.description is None:
                raise InvalidArguments("Give one SELECT.")
            columns = tuple(str(column[0]) for column in cursor.description)
            return Rows(columns, tuple(map(bounds.counted, cursor)))
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise bounds.met or _said_of(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) from error
    except (ValueError, OverflowError) as error:  # a NUL, half a surrogate pair, an integer of more than 64 bits
        raise InvalidArguments("The query or a value holds what SQLite cannot take: write it otherwise.") from error


def _opened(database: str | Path, limits: Limits) -> sqlite3.Connection:
    where = f"{Path(database).absolute().as_uri()}?mode=ro"
    try:
        return sqlite3.connect(where, uri=True, timeout=limits.query_seconds, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise BadInput("The database cannot be opened: give the path of a file that can be read.") from error


def _confine(connection: sqlite3.Connection, limits: Limits, bounds: _Bounds) -> None:
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    # Views and triggers of a hostile file call nothing; a sort spills into the memory of a child, never onto the disk
    for pragma in ("query_only = ON", "trusted_schema = OFF", "cell_size_check = ON", "temp_store = MEMORY"):
        connection.execute(f"PRAGMA {pragma}")
    for category, most in (
        (sqlite3.SQLITE_LIMIT_LENGTH, limits.query_value_bytes),
        (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, limits.like_chars),
        (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
        (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
    ):
        connection.setlimit(category, most)
    connection.set_progress_handler(bounds.step, _STEPS)
    connection.set_authorizer(bounds.authorise)


class _Bounds:
    """What one query has used; `met` is the bound that ended it."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self.met: ToolwiseError | None = None
        self._limits, self._clock = limits, clock
        self._deadline = clock.monotonic() + limits.query_seconds
        self._steps = self._rows = self._bytes = 0

    def authorise(self, action: int, _: str | None, function: str | None, *where: str | None) -> int:
        """SQLite's question about one part of a statement (https://sqlite.org/c3ref/set_authorizer.html)."""
        if action in _READING or (action == sqlite3.SQLITE_FUNCTION and (function or "").lower() in _FUNCTIONS):
            return sqlite3.SQLITE_OK
        self.met = _said_of(sqlite3.SQLITE_AUTH)
        return sqlite3.SQLITE_DENY

    def step(self) -> bool:
        """Whether the query has to end; SQLite asks after every `_STEPS` steps."""
        self._steps += _STEPS
        if self._steps > self._limits.query_steps:
            self.met = LimitExceeded("The query takes too many steps: ask for less, or use an index.")
        elif self._clock.monotonic() >= self._deadline:
            seconds = self._limits.query_seconds
            self.met = DeadlineExceeded(
                f"The query takes longer than {seconds:g} seconds: ask for less, or use an index."
            )
        return self.met is not None

    def counted(self, row: tuple[Value, ...]) -> tuple[Value, ...]:
        self._rows += 1
        self._bytes += sum(map(_size, row))
        if self._rows > self._limits.query_rows or self._bytes > self._limits.query_bytes:
            raise LimitExceeded(
                f"The answer is larger than {self._limits.query_rows} rows or {self._limits.query_bytes} bytes: "
                "count, group, or add LIMIT."
            )
        return row


def _size(value: Value) -> int:
    match value:
        case str():
            return len(value.encode())
        case bytes():
            return len(value)
    return 8


def _said_of(code: int) -> ToolwiseError:
    """What a failure of SQLite means for whoever asked; its own words may quote the database."""
    kind, text = _MEANINGS.get(code & 0xFF, _MISTAKEN)  # the primary code
    return kind(text)
