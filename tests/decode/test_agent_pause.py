"""A run that waits for a person: what it keeps, who may change it, and how it goes on, also in another process."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent_runs import ANN, Desk, Turns, call, results, turn, unanswered, went
from toolwise.core import jsonio
from toolwise.core.chat import ChatCall, Message, Role, TokenUsage
from toolwise.core.errors import BadInput
from toolwise.core.types import CallContext
from toolwise.decode.agent import Agent
from toolwise.decode.events import CallEnded, CallStarted, CallWaits, Saved
from toolwise.decode.run_state import Outcome, RunState

SEND = call("send", '{"to": "carol"}', "s1")
ASKING = turn(SEND, call("look", "{}", "l1"))
ANSWER = turn(text="It is sent.")


@pytest.mark.case("R45")
def test_one_call_that_waits_costs_its_neighbours_nothing_and_runs_once() -> None:
    desk = Desk()
    paused, events = went(Turns(ASKING), desk)
    assert (paused.reason, desk.done) == ("approval", [("look", {})])
    (waits,) = [event for event in events if isinstance(event, CallWaits)]
    assert paused.state.waiting == ((SEND, waits.approval),)
    still, _ = went(Turns(ANSWER), desk, paused.state)
    assert still.reason == "approval"
    desk.decide(waits.approval)
    ended, events = went(Turns(ANSWER), desk, still.state)
    assert [event.call.name for event in events if isinstance(event, CallStarted)] == ["send"]
    assert ended.reason == "end"
    assert desk.done == [("look", {}), ("send", {"to": "carol"})]
    assert [(m.call_id, "done" in m.text) for m in results(ended.state)] == [("s1", True), ("l1", True)]


def test_a_call_that_a_person_rejects_goes_back_as_refused() -> None:
    desk = Desk()
    paused, _ = went(Turns(ASKING), desk)
    desk.decide(paused.state.waiting[0][1], "rejected")
    ended, _ = went(Turns(ANSWER), desk, paused.state)
    assert results(ended.state)[0].text.startswith("Error (denied): A person looked")
    assert desk.done == [("look", {})]


@pytest.mark.case("R44")
def test_an_approval_is_of_no_use_to_a_call_that_was_changed_in_the_file() -> None:
    desk = Desk()
    paused, _ = went(Turns(ASKING), desk)
    desk.decide(paused.state.waiting[0][1])
    changed = RunState.from_json(paused.state.to_json().replace("carol", "mallory"), "ann")
    again, _ = went(Turns(ANSWER), desk, changed)
    assert again.reason == "approval"
    assert again.state.waiting[0][1] != paused.state.waiting[0][1]
    assert ("send", {"to": "mallory"}) not in desk.done


CHILD = """
import os, sys
from agent_runs import *
from toolwise.decode.events import *
desk = Desk(sys.argv[1])
state = RunState.begin("ann", id="run-9").asked("Send it.")
for event in Agent(Turns(turn(call("send", '{"to": "carol"}', "s1"), call("look", "{}", "l1"))), desk.gate,
                   desk.tools).run(state, CallContext(ANN, state.id)):
    if isinstance(event, Saved):
        open(sys.argv[2], "w").write(event.state.to_json())
    if isinstance(event, RunEnded):
        os._exit(9)
