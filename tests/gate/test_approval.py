"""A person confirms exactly one call, once, and in time."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from gate_bench import ANN, TEXT, Allow, Bench, tool

from toolwise.core.clock import FakeClock
from toolwise.core.errors import ApprovalExpired, BadInput
from toolwise.core.limits import LIMITS
from toolwise.core.types import Call, Effect, Principal, Result, Tool
from toolwise.gate.approval import Approval, view
from toolwise.gate.policy import Decision
from toolwise.gate.state import open_state


class Ask(Allow):
    """Everything, once a person has confirmed it."""

    def decide(self, *asked: Any) -> Decision:
        super().decide(*asked)
        return Decision("ask", "a person looks")


class Desk:
    """A gate that asks about its one tool, and the person who is asked."""

    def __init__(self, tools: tuple[Tool, ...] = (), **settings: Any) -> None:
        self.sent: list[dict[str, Any]] = []
        self.clock = FakeClock(datetime(2024, 5, 1, 12, tzinfo=UTC))
        send = tool(lambda **given: self.sent.append(given), "send", Effect.WRITE, to=TEXT, text=TEXT)
        policy = settings.pop("policy", Ask())
        self.bench = Bench(tools or (send,), policy, {"clock": self.clock} | settings)
        self.approvals = self.bench.gate.approvals

    def call(self, id: str = "c1", context: Any = ANN, **arguments: Any) -> Result:
        return self.bench.gate.execute(Call(id, "send", arguments), context)

    def decide(self, result: Result, verdict: Any = "approved") -> Approval:
        asked = self.approvals.get(result.approval)
        return self.approvals.decide(asked.id, verdict, "Ann", asked.digest)


def test_a_call_waits_for_a_person_and_runs_once_when_it_comes_again() -> None:
    desk = Desk()
    first = desk.call(to="bob")
    assert (first.code, desk.sent) == ("approval_required", [])
    assert first.approval in first.text
    assert desk.call(to="bob").approval == first.approval, "the same question is not asked twice"
    assert [asked.id for asked in desk.approvals.pending()] == [first.approval]
    desk.decide(first)
    assert desk.call(to="bob").ok
    assert desk.sent == [{"to": "bob"}]
    assert desk.call(to="bob").ok, "the stored result; nobody is asked again"
    assert desk.sent == [{"to": "bob"}]
    assert (desk.approvals.get(first.approval).state, desk.approvals.pending()) == ("used", [])
    assert [event for event, _ in desk.bench.events] == [
        *("refused", "refused", "approved", "intent", "result", "replayed")
    ]


def test_a_call_that_a_person_rejected_is_denied_from_then_on() -> None:
    desk = Desk()
    desk.decide(desk.call(to="bob"), "rejected")
    assert desk.call(to="bob").code == desk.call(to="bob").code == "denied"
    assert desk.sent == []


@pytest.mark.case("G5")
def test_an_approval_holds_for_exactly_the_arguments_that_were_shown() -> None:
    desk = Desk()
    approved = desk.call(to="bob", text="hello")
    desk.decide(approved)
    changed = desk.call(to="bob", text="hellp")
    assert (changed.code, desk.sent) == ("approval_required", [])
    assert changed.approval != approved.approval
    assert desk.approvals.get(approved.approval).state == "void"
    assert desk.call(to="bob", text="hello").code == "approval_required", "the first one is not revived"


@pytest.mark.case("G5")
def test_an_approval_of_one_call_is_none_for_another_run_user_or_id() -> None:
    desk = Desk()
    desk.decide(desk.call(to="bob"))
    for other in (replace(ANN, run_id="run-2"), replace(ANN, principal=Principal("eve"))):
        assert desk.call(context=other, to="bob").code == "approval_required"
    assert desk.call("c2", to="bob").code == "approval_required"
    assert desk.sent == []


@pytest.mark.case("G5")
def test_an_approval_dies_with_the_definition_and_with_the_policy_under_which_it_was_given(tmp_path: Path) -> None:
    class Stricter(Ask):
        version = "2"

    def send(description: str) -> Tool:
        return replace(tool(lambda **given: None, "send", Effect.WRITE, to=TEXT), description=description)

    state = open_state(tmp_path / "state.db")
    first = Desk((send("Sends."),), state=state)
    first.decide(first.call(to="bob"))
    for other in (
        Desk((send("Sends!"),), state=state),
        Desk((send("Sends."),), state=state, policy=Stricter()),
    ):
        assert other.call(to="bob").code == "approval_required"


def test_questions_and_answers_survive_a_restart(tmp_path: Path) -> None:
    asked = Desk(state=open_state(tmp_path / "state.db")).call(to="bob")
    decided = Desk(state=open_state(tmp_path / "state.db"))
    decided.decide(asked)
    after = Desk(state=open_state(tmp_path / "state.db"))
    assert after.call(to="bob").ok
    assert after.sent == [{"to": "bob"}]


@pytest.mark.case("D11")
def test_an_approval_after_its_expiry_approves_nothing() -> None:
    desk = Desk()
    late = desk.call(to="bob")
    desk.clock.advance(LIMITS.approval_seconds + 1)
    with pytest.raises(ApprovalExpired):
        desk.decide(late)
    again = desk.call(to="bob")
    assert (again.code, desk.sent) == ("approval_required", [])
    assert again.approval != late.approval
    desk.decide(again)
    desk.clock.advance(LIMITS.approval_seconds + 1)
    assert (desk.call(to="bob").code, desk.sent) == ("approval_expired", [])


@pytest.mark.case("D6")
def test_an_approval_does_not_expire_because_the_wall_clock_was_put_back() -> None:
    desk = Desk()
    desk.decide(desk.call(to="bob"))
    desk.clock.set(desk.clock.now() - timedelta(hours=1))
    assert desk.call(to="bob").ok


def test_a_decision_counts_only_for_the_text_that_was_shown_and_only_once() -> None:
    desk = Desk()
    asked = desk.call(to="bob")
    with pytest.raises(BadInput):
        desk.approvals.decide(asked.approval, "approved", "Ann", "0" * 64)
    with pytest.raises(BadInput):
        desk.approvals.decide(asked.approval, "approved", "", desk.approvals.get(asked.approval).digest)
    with pytest.raises(BadInput):
        desk.approvals.get("no such id")
    desk.decide(asked, "rejected")
    with pytest.raises(BadInput):
        desk.decide(asked)
    assert desk.call(to="bob").code == "denied"


@pytest.mark.case("G8")
def test_a_flood_of_questions_is_bounded_for_each_user() -> None:
    desk = Desk(limits=replace(LIMITS, pending_approvals=3))
    codes = [desk.call(f"c{number}", to="bob").code for number in range(200)]
    assert codes == ["approval_required"] * 3 + ["limit"] * 197
    assert (len(desk.approvals.pending()), desk.sent) == (3, [])
    assert desk.call("c1", replace(ANN, principal=Principal("eve")), to="bob").code == "approval_required"
    desk.clock.advance(LIMITS.approval_seconds + 1)
    assert desk.call("c999", to="bob").code == "approval_required", "questions that expired make room"


@pytest.mark.case("G7")
def test_what_is_shown_is_the_whole_call_escaped_with_its_length() -> None:
    text = "\n" * 5_000 + "pay \u202eeve\u2066 \u2028 \x1b[2J" + "x" * 20_000
    desk = Desk()
    asked = desk.approvals.get(desk.call(to="bob", text=text).approval)
    assert "\\n" * 5_000 in asked.shown
    assert "x" * 20_000 in asked.shown
    assert len(asked.shown.split("\n")) == 5
    assert all(line.isprintable() for line in asked.shown.split("\n"))
    assert "\\u202eeve" in asked.shown
    assert asked.shown.startswith("send (write), for ann, ")
    length = int(asked.shown.split(", ")[2].split()[0])
    assert length > 30_000


def test_a_view_names_everything_that_the_decision_is_bound_to() -> None:
    assert view("send", "write", "ann", {"to": "bob", "n": 2}) == (
        'send (write), for ann, 27 characters of arguments:\n{\n  "to": "bob",\n  "n": 2\n}'
    )


def test_a_look_that_is_asked_about_uses_its_approval_up_too() -> None:
    looks = tool(lambda to: to, "send", Effect.READ, to=TEXT)
    desk = Desk((looks,))
    asked = desk.call(to="bob")
    desk.decide(asked)
    assert desk.call(to="bob").text == "bob"
    assert desk.approvals.get(asked.approval).state == "used"
