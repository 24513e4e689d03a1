"""What every engine promises, and what is particular to a server."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from children import Child
from postgres_server import Server

from toolwise.core.errors import BadInput, Conflict, StorageUnavailable
from toolwise.gate.self_check import self_check
from toolwise.gate.state import Sql, SqliteState, State, open_state


def table(state: State) -> None:
    with state.transaction() as sql:
        sql("CREATE TABLE IF NOT EXISTS things (name TEXT PRIMARY KEY, number BIGINT NOT NULL)")


def put(state: State, name: str, number: int) -> None:
    with state.transaction() as sql:
        sql("INSERT INTO things VALUES (?, ?)", (name, number))


def test_every_engine_of_ours_keeps_what_the_gate_relies_on(where: str) -> None:
    assert len(self_check(lambda: open_state(where))) == 7
    with closing(open_state(where)) as state, pytest.raises(StorageUnavailable):
        state.read("SELECT * FROM self_check")


class Keeps(SqliteState):
    """What failed stays."""

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Sql]:
        with super().transaction(durable=durable) as sql:
            try:
                yield sql
            except (Conflict, KeyboardInterrupt) as error:
                failed = error
            else:
                return
        raise failed


class Tells(SqliteState):
    """Its errors are the engine's."""

    def read(self, statement: str, values: Sequence[object] = ()) -> list[tuple[object, ...]]:
        return self.connection.execute(statement, values).fetchall()


class Overlaps(SqliteState):
    """Every statement is a transaction of its own."""

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Sql]:
        yield self._run


@pytest.mark.parametrize(
    ("engine", "broken"),
    [
        (Keeps, "what failed is there for nobody"),
        (Tells, "an error of the engine"),
        (Overlaps, "what is not committed is seen by nobody else"),
    ],
)
def test_an_engine_that_breaks_a_promise_is_found(engine: type[SqliteState], broken: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=broken):
        self_check(lambda: engine(tmp_path / "state.db"))


def test_a_state_that_each_opens_for_itself_is_shared_with_nobody() -> None:
    with pytest.raises(AssertionError, match="what was written is there for everybody"):
        self_check(lambda: open_state(":memory:"))


def test_a_forked_copy_is_refused_and_does_its_owner_no_harm(state: State) -> None:
    table(state)

    def uses() -> list[str]:
        refused = []
        for use in (lambda: table(state), lambda: state.read("SELECT 1"), lambda: put(state, "a", 1)):
            try:
                use()
            except StorageUnavailable as error:
                refused.append(str(error))
        return refused

    assert len(Child(uses).answer()) == 3
    put(state, "a", 1)
    assert state.read("SELECT * FROM things") == [("a", 1)]


@pytest.mark.parametrize("first", ["parent", "copy"])
def test_what_a_forked_copy_commits_through_a_state_of_its_own_stays_whoever_closes_first(
    where: str, first: str
) -> None:
    """A copy inherits what SQLite knows of its locks, but no locks: the file looked unused while it was written."""
    state = open_state(where)
    table(state)
    (go, goes), (opened, has_opened) = os.pipe(), os.pipe()

    def writes() -> None:
        own = open_state(where)
        own.read("SELECT * FROM things")
        os.write(has_opened, b"x")
        os.read(go, 1)
        put(own, "copy", 1)
        os.kill(os.getpid(), signal.SIGKILL)

    def copies() -> None:
        os.close(goes)
        Child(writes).answer()

    child = Child(copies)
    os.read(opened, 1)
    if first == "copy":
        os.close(goes)
        child.answer()
        open_state(where).close()
        put(state, "parent", 1)
        state.close()
    else:
        put(state, "parent", 1)
        state.close()
        os.close(goes)
        child.answer()
    assert open_state(where).read("SELECT name FROM things ORDER BY name") == [("copy",), ("parent",)]


def test_a_new_file_is_its_owners_alone_and_one_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    for mode in (0o600, 0o640):
        with closing(open_state(path)) as state, state.transaction() as sql:
            sql("CREATE TABLE IF NOT EXISTS results (x TEXT)")
            assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {mode}, "beside it stands its log"
        path.chmod(0o640)


def test_sixteen_processes_open_a_place_that_is_new_to_all_of_them(where: str) -> None:
    def opens() -> int:
        state = open_state(where)
        table(state)
        put(state, str(os.getpid()), 1)
        return 1

    children = [Child(opens) for _ in range(16)]
    assert sum(child.answer() for child in children) == 16
    assert open_state(where).read("SELECT COUNT(*) FROM things") == [(16,)]


# A server


def test_a_server_that_lost_its_connections_is_used_again(server: Server) -> None:
    state = open_state(server.address())
    table(state)
    with pytest.raises(StorageUnavailable), state.transaction() as sql:
        sql("INSERT INTO things VALUES ('a', 1)")
        server.drop_connections()
        sql("INSERT INTO things VALUES ('b', 1)")
    server.drop_connections()
    put(state, "c", 1)
    assert state.read("SELECT name FROM things") == [("c",)]
    state.close()


@pytest.mark.parametrize("given", ["on", "off", "local"])
def test_only_what_must_be_durable_waits_for_the_servers_disk_however_the_server_is_set_up(
    server: Server, given: str
) -> None:
    state = open_state(f"{server.address()}%20-csynchronous_commit%3D{given}")
    waits = []
    for durable in (True, False):
        with state.transaction(durable=durable) as sql:
            waits += sql("SHOW synchronous_commit")
    assert waits == [("local" if given == "local" else "on",), ("off",)]
    state.close()


def test_no_wait_behind_somebody_elses_transaction_is_endless(server: Server) -> None:
    state = open_state(server.address())
    for bound in ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"):
        assert state.read(f"SHOW {bound}") in ([("5s",)], [("10s",)])
    state.close()


def test_a_database_that_cannot_hold_every_text_is_refused(server: Server) -> None:
    server.sql("CREATE DATABASE odd ENCODING 'SQL_ASCII' TEMPLATE template0")
    with pytest.raises(BadInput):
        open_state(server.address().replace("/postgres?", "/odd?"))


@pytest.mark.parametrize("address", ["sqlite:///a.db", "nothing://x", "postgresql+pg8000://x/y", "://"])
def test_an_address_of_another_engine_is_refused(address: str) -> None:
    with pytest.raises(BadInput):
        open_state(address)


def test_a_server_that_is_not_there_is_unavailable_and_named_in_no_message() -> None:
    with pytest.raises(StorageUnavailable) as raised:
        open_state("postgresql+psycopg://admin:secret@127.0.0.1:1/postgres")
    assert not {"admin", "secret", "127.0.0.1"} & set(str(raised.value).split())