"""


def test_a_paused_run_goes_on_in_another_process_after_its_own_was_killed(tmp_path: Path) -> None:
    where, kept = tmp_path / "gate.db", tmp_path / "run.json"
    tests = str(Path(__file__).parents[1])
    child = f"import sys; sys.path.insert(0, {tests!r}){CHILD}"
    done = subprocess.run([sys.executable, "-c", child, where, kept], check=False, timeout=60)
    assert done.returncode == 9
    state = RunState.from_json(kept.read_text(), "ann")
    desk = Desk(where)
    desk.decide(state.waiting[0][1])
    ended, _ = went(Turns(ANSWER), desk, state)
    assert (ended.reason, ended.state.text) == ("end", "It is sent.")
    assert desk.done == [("send", {"to": "carol"})]  # the look was done by the one that died
    desk.close()


def test_a_run_that_died_after_an_effect_gets_the_kept_result(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "gate.db")
    paused, _ = went(Turns(turn(SEND)), desk)
    desk.decide(paused.state.waiting[0][1])
    running = Agent(Turns(ANSWER), desk.gate, desk.tools).run(paused.state, CallContext(ANN, paused.state.id))
    assert any(isinstance(event, CallEnded) for event in running)  # and dies before that could be kept
    desk.close()
    later = Desk(tmp_path / "gate.db")
    ended, _ = went(Turns(ANSWER), later, paused.state)
    assert (ended.reason, desk.done, later.done) == ("end", [("send", {"to": "carol"})], [])
    assert "send done" in results(ended.state)[0].text
    later.close()


def test_a_question_cannot_be_asked_over_calls_that_wait_until_they_are_interrupted() -> None:
    desk = Desk()
    paused, _ = went(Turns(ASKING), desk)
    with pytest.raises(BadInput, match="go on with it, or interrupt it"):
        paused.state.asked("Never mind.")
    ended, _ = went(Turns(ANSWER), desk, paused.state.interrupted().asked("Never mind."))
    assert ended.reason == "end"
    assert unanswered(ended.state) == []


def state_with_everything() -> RunState:
    begun = RunState.begin("ann", [Message(Role.SYSTEM, "日本語 \0 \u2028")], id="run-1").asked("Do it.")
    calls = (ChatCall("a", "look", '{"n": 9007199254740993, "u": 1.0}'), ChatCall("b", "", "{", complete=False))
    return replace(
        begun,
        messages=(*begun.messages, Message(Role.ASSISTANT, "", calls)),
        pending=(replace(_outcome(), code="ok", text="x"), _outcome()),
        usage=TokenUsage(1, 2, 3),
        progress=replace(begun.progress, seen=(("d", 2),), told=("cut",)),
    )


def _outcome() -> Outcome:
    return Outcome(approval="abc")


def test_a_state_is_the_same_after_reading_what_was_written() -> None:
    state = state_with_everything()
    assert RunState.from_json(state.to_json(), "ann") == state
    assert RunState.from_json(state.to_json().encode(), "ann") == state


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("version",), 2, "version 1"),
        (("version",), True, "version 1"),
        (("extra",), None, "state.extra"),
        (("messages", 0, "extra"), 1, r"state.messages\[0\].extra"),
        (("messages", 0, "role"), "developer", r"state.messages\[0\].role"),
        (("messages", 2, "calls", 0, "id"), 5, r"calls\[0\].id"),
        (("choice", "mode"), "any", "state.choice.mode"),
        (("turn",), True, "state.turn"),
        (("turn",), -1, "state.turn"),
        (("usage", "prompt"), 1.0, "state.usage.prompt"),
        (("progress", "seen"), [["d", 2, 3]], r"state.progress.seen\[0\]"),
        (("progress", "seen"), {}, "state.progress.seen"),
        (("pending",), [{"code": "", "text": "", "approval": ""}], "state.pending"),
        (("principal",), "bob", '"bob"'),
    ],
)
def test_a_state_that_is_not_exactly_one_is_refused_by_name(
    path: tuple[object, ...], value: object, named: str
) -> None:
    body = jsonio.loads(state_with_everything().to_json())
    inside = body
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value
    with pytest.raises(BadInput, match=named):
        RunState.from_json(jsonio.dumps(body), "ann")


def test_a_field_that_is_missing_is_named_and_what_is_no_json_is_no_state() -> None:
    body = jsonio.loads(state_with_everything().to_json())
    del body["nonce"]
    with pytest.raises(BadInput, match=r"state\.nonce: the field is missing"):
        RunState.from_json(jsonio.dumps(body), "ann")
    for text in ("", "[]", "null", '{"version": 1, "version": 1}', "{"):
        with pytest.raises(BadInput):
            RunState.from_json(text, "ann")


def test_what_is_kept_before_calls_run_is_enough_to_run_them() -> None:
    desk = Desk()
    state = RunState.begin("ann").asked("Look.")
    running = Agent(Turns(turn(call("look"))), desk.gate, desk.tools).run(state, CallContext(ANN, state.id))
    kept = next(event.state for event in running if isinstance(event, Saved))
    running.close()  # type: ignore[attr-defined]
    assert desk.done == []
    ended, _ = went(Turns(ANSWER), desk, kept)
    assert (ended.reason, desk.done) == ("end", [("look", {})])
