"""The log: in order, durable where it must be, refusing work where it cannot write."""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from toolwise.core.errors import Conflict, Corrupt, StorageUnavailable
from toolwise.core.limits import LIMITS
from toolwise.gate.audit import Audit, Line
from toolwise.gate.state import Sql, SqliteState

LINE = Line("run", "call", "ann")
PURE, READ, WRITE = (LINE._replace(event="intent", effect=effect) for effect in ("pure", "read", "write"))


def stored(path: Path) -> list[tuple[str, str]]:
    """Effect and event of what another process would see."""
    with sqlite3.connect(path) as other:
        return other.execute("SELECT effect, event FROM audit ORDER BY sequence").fetchall()


def fill(state: SqliteState) -> None:
    """No page more, from now on."""
    pages = state.connection.execute("PRAGMA page_count").fetchone()[0]
    state.connection.execute(f"PRAGMA max_page_count = {pages}")


def empty(state: SqliteState) -> None:
    state.connection.execute("PRAGMA max_page_count = 1000000")


def test_lines_come_back_whole_and_in_order() -> None:
    state = SqliteState(":memory:")
    audit = Audit(state)
    lines = [PURE, WRITE._replace(code="né", seconds=0.5), READ, LINE]
    for line in lines:
        audit.append(line)
    rows = list(audit.rows())
    assert [row.line for row in rows] == lines
    assert [row.sequence for row in rows] == [1, 2, 3, 4]


def test_a_line_about_an_effect_is_in_the_file_at_once_and_takes_the_waiting_ones_along(tmp_path: Path) -> None:
    state = SqliteState(tmp_path / "audit.db")
    audit = Audit(state)
    audit.append(PURE)
    assert stored(tmp_path / "audit.db") == []
    audit.append(WRITE)
    assert stored(tmp_path / "audit.db") == [("pure", "intent"), ("write", "intent")]
    audit.append(READ)
    assert len(stored(tmp_path / "audit.db")) == 3


def test_only_what_must_be_durable_is_synchronised_with_the_disk() -> None:
    state = SqliteState(":memory:")
    audit = Audit(state)
    levels = []
    for durable in (False, True):
        audit.append(WRITE, durable=durable)
        levels.append(state.connection.execute("PRAGMA synchronous").fetchone()[0])
    normal, full = 1, 2
    assert levels == [normal, full]


def test_lines_without_effect_are_written_in_batches(tmp_path: Path) -> None:
    state = SqliteState(tmp_path / "audit.db")
    audit = Audit(state, limits=replace(LIMITS, audit_batch=10))
    for _ in range(25):
        audit.append(PURE)
    assert len(stored(tmp_path / "audit.db")) == 22
    audit.flush()
    assert len(stored(tmp_path / "audit.db")) == 25


def test_a_second_run_continues_the_log(tmp_path: Path) -> None:
    for _ in range(2):
        state = SqliteState(tmp_path / "audit.db")
        audit = Audit(state)
        audit.append(PURE)
        audit.flush()
        state.close()
    assert [row.sequence for row in Audit(SqliteState(tmp_path / "audit.db")).rows()] == [1, 2]


@pytest.mark.case("F1")
def test_a_place_that_cannot_hold_a_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.db").write_bytes(b"no database" * 1000)
    for path in ("/dev/full", tmp_path, tmp_path / "missing" / "audit.db", tmp_path / "other.db"):
        with pytest.raises(StorageUnavailable):
            Audit(SqliteState(path))


@pytest.mark.case("F1")
def test_on_a_full_disk_an_intent_is_refused_and_not_written_later(tmp_path: Path) -> None:
    state = SqliteState(tmp_path / "audit.db")
    audit = Audit(state)
    fill(state)
    long = WRITE._replace(arguments="x" * 10_000)
    with pytest.raises(StorageUnavailable):
        audit.append(long)
    empty(state)
    assert list(audit.rows()) == []


@pytest.mark.case("F2")
def test_on_a_full_disk_a_result_is_kept_and_no_effect_starts_until_it_is_written(tmp_path: Path) -> None:
    state = SqliteState(tmp_path / "audit.db")
    audit = Audit(state)
    audit.append(WRITE)
    fill(state)
    owed = WRITE._replace(event="result", detail="x" * 10_000)
    for line in (owed, WRITE, READ):
        with pytest.raises(StorageUnavailable):
            audit.append(line)
    empty(state)
    audit.append(WRITE)
    assert [row.line for row in audit.rows()] == [WRITE, owed, WRITE]


@pytest.mark.case("F1")
def test_what_cannot_be_written_does_not_grow_without_bound(tmp_path: Path) -> None:
    state = SqliteState(tmp_path / "audit.db")
    audit = Audit(state, limits=replace(LIMITS, audit_batch=10))
    fill(state)
    refused = 0
    for _ in range(100):
        try:
            audit.append(PURE._replace(event="refused", arguments="x" * 2_000))
        except StorageUnavailable:
            refused += 1
    assert refused == 90
    empty(state)
    assert len(list(audit.rows())) == 10


