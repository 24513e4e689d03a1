"""An audit log seen from outside: some of its lines, those that come, and a file that proves itself."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from toolwise.core import jsonio
from toolwise.core.clock import FakeClock
from toolwise.core.errors import BadInput, Corrupt, StorageUnavailable
from toolwise.gate import audit_file
from toolwise.gate.audit import Audit, Line, last_sequence, read_rows, verify
from toolwise.gate.audit_view import Filter, behind, follow, last, moment
from toolwise.gate.existing import existing_state
from toolwise.gate.state import State, open_state

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
ODD = 'né\u2028\u00a0\0\n"\\ \\n' + "x" * 40_000


def filled(state: State, count: int = 6) -> Audit:
    """A log with one line a minute from noon on, of two runs by turns."""
    audit = Audit(state)
    for number in range(count):
        wall = (NOON + timedelta(minutes=number)).isoformat()
        audit.append(Line(f"run-{number % 2}", f"c{number}", "ann", code="denied", seconds=number / 3, wall=wall))
    audit.flush()
    return audit


def lines_elsewhere(path: Path) -> int:
    """How many lines a process sees that opens the file and closes it again; no fork, which would inherit the state."""
    count = "import sqlite3, sys; file = sqlite3.connect(sys.argv[1]); print(*file.execute(sys.argv[2]).fetchone())"
    words = [sys.executable, "-c", count, str(path), "SELECT COUNT(*) FROM audit"]
    return int(subprocess.run(words, capture_output=True, check=True, timeout=30).stdout)


@dataclass
class Growing(FakeClock):
    """A clock whose waiting is when others write."""

    write: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.write()


# Seen


def test_the_last_lines_come_in_their_order(state: State) -> None:
    filled(state)
    assert [row.sequence for row in last(state, Filter(), 2)] == [5, 6]
    assert [row.sequence for row in last(state, Filter(), 100)] == [1, 2, 3, 4, 5, 6]
    assert [row.sequence for row in last(state, Filter({"run": "run-0"}), 2)] == [3, 5]
    assert [row.sequence for row in last(state, Filter({"run": "run-0", "call": "c4"}), 2)] == [5]
    assert last(state, Filter({"principal": "eve"}), 2) == []
    assert last_sequence(state) == 6


def test_lines_since_a_moment_are_found_whatever_zone_they_were_written_in(state: State) -> None:
    audit = filled(state)
    audit.append(Line("run", "early", "ann", wall="2024-05-01T13:01:00+02:00"))
    audit.append(Line("run", "late", "ann", wall="2024-05-01T07:03:00-05:00"))
    audit.append(Line("run", "never", "ann", wall=""))
    audit.flush()
    since = Filter(since=NOON + timedelta(minutes=3))
    assert [row.line.call for row in behind(state, since)] == ["c3", "c4", "c5", "late"]


def test_lines_that_come_are_shown_as_they_come() -> None:
    state = open_state(":memory:")
    audit = filled(state, 3)
    clock = Growing(NOON, write=lambda: audit.append(Line("run-0", "new", "ann", effect="read")))
    rows = follow(state, Filter({"run": "run-0"}), 1, clock)
    assert [next(rows).line.call for _ in range(3)] == ["c2", "new", "new"]
    assert clock.elapsed > 0


def test_a_moment_is_a_date_a_time_or_how_long_ago() -> None:
    clock = FakeClock(NOON)
    assert [moment(text, clock) for text in ("90s", "15m", "2h", "7d")] == [
        NOON - timedelta(seconds=90),
        NOON - timedelta(minutes=15),
        NOON - timedelta(hours=2),
        NOON - timedelta(days=7),
    ]
    assert moment("2024-05-01T12:00:00+00:00", clock) == NOON
    assert moment("2024-05-01", clock).replace(tzinfo=None) == datetime(2024, 5, 1)  # noqa: DTZ001
    for bad in ("", "yesterday", "5", "5 m", "-5m", "9999999999d", "999999999d", "2024-13-01", "٣m"):
        with pytest.raises(BadInput):
            moment(bad, clock)


def test_whoever_looks_changes_nothing(tmp_path: Path) -> None:
    state = open_state(tmp_path / "state.db")
    filled(state)
    state.close()
    (tmp_path / "state.db").chmod(0o400)
    before = (tmp_path / "state.db").read_bytes()
    seen = existing_state(tmp_path / "state.db")
    assert verify(read_rows(seen)) is not None
    seen.close()
    assert (tmp_path / "state.db").read_bytes() == before


def test_whoever_looks_drops_no_lock_of_a_gate_in_the_same_process(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    state = open_state(path)
    filled(state)
    existing_state(path).close()
    assert lines_elsewhere(path) == 6  # whoever holds no lock has its log taken away when that process closes the file
    filled(state)
    assert lines_elsewhere(path) == 12


# Found, or refused


def test_a_state_is_found_on_either_engine(where: str) -> None:
    made = open_state(where)
    with pytest.raises(BadInput, match="No gate"):
        existing_state(where)
    filled(made)
    assert last_sequence(existing_state(where)) == 6


def test_what_is_no_state_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("SQLite format 4 and more")
    (tmp_path / "empty").write_bytes(b"")
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    (tmp_path / "broken.db").write_bytes((tmp_path / "other.db").read_bytes()[:300])
    os.mkfifo(tmp_path / "unused")
    before = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    for name in ("missing.db", "text", "empty", "other.db", ".", "missing/state.db", "x" * 300):
        with pytest.raises(BadInput):
            existing_state(tmp_path / name)
    with pytest.raises(StorageUnavailable):
        existing_state(tmp_path / "broken.db")
    assert {path.name: path.stat().st_size for path in tmp_path.iterdir()} == before
    with sqlite3.connect(tmp_path / "other.db") as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("delete",)


# Exported


def exported(path: Path) -> tuple[Audit, list[str]]:
    """A log with odd texts, and the lines of its export."""
    audit = filled(open_state(":memory:"))
    audit.append(Line("run", "odd", "ann", arguments=ODD, detail=ODD, seconds=1e-9 / 3, effect="read"))
    assert audit_file.write(path, audit.rows()) == 7
    return audit, path.read_text(encoding="utf-8").split("\n")[:-1]


def test_an_export_is_read_back_exactly_and_holds_its_chain(tmp_path: Path) -> None:
    audit, lines = exported(tmp_path / "log.jsonl")
    assert list(audit_file.read(tmp_path / "log.jsonl")) == list(audit.rows())
    assert verify(audit_file.read(tmp_path / "log.jsonl")) == audit.verify()
    assert len(lines) == 7
    assert {"sequence", "hash", "run", "call", "event"} <= jsonio.loads(lines[0]).keys()


def test_an_empty_log_has_an_empty_export(tmp_path: Path) -> None:
    assert audit_file.write(tmp_path / "log.jsonl", []) == 0
    assert list(audit_file.read(tmp_path / "log.jsonl")) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: [*lines[:2], *lines[3:]],
        lambda lines: [lines[0], *lines],
        lambda lines: [line.replace('"c2"', '"c9"') for line in lines],
        lambda lines: [*lines[:3], lines[3][:-5]],
        lambda lines: [*lines, "null"],
        lambda lines: [*lines, lines[0].replace('"hash"', '"hush"')],
        lambda lines: [*lines, lines[0].replace('"sequence":1', '"sequence":"1"')],
        lambda lines: [*lines, lines[0].replace('"seconds":0.0', '"seconds":0')],
    ],
)
def test_an_export_that_was_changed_is_found_out(damage: Callable[[list[str]], list[str]], tmp_path: Path) -> None:
    _, lines = exported(tmp_path / "log.jsonl")
    assert damage(lines) != lines
    (tmp_path / "log.jsonl").write_text("".join(f"{line}\n" for line in damage(lines)), encoding="utf-8")
    with pytest.raises(Corrupt):
        verify(audit_file.read(tmp_path / "log.jsonl"))


def test_an_export_is_whole_or_not_there(tmp_path: Path) -> None:
    rows = list(exported(tmp_path / "first.jsonl")[0].rows())

    def breaks_off() -> object:
        yield from rows[:1] * 3_000
        raise StorageUnavailable("gone")

    for path in (tmp_path / "log.jsonl", tmp_path / "first.jsonl"):
        with pytest.raises(StorageUnavailable):
            audit_file.write(path, breaks_off())  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["first.jsonl"]
    assert len(list(audit_file.read(tmp_path / "first.jsonl"))) == 7
    with pytest.raises(StorageUnavailable):
        audit_file.write(Path("/dev/full"), rows)
    for missing in (tmp_path, tmp_path / "missing.jsonl"):
        with pytest.raises(BadInput):
            list(audit_file.read(missing))


def test_a_line_with_a_changed_time_is_not_late_enough_for_anything(tmp_path: Path) -> None:
    state = open_state(":memory:")
    row = next(filled(state).rows())
    assert Filter(since=NOON).passes(row)
    assert not Filter(since=NOON).passes(replace(row, line=row.line._replace(wall="never")))
