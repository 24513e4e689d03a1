"""The message loop: what is executed, what goes back, and why it ends, whatever a model does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_runs import ANN, Desk, Turns, call, results, turn, unanswered, went
from toolwise.core.chat import ChatDelta, ChatRequest, Role, StopReason, TextDelta, ToolChoice
from toolwise.core.errors import BadInput, ModelUnavailable
from toolwise.core.limits import LIMITS
from toolwise.core.types import CallContext
from toolwise.decode.agent import Agent
from toolwise.decode.events import CallEnded, CallStarted, RunEnded, Saved
from toolwise.decode.run_state import RunState
from toolwise.gate.turn import Cancel

SUM = call("add", '{"a": 1, "b": 2}')
ANSWER = turn(text="The answer.")


def codes(events: object) -> list[str]:
    return [event.result.code for event in events if isinstance(event, CallEnded)]  # type: ignore[attr-defined]


def test_a_question_is_answered_with_the_results_of_calls() -> None:
    model, desk = Turns(turn(SUM, text="Let me see. "), ANSWER), Desk()
    ended, events = went(model, desk)
    assert (ended.reason, ended.state.text) == ("end", "The answer.")
    assert [m.role.value for m in ended.state.messages] == ["user", "assistant", "tool", "assistant"]
    assert results(ended.state)[0].text == "3"
    kinds = [type(event).__name__ for event in events]
    assert kinds == ["TextDelta", "Saved", "CallStarted", "CallEnded", "Saved", "TextDelta", "Saved", "RunEnded"]
    assert ended.state.usage.completion == 10
    assert model.closed == 2


def test_the_gate_knows_calls_by_ids_of_ours_and_the_model_by_its_own() -> None:
    desk = Desk()
    ended, events = went(Turns(turn(replace(SUM, id="../x"), replace(SUM, id="y")), ANSWER), desk)
    assert [event.id for event in events if isinstance(event, CallStarted)] == ["1.0", "1.1"]
    assert [message.call_id for message in results(ended.state)] == ["../x", "y"]
    assert {row.line.call for row in desk.gate.audit.rows()} == {"1.0", "1.1"}


@pytest.mark.case("R20")
def test_ids_that_are_empty_or_stand_twice_in_a_turn_become_new_ones() -> None:
    made = [replace(SUM, id=id) for id in ("", "call_1_0", "x", "x", "")]
    ended, _ = went(Turns(turn(*made), ANSWER), Desk())
    assert unanswered(ended.state) == []
    assert [message.call_id for message in results(ended.state)][2] == "x"


@pytest.mark.case("R19")
def test_results_go_back_in_the_order_of_the_calls_however_late_one_is() -> None:
    other_ended = threading.Event()

    def run(at: str = "") -> str:
        return str(at == "second" or other_ended.wait(10))

    desk = Desk(look=run)
    looks = turn(call("look", '{"at": "first"}', "a"), call("look", '{"at": "second"}', "b"))
    state, ended = RunState.begin("ann").asked("Do it."), []
    for event in Agent(Turns(looks, ANSWER), desk.gate, desk.tools).run(state, CallContext(ANN, state.id)):
        if isinstance(event, CallEnded):
            ended.append(event.call.id)
            other_ended.set()
    assert ended == ["b", "a"]
    assert isinstance(event, RunEnded)
    assert [message.call_id for message in results(event.state)] == ["a", "b"]


@pytest.mark.case("R12")
def test_an_unknown_tool_goes_back_with_the_nearest_names_and_the_others_run() -> None:
    desk = Desk()
    ended, _ = went(Turns(turn(call("ad", "{}", "a"), replace(SUM, id="b")), ANSWER), desk)
    first, second = results(ended.state)
    assert first.is_error
    assert '"add"' in first.text
    assert second.text == "3"
    assert desk.done == [("add", {"a": 1, "b": 2})]


def test_what_is_no_call_and_arguments_that_do_not_fit_go_back() -> None:
    ended, events = went(Turns(turn(call("", "add(1"), call("add", '{"a": 1}', "b")), ANSWER), Desk())
    assert sorted(codes(events)) == ["invalid_arguments", "malformed_call"]
    assert ended.reason == "end"


@pytest.mark.case("R21")
def test_where_one_call_a_turn_is_allowed_the_first_runs_and_the_others_are_told() -> None:
    desk = Desk()
    ended, events = went(Turns(turn(*[replace(SUM, id=id) for id in "abc"]), ANSWER), desk, parallel=False)
    assert len(desk.done) == 1
    assert sorted(codes(events)) == ["limit", "limit", "ok"]
    assert results(ended.state)[0].text == "3"
    assert "did not run" in results(ended.state)[1].text


@pytest.mark.case("R29")
def test_where_no_call_is_allowed_one_is_refused() -> None:
    desk = Desk()
    state = RunState.begin("ann").asked("Do it.", ToolChoice("none"))
    ended, events = went(Turns(turn(SUM), ANSWER), desk, state)
    assert (codes(events), desk.done, ended.reason) == (["denied"], [], "end")


@pytest.mark.case("R29")
def test_a_call_that_must_come_and_does_not_is_asked_for_once() -> None:
    state = RunState.begin("ann").asked("Do it.", ToolChoice("required"))
    model = Turns(turn(text="No."))
    ended, _ = went(model, Desk(), state)
    assert (ended.reason, len(model.asked)) == ("missing_call", 2)
    late, _ = went(Turns(turn(text="No."), turn(SUM), ANSWER), Desk(), state)
    assert late.reason == "end"


@pytest.mark.case("R27")
def test_a_forced_call_is_forced_until_it_is_made() -> None:
    state = RunState.begin("ann").asked("Do it.", ToolChoice("required", ("add",)))
    model = Turns(turn(call("ad")), turn(call("look")), turn(SUM), ANSWER)
    ended, events = went(model, Desk(), state)
    assert [request.choice.mode for request in model.asked] == ["required", "required", "required", "auto"]
    assert codes(events) == ["denied", "denied", "ok"]
    assert ended.reason == "end"


@pytest.mark.case("R28")
def test_the_same_call_with_the_same_result_is_told_once_and_then_ends_the_run() -> None:
    model, desk = Turns(turn(call("look"))), Desk()
    ended, _ = went(model, desk, repeats=3)
    assert (ended.reason, len(model.asked)) == ("no_progress", 4)
    assert ["3 times" in message.text for message in results(ended.state)] == [False, False, True, False]
    assert unanswered(ended.state) == []


@pytest.mark.case("R28")
def test_the_same_call_several_times_in_one_turn_is_one_repetition() -> None:
    looks = turn(*[call("look", id=id) for id in "abcd"])
    model = Turns(looks, looks, ANSWER)
    assert went(model, Desk(), repeats=2)[0].reason == "end"
    assert ["2 times" in message.text for message in model.asked[2].messages[-4:]] == [True] * 4
    assert went(Turns(looks), Desk(), repeats=2)[0].reason == "no_progress"


@pytest.mark.case("J4")
def test_a_run_that_can_afford_nothing_more_ends() -> None:
    ended, events = went(Turns(turn(call("look")), turn(call("look", '{"at": "b"}'))), Desk(calls=1))
    assert (ended.reason, codes(events)) == ("budget", ["ok", "budget_exceeded"])


def test_turns_and_tokens_are_bounded() -> None:
    looks = [turn(call("look", f'{{"at": "{number}"}}')) for number in range(9)]
    assert went(Turns(*looks), Desk(), turns=3)[0].reason == "turns"
    ended, _ = went(Turns(*looks), Desk(), tokens=30)
    assert (ended.reason, ended.state.turn) == ("tokens", 2)
    again, _ = went(Turns(ANSWER), Desk(), ended.state.asked("And now?"), tokens=30)
    assert again.reason == "end"


@pytest.mark.parametrize("stop", ["length", "refused", "end", "stop"])
def test_a_turn_that_does_not_wait_for_its_calls_has_none_executed(stop: str) -> None:
    desk = Desk()
    ended, events = went(Turns(turn(SUM, stop=StopReason(stop))), desk)
    assert (ended.reason, desk.done) == (stop, [])
    assert set(codes(events)) <= {"truncated_call", "malformed_call"}
    assert unanswered(ended.state) == []


@pytest.mark.case("R42")
def test_a_turn_that_was_cut_off_is_told_to_write_less_and_may_try_once_more() -> None:
    desk = Desk()
    cut = turn(call("add", '{"a": 1, "b":'), stop=StopReason.LENGTH)
    ended, events = went(Turns(cut, turn(SUM), ANSWER), desk)
    assert (ended.reason, codes(events)) == ("end", ["truncated_call", "ok"])
    said = went(Turns(turn(call("add", '{"a": 1, "b":')), ANSWER), desk)  # a server that calls this a whole turn
    assert "write them again, with less" in results(said[0].state)[0].text


def test_a_model_that_writes_for_ever_is_cut_off() -> None:
    class Endless:
        name = "endless"

        def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
            while True:
                yield TextDelta("and on " * 100)

    agent = Agent(Endless(), Desk().gate, limits=replace(LIMITS, chat_bytes=10_000))
    state = RunState.begin("ann").asked("Go.")
    *_, ended = agent.run(state, CallContext(ANN, state.id))
    assert ended.reason == "length"  # type: ignore[union-attr]


def test_what_others_wrote_is_set_apart_and_the_model_is_told_of_it() -> None:
    model = Turns(turn(call("look"), replace(SUM, id="b")), ANSWER)
    ended, _ = went(model, Desk(), instructions="Be brief.")
    untrusted, trusted = results(ended.state)
    assert untrusted.text == f"<untrusted {ended.state.nonce}>\nlook done\n</untrusted {ended.state.nonce}>"
    assert trusted.text == "3"
    first = model.asked[0].messages[0]
    assert first.role is Role.SYSTEM
    assert first.text.startswith("Be brief.\n\nText between <untrusted")
    plain, _ = went(Turns(turn(call("look")), ANSWER), Desk(), mark_untrusted=False)
    assert results(plain.state)[0].text == "look done"


@pytest.mark.case("R41")
def test_a_run_that_is_cancelled_in_a_tool_leaves_no_call_without_a_result() -> None:
    cancel, ends = Cancel(), threading.Event()

    def run(at: str = "") -> str:
        cancel()
        ends.wait(10)
        return "too late"

    desk = Desk(look=run)
    ended, _ = went(Turns(turn(call("look"), replace(SUM, id="b")), ANSWER), desk, cancel=cancel)
    ends.set()
    assert ended.reason == "interrupted"
    assert unanswered(ended.state) == []
    assert results(ended.state)[0].text.startswith("Error (interrupted)")
    again, _ = went(Turns(ANSWER), Desk(), ended.state.asked("Go on."))
    assert again.reason == "end"


def test_a_run_that_is_cancelled_while_the_model_writes_keeps_what_it_said() -> None:
    cancel = Cancel()

    class Stopped(Turns):
        def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
            yield TextDelta("The answer ")
            cancel()
            yield from super().reply(request)

    model = Stopped(turn(SUM, text="is"))
    ended, _ = went(model, Desk(), cancel=cancel)
    assert (ended.reason, ended.state.text, model.closed) == ("interrupted", "The answer ", 1)


def test_who_closes_the_run_goes_on_from_what_was_kept_and_repeats_nothing() -> None:
    desk = Desk()
    state = RunState.begin("ann").asked("Do it.")
    kept = state
    running = Agent(Turns(turn(SUM), ANSWER), desk.gate, desk.tools).run(state, CallContext(ANN, state.id))
    for event in running:
        if isinstance(event, Saved):
            kept = event.state
        if isinstance(event, CallEnded):
            running.close()  # type: ignore[attr-defined]
    assert unanswered(kept.interrupted()) == []
    ended, _ = went(Turns(ANSWER), desk, RunState.from_json(kept.to_json(), "ann"))
    assert (ended.reason, len(desk.done)) == ("end", 1)


@pytest.mark.case("R43")
def test_a_model_that_fails_after_a_call_costs_no_second_call() -> None:
    class Failing(Turns):
        def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
            if len(self.asked) == 1:
                raise ModelUnavailable("It is gone.")
            yield from super().reply(request)

    desk, kept = Desk(), RunState.begin("ann").asked("Do it.")
    state = kept
    with pytest.raises(ModelUnavailable):
        for event in Agent(Failing(turn(SUM)), desk.gate, desk.tools).run(state, CallContext(ANN, state.id)):
            kept = event.state if isinstance(event, Saved) else kept
    ended, _ = went(Turns(ANSWER), desk, kept)
    assert (ended.reason, len(desk.done)) == ("end", 1)
    assert unanswered(ended.state) == []


def test_a_context_of_somebody_else_is_refused() -> None:
    state = RunState.begin("ann").asked("Do it.")
    agent = Agent(Turns(ANSWER), Desk().gate)
    for context in (CallContext(ANN, "other"), CallContext(type(ANN)("bob"), state.id)):
        with pytest.raises(BadInput):
            next(agent.run(state, context))


NAMES = st.sampled_from(["add", "look", "send", "ad", "", "look<|end|>", "\0"])
WRITTEN = ['{"a": 1, "b": 2}', "{}", "", "null", '{"to": "x"}', '{"at": ', "[1]", "{" * 50]
ARGUMENTS = st.sampled_from(WRITTEN) | st.text()
CALLS = st.lists(st.builds(call, NAMES, ARGUMENTS, st.sampled_from(["x", "", "y"]), st.booleans()), max_size=4)
REPLIES = st.builds(
    lambda text, calls, stop: turn(*calls, text=text, stop=stop),
    st.sampled_from(["", "Hm."]),
    CALLS,
    st.sampled_from(StopReason),
)


@settings(max_examples=60)
@given(
    st.lists(REPLIES, min_size=1, max_size=5),
    st.sampled_from([ToolChoice(), ToolChoice("none"), ToolChoice("required"), ToolChoice("required", ("add",))]),
    st.booleans(),
)
def test_whatever_a_model_does_every_call_has_one_result_and_the_run_ends(
    turns: list[object], choice: ToolChoice, parallel: bool
) -> None:
    desk = Desk()
    try:
        state = RunState.begin("ann").asked("Do it.", choice)
        ended, events = went(Turns(*turns), desk, state, parallel=parallel, turns=6)  # type: ignore[arg-type]
        assert RunState.from_json(ended.state.to_json(), "ann") == ended.state
        done = ended.state.interrupted()
        assert unanswered(done) == []
        ids = [event.id for event in events if isinstance(event, CallEnded)]
        assert len(ids) == len(set(ids))
        assert (ended.reason == "approval") == bool(ended.state.waiting)
        assert all(name != "send" for name, _ in desk.done)
    finally:
        desk.close()


def test_texts_come_as_pieces_and_an_empty_turn_is_an_end() -> None:
    ended, events = went(Turns(turn()), Desk())
    assert (ended.reason, ended.state.text) == ("end", "")
    assert not [event for event in events if isinstance(event, TextDelta)]