def filled(path: Path) -> tuple[Audit, str]:
    """A log of four lines in a file, and its head."""
    audit = Audit(SqliteState(path))
    for call in "abcd":
        audit.append(WRITE._replace(call=call))
    last = audit.verify()
    assert last is not None
    return audit, last.hash


def test_a_chain_that_nobody_touched_holds_and_an_empty_one_too(tmp_path: Path) -> None:
    assert Audit(SqliteState(":memory:")).verify() is None
    audit, head = filled(tmp_path / "audit.db")
    audit.append(PURE)
    assert audit.verify(head) is not None


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE audit SET arguments = 'other' WHERE sequence = 2",
        "UPDATE audit SET seconds = 0.25 WHERE sequence = 3",
        "UPDATE audit SET call = 'b', run = 'runb' WHERE sequence = 1",
        "DELETE FROM audit WHERE sequence = 2",
        "DELETE FROM audit WHERE sequence = 1",
        "UPDATE audit SET sequence = 9 WHERE sequence = 4",
        "UPDATE audit SET hash = (SELECT hash FROM audit WHERE sequence = 1) WHERE sequence = 4",
    ],
)
def test_a_line_that_was_changed_moved_or_taken_out_breaks_the_chain(tampering: str, tmp_path: Path) -> None:
    audit, _ = filled(tmp_path / "audit.db")
    with sqlite3.connect(tmp_path / "audit.db") as other:
        other.execute(tampering)
    with pytest.raises(Corrupt):
        audit.verify()


def test_an_end_that_was_cut_off_shows_against_a_head_that_was_noted(tmp_path: Path) -> None:
    audit, head = filled(tmp_path / "audit.db")
    with sqlite3.connect(tmp_path / "audit.db") as other:
        other.execute("DELETE FROM audit WHERE sequence = 4")
    assert audit.verify() is not None, "a shorter chain is a chain"
    with pytest.raises(Corrupt):
        audit.verify(head)


def test_what_is_written_with_a_line_stands_or_falls_with_it() -> None:
    state = SqliteState(":memory:")
    audit = Audit(state)
    with state.transaction() as sql:
        sql("CREATE TABLE other (x BIGINT)")

    def also(sql: Sql) -> None:
        sql("INSERT INTO other VALUES (1)")

    def fails(sql: Sql) -> None:
        also(sql)
        raise Conflict("no")

    audit.append(PURE, also)
    with pytest.raises(Conflict):
        audit.append(WRITE, fails)
    assert state.read("SELECT COUNT(*) FROM other") == [(1,)]
    assert [row.line for row in audit.rows()] == [PURE]


class Mute(SqliteState):
    """A server that commits and fails to say so, or cannot be reached."""

    told: tuple[str, ...] = ()

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Sql]:
        fault, self.told = (*self.told, "")[0], self.told[1:]
        if fault == "away":
            raise StorageUnavailable("There is no server.")
        with super().transaction(durable=durable) as sql:
            yield sql
        if fault == "mute":
            raise StorageUnavailable("The server went away.")


@pytest.mark.parametrize("faults", [("mute",), ("mute", "away")])
@pytest.mark.parametrize("effect", ["pure", "write"])
def test_a_line_that_a_server_has_without_saying_so_takes_no_later_line_with_it(
    faults: tuple[str, ...], effect: str
) -> None:
    state = Mute(":memory:")
    audit = Audit(state)
    result = LINE._replace(event="result", effect=effect)
    state.told = faults
    with pytest.raises(StorageUnavailable):
        audit.append(WRITE)
    with suppress(StorageUnavailable):
        audit.append(result)
    state.told = ()
    assert [row.line for row in audit.rows()] == [WRITE, result]
    assert audit.verify() is not None


def test_two_processes_write_one_chain(tmp_path: Path) -> None:
    logs = [Audit(SqliteState(tmp_path / "audit.db")) for _ in range(2)]
    for number in range(20):
        logs[number % 2].append(READ._replace(call=str(number)))
    assert [row.line.call for row in logs[0].rows()] == [str(number) for number in range(20)]
    assert logs[0].verify() is not None


def test_threads_share_a_log() -> None:
    state = SqliteState(":memory:")
    audit = Audit(state)
    threads = [threading.Thread(target=lambda: [audit.append(READ) for _ in range(20)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [row.sequence for row in audit.rows()] == list(range(1, 161))


def test_a_forked_child_cannot_use_the_log() -> None:
    state = SqliteState(":memory:")
    audit = Audit(state)
    pid = os.fork()
    if pid == 0:
        try:
            audit.append(PURE)
        except StorageUnavailable:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
