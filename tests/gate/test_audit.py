"""The log: in order, durable where it must be, refusing work where it cannot write."""

import os
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from toolwise.core.errors import StorageUnavailable
from toolwise.core.limits import LIMITS
from toolwise.gate.audit import Audit, Line

LINE = Line("run", "call", "ann")
PURE, READ, WRITE = (replace(LINE, event="intent", effect=effect) for effect in ("pure", "read", "write"))


def stored(path: Path) -> list[tuple[str, str]]:
    """Effect and event of what another process would see."""
    with sqlite3.connect(path) as other:
        return other.execute("SELECT effect, event FROM audit ORDER BY sequence").fetchall()


def fill(audit: Audit) -> None:
    """No page more, from now on."""
    pages = audit.connection.execute("PRAGMA page_count").fetchone()[0]
    audit.connection.execute(f"PRAGMA max_page_count = {pages}")


def empty(audit: Audit) -> None:
    audit.connection.execute("PRAGMA max_page_count = 1000000")


def test_lines_come_back_whole_and_in_order() -> None:
    audit = Audit(":memory:")
    lines = [PURE, replace(WRITE, code="né", seconds=0.5), READ, LINE]
    for line in lines:
        audit.append(line)
    rows = audit.rows()
    assert [row.line for row in rows] == lines
    assert [row.sequence for row in rows] == [1, 2, 3, 4]


def test_a_line_about_an_effect_is_in_the_file_at_once_and_takes_the_waiting_ones_along(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.db")
    audit.append(PURE)
    assert stored(tmp_path / "audit.db") == []
    audit.append(WRITE)
    assert stored(tmp_path / "audit.db") == [("pure", "intent"), ("write", "intent")]
    audit.append(READ)
    assert len(stored(tmp_path / "audit.db")) == 3


def test_only_effects_are_synchronised_with_the_disk() -> None:
    audit = Audit(":memory:")
    levels = []
    for line in (READ, WRITE, replace(WRITE, event="result"), replace(WRITE, event="refused")):
        audit.append(line)
        levels.append(audit.connection.execute("PRAGMA synchronous").fetchone()[0])
    normal, full = 1, 2
    assert levels == [normal, full, full, normal]


def test_lines_without_effect_are_written_in_batches(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.db", limits=replace(LIMITS, audit_batch=10))
    for _ in range(25):
        audit.append(PURE)
    assert len(stored(tmp_path / "audit.db")) == 22
    audit.close()
    assert len(stored(tmp_path / "audit.db")) == 25


def test_a_second_run_continues_the_log(tmp_path: Path) -> None:
    for _ in range(2):
        audit = Audit(tmp_path / "audit.db")
        audit.append(PURE)
        audit.close()
    assert [row.sequence for row in Audit(tmp_path / "audit.db").rows()] == [1, 2]


@pytest.mark.case("F1")
def test_a_place_that_cannot_hold_a_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.db").write_bytes(b"no database" * 1000)
    for path in ("/dev/full", tmp_path, tmp_path / "missing" / "audit.db", tmp_path / "other.db"):
        with pytest.raises(StorageUnavailable):
            Audit(path)


@pytest.mark.case("F1")
def test_on_a_full_disk_an_intent_is_refused_and_not_written_later(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.db")
    fill(audit)
    long = replace(WRITE, arguments="x" * 10_000)
    with pytest.raises(StorageUnavailable):
        audit.append(long)
    empty(audit)
    assert audit.rows() == []


@pytest.mark.case("F2")
def test_on_a_full_disk_a_result_is_kept_and_no_effect_starts_until_it_is_written(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.db")
    audit.append(WRITE)
    fill(audit)
    owed = replace(WRITE, event="result", detail="x" * 10_000)
    for line in (owed, WRITE, READ):
        with pytest.raises(StorageUnavailable):
            audit.append(line)
    empty(audit)
    audit.append(WRITE)
    assert [row.line for row in audit.rows()] == [WRITE, owed, WRITE]


@pytest.mark.case("F1")
def test_what_cannot_be_written_does_not_grow_without_bound(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit.db", limits=replace(LIMITS, audit_batch=10))
    fill(audit)
    refused = 0
    for _ in range(100):
        try:
            audit.append(replace(PURE, event="refused", arguments="x" * 2_000))
        except StorageUnavailable:
            refused += 1
    assert refused == 90
    empty(audit)
    assert len(audit.rows()) == 10


def test_the_log_knows_which_writes_were_started() -> None:
    audit = Audit(":memory:")
    assert audit.written("ann", "run", "call") == []
    for line in (replace(WRITE, event="refused"), WRITE, PURE, replace(WRITE, event="result")):
        audit.append(line)
    assert audit.written("ann", "run", "call") == ["intent", "result"]
    assert audit.written("bob", "run", "call") == []


def test_threads_share_a_log() -> None:
    audit = Audit(":memory:")
    threads = [threading.Thread(target=lambda: [audit.append(READ) for _ in range(20)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [row.sequence for row in audit.rows()] == list(range(1, 161))


def test_a_forked_child_cannot_use_the_log() -> None:
    audit = Audit(":memory:")
    pid = os.fork()
    if pid == 0:
        try:
            audit.append(PURE)
        except StorageUnavailable:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
