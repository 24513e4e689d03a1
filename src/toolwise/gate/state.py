"""The database in which the gate's durable parts keep what must outlive a process: one seam, two engines.

`open_state("toolwise.db")` is an SQLite file (write-ahead log), for the processes of one machine, and its owner's alone
where it is new;
`open_state("postgresql+psycopg://...")` a PostgreSQL server through SQLAlchemy, for several machines;
`open_state(":memory:")` is forgotten with the process. Every part writes the same SQL, with `?` for a value, in types
that both engines know, inside one transaction at a time:

    with state.transaction() as sql:
        sql("UPDATE ... WHERE key = ?", (key,))

A transaction that was left without an error has been committed; with `durable` it is on the disk. Transactions that
write exclude each other, so that what one reads stays true until it has written.

Covered: threads of one process; several processes; a full disk, a locked file and a lost server are all
StorageUnavailable; a forked copy of the process, which is refused and may open a state of its own. Not covered: network
file systems, somebody who edits the file, and a program that opens and closes the file by other means while it is in
use (POSIX then drops the locks of the whole process).
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from toolwise.core.errors import BadInput, StorageUnavailable, ToolwiseError

Sql = Callable[..., list[Any]]  # (statement, values) -> the rows it gives

_WAIT_SECONDS = 5  # for whoever is writing now, and for a server that does not answer

# A server's own waits, so that no call waits for ever behind a machine that went away in the middle of a transaction.
_BOUNDS = (
    f"-c lock_timeout={_WAIT_SECONDS}s -c statement_timeout={2 * _WAIT_SECONDS}s "
    f"-c idle_in_transaction_session_timeout={2 * _WAIT_SECONDS}s"
)
_CONNECTION = {
    "client_encoding": "utf8",
    "connect_timeout": _WAIT_SECONDS,
    "keepalives_idle": _WAIT_SECONDS,
    "keepalives_interval": 1,
}
_SERVER = ("sqlalchemy", "psycopg")  # whose errors are a server's
_WRITER = "SELECT pg_advisory_xact_lock(7001), set_config('synchronous_commit', {}, true)"
_DURABLE = _WRITER.format("replace(current_setting('synchronous_commit'), 'off', 'on')")
_QUICK = _WRITER.format("'off'")


class State(Protocol):
    """Where the tables are. Every method raises StorageUnavailable."""

    def transaction(self, *, durable: bool = True) -> AbstractContextManager[Sql]:
        """A transaction that may write; it commits at the end of the block, and rolls back on any exception."""

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of one SELECT, outside any transaction."""

    def close(self) -> None:
        """Let go of the file or the server."""


def open_state(where: str | Path) -> State:
    """The state at a path, at a PostgreSQL address, or in memory. Raises StorageUnavailable, BadInput."""
    if "://" in str(where):
        return PostgresState(str(where))
    return SqliteState(where)


class SqliteState:
    """One SQLite file, one connection that the threads of this process take turns with."""

    def __init__(self, path: str | Path) -> None:
        self._lock = threading.RLock()
        self._process = os.getpid()
        with _storage():
            if str(path) != ":memory:":
                with suppress(FileExistsError):  # a new one holds results that not everybody may read
                    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            self.connection = sqlite3.connect(
                path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
            )
            self.connection.execute("PRAGMA journal_mode = WAL")
        _opened.add(self)

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Sql]:
        with self._exclusive():
            if self.connection.in_transaction:  # the one before could not even be rolled back
                self.connection.execute("ROLLBACK")
            self.connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._run
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:  # SQLite has often rolled back by itself
                    self.connection.execute("ROLLBACK")
                raise

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._exclusive():
            return self._run(statement, values)

    def close(self) -> None:
        with self._exclusive():
            _opened.discard(self)
            self.connection.close()

    def _run(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        return self.connection.execute(statement, values).fetchall()

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        if os.getpid() != self._process:  # asked before the lock, which another thread may have held at the fork
            raise StorageUnavailable("The state belongs to the process that opened it; open another one here.")
        with self._lock, _storage():
            yield


# A copy of this process inherits what SQLite knows of its file locks, but not the locks: what it then opened itself
# would be unlocked, and its commits lost as soon as somebody else closes the file. So a copy drops what it inherited.
_opened: weakref.WeakSet[SqliteState] = weakref.WeakSet()
_held: list[SqliteState] = []
_forking = threading.Lock()


def _before_fork() -> None:
    _forking.acquire()
    _held.extend(state for state in list(_opened) if state._lock.acquire(timeout=2 * _WAIT_SECONDS))


def _after_fork(in_copy: bool) -> None:
    while _held:
        state = _held.pop()
        if in_copy:
            _opened.discard(state)
            with suppress(sqlite3.Error):
                if not state.connection.in_transaction:
                    state.connection.close()
        state._lock.release()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(in_copy=False),
        after_in_child=lambda: _after_fork(in_copy=True),
    )


class PostgresState:
    """A PostgreSQL server. Transactions that write take one advisory lock, as SQLite's do by nature."""

    def __init__(self, url: str) -> None:
        self._process = os.getpid()
        try:
            import sqlalchemy
        except ImportError:
            raise BadInput(
                "A PostgreSQL address needs the extra `postgres`: pip install 'toolwise[postgres]'."
            ) from None
        unknown = BadInput("Give the state as postgresql+psycopg://user@host/database, or as a path.")
        try:
            address = sqlalchemy.make_url(url)
            options = " ".join([*sqlalchemy.util.to_list(address.query.get("options"), []), _BOUNDS])
            self._engine = sqlalchemy.create_engine(
                address,
                connect_args={**_CONNECTION, "options": options},
                isolation_level="READ COMMITTED",  # each statement behind the lock sees what was written before it
                pool_pre_ping=True,
                pool_size=8,
                max_overflow=56,
            )
        except (sqlalchemy.exc.ArgumentError, ImportError):
            raise unknown from None
        if (self._engine.dialect.name, self._engine.dialect.driver[:7]) != ("postgresql", "psycopg"):
            raise unknown
        if self.read("SHOW server_encoding") != [("UTF8",)]:
            raise BadInput("The state's database has to be encoded in UTF8, so that it can hold every text.")

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Sql]:
        with self._connected() as connection, connection.begin():
            connection.exec_driver_sql(_DURABLE if durable else _QUICK)
            yield _runner(connection)

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._connected() as connection:
            return _runner(connection)(statement, values)

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        if os.getpid() != self._process:
            raise StorageUnavailable("The state belongs to the process that opened it; open another one here.")
        with _storage(), self._engine.connect() as connection:
            yield connection


def _runner(connection: Any) -> Sql:
    def run(statement: str, values: Sequence[Any] = ()) -> list[Any]:
        found = connection.exec_driver_sql(statement.replace("?", "%s"), tuple(values))
        return [tuple(row) for row in found] if found.returns_rows else []

    return run


@contextmanager
def _storage() -> Iterator[None]:
    try:
        yield
    except ToolwiseError:
        raise
    except (sqlite3.Error, OSError, UnicodeError) as error:
        raise _unavailable(error) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] in _SERVER:
            raise _unavailable(error) from error
        raise


def _unavailable(error: Exception) -> StorageUnavailable:
    # What SQLite says holds no secret; a server's error may name hosts and users, and a model may read this sentence.
    said = f"{type(error).__name__}: {error}" if isinstance(error, sqlite3.Error) else type(error).__name__
    server = type(error).__module__.partition(".")[0] in _SERVER
    what = "that its server answers, its name, user and password" if server else "its disk and its permissions"
    return StorageUnavailable(f"The gate's state cannot be used ({said}); check {what}.")
