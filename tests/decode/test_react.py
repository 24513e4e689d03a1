"""ReAct: tools told and called in plain text, over a model that knows nothing of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_runs import Desk, results, went
from toolwise.core.chat import (
    ChatCall,
    ChatDelta,
    ChatReply,
    ChatRequest,
    Message,
    OutputSchema,
    ReplyEnded,
    Role,
    StopReason,
    TextDelta,
    ToolChoice,
    ToolSpec,
    gathered,
)
from toolwise.core.errors import BadInput
from toolwise.decode.react import ReActChat
from toolwise.decode.run_state import RunState
from wire_talk import cuts

ADD = ToolSpec("add", "Adds\ntwo numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}})
ASK = ChatRequest((Message(Role.USER, "1 + 2?"),), tools=(ADD,))
CALL = 'Thought: I add.\nAction: add\nAction Input: {"a": 1, "b": 2}'


class Writes:
    """A model that writes these texts, one a turn, in the given pieces; stop strings mean nothing to it."""

    name = "writes"

    def __init__(self, *turns: str | list[str], stop: StopReason = StopReason.END) -> None:
        self.turns = [[turn] if isinstance(turn, str) else turn for turn in turns]
        self.asked: list[ChatRequest] = []
        self.stop = stop

    def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
        self.asked.append(request)
        yield from map(TextDelta, self.turns[min(len(self.asked), len(self.turns)) - 1])
        yield ReplyEnded(self.stop)


def read(text: str | list[str], request: ChatRequest = ASK, stop: StopReason = StopReason.END) -> ChatReply:
    return gathered(ReActChat(Writes(text, stop=stop)).reply(request))


def test_an_action_is_a_call_and_its_thought_the_text() -> None:
    reply = read(CALL)
    assert (reply.text, reply.stop) == ("I add.", StopReason.CALLS)
    assert [(call.name, call.arguments) for call in reply.calls] == [("add", '{"a": 1, "b": 2}')]


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("Final Answer: It is 3.\n", "It is 3."),
        ("Thought: easy\nFinal Answer:\nIt is\n\n3.", "It is\n\n3."),
        ("It is 3.", "It is 3."),
        ("Well.\nFinal Answer: 3", "Well.\n3"),
        ("Thought: a\nThought: b", "a\n b"),
        ("Final Answer: see\nAction: add\nAction Input: {}", "see\nAction: add\nAction Input: {}"),
        ("The Action: add", "The Action: add"),
        ("Final Answer: 3\nObservation: made up", "3"),
        ("", ""),
    ],
)
def test_an_answer_is_what_stands_behind_its_label_or_the_whole(written: str, text: str) -> None:
    reply = read(written)
    assert (reply.text, reply.calls, reply.stop) == (text, (), StopReason.END)


@pytest.mark.case("J2")
def test_a_model_that_writes_its_own_observation_is_stopped_there() -> None:
    reply = read(f"{CALL}\nObservation: 4\nFinal Answer: It is 4.")
    assert [call.arguments for call in reply.calls] == ['{"a": 1, "b": 2}']
    assert "4" not in reply.text


@pytest.mark.parametrize(
    "written",
    [
        "Action: add",
        "Action: add {}",
        "Action: add two\nAction Input: {}",
        "Action:\nAction Input: {}",
        "Action: \nadd\nAction Input: {}",
    ],
)
def test_what_begins_as_an_action_and_is_none_is_a_call_without_a_name(written: str) -> None:
    (call,) = read(written).calls
    assert (call.name, call.arguments) == ("", written)


def test_two_actions_are_not_read_as_one_or_as_the_first() -> None:
    desk = Desk()
    both = f"{CALL}\nAction: look\nAction Input: {{}}"
    ended, _ = went(ReActChat(Writes(both, "Final Answer: 3")), desk)
    assert results(ended.state)[0].text.startswith("Error (malformed_call)")
    assert desk.done == []


def test_a_turn_that_was_cut_off_or_refused_stays_so() -> None:
    cut = read(CALL[:-3], stop=StopReason.LENGTH)
    assert (cut.stop, cut.calls[0].complete) == (StopReason.LENGTH, False)
    assert read("No.", stop=StopReason.REFUSED).stop is StopReason.REFUSED
    assert read("No", stop=StopReason.STOP).stop is StopReason.END
    assert read("No", ChatRequest(ASK.messages, tools=(ADD,), stop=(".",)), StopReason.STOP).stop is StopReason.STOP


WRITTEN = [CALL, "Thought: x\nFinal Answer: It \n is.\n", "a \n b\nAction: x\nAction Input: y\nObservation: z", " \n"]


@given(st.data())
def test_a_turn_is_the_same_however_it_is_cut(data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from(WRITTEN) | st.text("\nActionThoughFlservIp: x"))
    assert read(data.draw(cuts(whole))) == read(whole)


def test_the_answer_streams_from_its_first_words() -> None:
    turn = ReActChat(Writes(["Final Answer: It", " is", " 3."])).reply(ASK)
    assert [next(turn), next(turn)] == [TextDelta("It"), TextDelta(" is")]


def test_the_model_is_told_of_tools_in_text_and_of_results_as_observations() -> None:
    model = Writes(CALL, "Final Answer: 3")
    state = RunState.begin("ann", [Message(Role.SYSTEM, "Be brief.")]).asked("1 + 2?")
    ended, _ = went(ReActChat(model), Desk(), state, mark_untrusted=False)
    assert (ended.reason, ended.state.text) == ("end", "3")
    first, second = model.asked
    assert (first.tools, first.stop) == ((), ("\nObservation:",))
    assert first.messages[0].text.startswith("Be brief.\n\nYou have these tools:\nadd: add something. Arguments: {")
    assert [(m.role.value, m.text) for m in second.messages[1:]] == [
        ("user", "1 + 2?"),
        ("assistant", CALL),
        ("user", "Observation: 3"),
    ]


def test_history_of_other_models_is_told_with_alternating_roles() -> None:
    history = (
        Message(Role.USER, "Go."),
        Message(Role.ASSISTANT, "", (ChatCall("a", "add", ""), ChatCall("b", "", "Action: x"))),
        Message(Role.TOOL, "1", call_id="a"),
        Message(Role.TOOL, "2", call_id="b"),
        Message(Role.USER, "And?"),
        Message(Role.ASSISTANT, "Done."),
    )
    model = Writes("x")
    list(ReActChat(model).reply(ChatRequest(history, tools=(ADD,), choice=ToolChoice("required"))))
    system, *told = model.asked[0].messages
    assert "Use a tool now" in system.text
    assert "add: Adds two numbers." in system.text
    assert [(m.role.value, m.text) for m in told] == [
        ("user", "Go."),
        ("assistant", "Action: add\nAction Input: {}\nAction: x"),
        ("user", "Observation: 1\nObservation: 2\nAnd?"),
        ("assistant", "Final Answer: Done."),
    ]


def test_without_tools_the_model_is_asked_as_it_is() -> None:
    model, request = Writes("Action: x"), ChatRequest((Message(Role.USER, "Hi"),))
    assert gathered(ReActChat(model).reply(request)).text == "Action: x"
    assert model.asked == [request]


def test_tools_and_a_json_answer_do_not_go_together() -> None:
    with pytest.raises(BadInput, match="JSON"):
        list(ReActChat(Writes("x")).reply(ChatRequest((), tools=(ADD,), output=OutputSchema())))


def test_the_choice_is_held_to_here_too() -> None:
    state: Any = RunState.begin("ann").asked("1 + 2?", ToolChoice("none"))
    model = Writes(CALL, "Final Answer: 3")
    ended, _ = went(ReActChat(model), Desk(), state, mark_untrusted=False)
    assert "no tool" in results(ended.state)[0].text.lower()
    assert model.asked[0].messages == (Message(Role.USER, "1 + 2?"),)
