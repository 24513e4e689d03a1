"""An operator says what became of a call whose outcome is unknown, and the audit log says who did."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from toolwise.core.clock import FakeClock
from toolwise.core.errors import BadInput, StorageUnavailable
from toolwise.gate.audit import Audit, Line
from toolwise.gate.ledger import Durable, Entry
from toolwise.gate.reconcile import named, resolve
from toolwise.gate.state import Sql, State, open_state

CALL = Entry("ann", "run-1", "c1", "pay", "digest")


class Desk:
    """A ledger with one call of unknown outcome and one that is done."""

    def __init__(self, state: State) -> None:
        self.clock = FakeClock(datetime(2024, 5, 1, tzinfo=UTC))
        self.audit = Audit(state)
        self.ledger = Durable(state, self.clock)
        for entry, end in ((CALL, "unknown"), (Entry("ann", "run-1", "c2", "pay", "digest"), "done")):
            self.audit.append(Line("run-1", entry.call, "ann", effect="write"), self._begun(entry))
            self.audit.append(Line("run-1", entry.call, "ann", effect="write"), self._ended(entry, end))
            self.ledger.leave(entry)

    def _begun(self, entry: Entry) -> Any:
        return lambda sql: self.ledger.begin(entry, sql)

    def _ended(self, entry: Entry, end: Any) -> Any:
        return lambda sql: self.ledger.finish(entry, None, end, sql)

    def states(self) -> dict[str, str]:
        return {record.call: record.state for record in self.ledger.records()}

    def resolve(self, key: str = CALL.key, end: Any = "done", by: str = "Ann") -> Any:
        return resolve(self.ledger, self.audit, self.clock, key, end, by)

    def lines(self) -> list[Line]:
        return [row.line for row in self.audit.rows() if row.line.event == "resolved"]


def test_a_call_that_was_done_is_done_from_now_on_and_the_log_says_who_said_so(state: State) -> None:
    desk = Desk(state)
    assert desk.resolve().state == "unknown"
    assert desk.states() == {"c1": "done", "c2": "done"}
    (line,) = desk.lines()
    assert (line.run, line.call, line.principal, line.tool) == ("run-1", "c1", "ann", "pay")
    assert (line.event, line.effect, line.code, line.fingerprint) == ("resolved", "write", "done", "digest")
    assert "unknown before; by Ann" in line.detail
    assert line.wall.startswith("2024-05-01")
    assert desk.ledger.find(CALL) is not None
    assert desk.audit.verify() is not None


def test_a_call_that_was_not_done_may_begin_anew(state: State) -> None:
    desk = Desk(state)
    desk.resolve(CALL.key[:8], "retry")
    assert desk.states() == {"c2": "done"}
    assert desk.lines()[0].code == "retry"
    assert desk.ledger.find(CALL) is None


@pytest.mark.parametrize(
    ("key", "by"),
    [
        ("", "Ann"),
        (CALL.key[:7], "Ann"),
        ("f" * 64, "Ann"),
        (CALL.key + "0", "Ann"),
        (Entry("ann", "run-1", "c2", "", "").key, "Ann"),
        (CALL.key, ""),
        (CALL.key, "A" * 300),
    ],
)
def test_what_cannot_be_resolved_is_refused_and_leaves_no_line(key: str, by: str) -> None:
    desk = Desk(open_state(":memory:"))
    with pytest.raises(BadInput):
        desk.resolve(key, by=by)
    assert desk.states() == {"c1": "unknown", "c2": "done"}
    assert desk.lines() == []


def test_a_resolution_and_its_line_stand_or_fall_together(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(open_state(":memory:"))

    def full(*_: object) -> None:
        raise StorageUnavailable("full")

    real = desk.ledger.resolve

    def then_full(key: str, end: Any, sql: Sql) -> None:
        real(key, end, sql)
        full()

    monkeypatch.setattr(desk.ledger, "resolve", then_full)
    with pytest.raises(StorageUnavailable):
        desk.resolve()
    assert desk.states() == {"c1": "unknown", "c2": "done"}
    assert desk.lines() == []


def test_two_operators_do_not_resolve_one_call_twice() -> None:
    desk = Desk(open_state(":memory:"))
    desk.resolve()
    with pytest.raises(BadInput):
        desk.resolve(end="retry")
    assert len(desk.lines()) == 1


def test_the_beginning_of_a_key_names_a_call_only_if_no_other_key_begins_so() -> None:
    records = Desk(open_state(":memory:")).ledger.records()
    twin = type(records[0])(**{name: getattr(records[0], name) for name in records[0].__dataclass_fields__})
    with pytest.raises(BadInput):
        named([*records, twin], records[0].key[:12])
