"""A model held to what was asked of it, whatever its server makes of the request."""

from __future__ import annotations

from typing import Any

import pytest

from agent_runs import Turns, call, turn
from toolwise.core.chat import (
    ChatReply,
    ChatRequest,
    Message,
    OutputSchema,
    Role,
    StopReason,
    ToolChoice,
    ToolSpec,
    gathered,
)
from toolwise.core.errors import BadInput, ModelUnavailable
from toolwise.decode.held import Held

ONE = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
ADD, LOOK = ToolSpec("add", "Adds.", ONE, strict=True), ToolSpec("look", "Looks.", ONE)
GOOD, BAD = call("add", '{"a": 1}'), call("add", '{"a": "1"}')


def request(**said: Any) -> ChatRequest:
    return ChatRequest((Message(Role.USER, "Go."),), **{"tools": (ADD, LOOK), **said})


def held(*turns: ChatReply, strict: Any = "asked", **said: Any) -> tuple[ChatReply, Turns]:
    model = Turns(*turns)
    return gathered(Held(model, strict).reply(request(**said))), model


def test_a_turn_that_was_asked_for_is_given_on_as_it_is() -> None:
    for made in (turn(GOOD, text="Hm."), turn(text="No."), turn(BAD, stop=StopReason.LENGTH), turn(call("", "add(1"))):
        reply, model = held(made)
        assert reply == made
        assert len(model.asked) == 1


@pytest.mark.case("R29")
def test_a_forced_call_that_does_not_come_and_one_that_may_not_are_asked_for_once_more() -> None:
    forced, model = held(turn(text="No."), turn(GOOD), choice=ToolChoice("required"))
    assert forced.calls == (GOOD,)
    assert forced.text == "No."
    assert "A call is required" in model.asked[1].messages[-1].text
    free, model = held(turn(GOOD), turn(text="Well."), choice=ToolChoice("none"))
    assert (free.text, free.calls) == ("Well.", ())
    assert [message.role for message in model.asked[1].messages] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert forced.usage.completion == 10
    for choice, made in ((ToolChoice("required"), turn(text="No.")), (ToolChoice("none"), turn(GOOD))):
        with pytest.raises(ModelUnavailable, match="what was asked"):
            held(made, choice=choice)


def test_only_the_tools_that_were_named_are_called() -> None:
    reply, _ = held(turn(call("look", '{"a": 1}')), turn(GOOD), choice=ToolChoice("required", ("add",)))
    assert reply.calls == (GOOD,)
    with pytest.raises(ModelUnavailable, match="Only add"):
        held(turn(call("look", '{"a": 1}')), choice=ToolChoice("auto", ("add",)))


@pytest.mark.case("R21")
def test_where_one_call_a_turn_is_allowed_the_first_is_given_on() -> None:
    reply, model = held(turn(GOOD, call("look", "{}", "b")), parallel=False)
    assert (reply.calls, len(model.asked)) == ((GOOD,), 1)


def test_strict_arguments_fit_or_the_turn_is_an_error() -> None:
    reply, model = held(turn(BAD, call("look", '{"a": 2}', "b"), text="One."), turn(GOOD, text="Two."))
    assert (reply.calls, reply.text) == ((GOOD,), "One.\nTwo.")
    first, second = model.asked[1].messages[-2:]
    assert first.text.startswith('Error (invalid_arguments): argument "a"')
    assert second.text.startswith("Error (in_progress)")
    for arguments in ('{"a": "1"}', "{", "[]", "null", ""):
        with pytest.raises(ModelUnavailable):
            held(turn(call("add", arguments)))


def test_what_nobody_asked_to_be_strict_is_told_once_and_then_given_on() -> None:
    loose = call("look", "{}")
    assert held(turn(loose))[0].calls == (loose,)
    reply, model = held(turn(loose), strict="always")
    assert (reply.calls, len(model.asked)) == ((loose,), 2)
    unknown, _ = held(turn(call("lok")), tools=(LOOK,))
    assert unknown.calls == (call("lok"),)
    assert held(turn(BAD), strict="never")[0].calls == (BAD,)


def test_a_strict_tool_that_nobody_could_hold_anything_to_is_refused() -> None:
    endless = ToolSpec("x", "", {"type": "object", "properties": {"a": {"$ref": "#"}}}, strict=True)
    with pytest.raises(BadInput, match='"x" cannot be strict'):
        held(turn(GOOD), tools=(endless,))


def test_json_that_was_asked_for_is_json_of_that_schema() -> None:
    output = OutputSchema(ONE)
    assert held(turn(text='{"a": 1}'), output=output)[0].text == '{"a": 1}'
    assert held(turn(text='{"b": 1}'), output=OutputSchema())[0].text == '{"b": 1}'
    for text, wanted in (('{"a": "1"}', output), ("Sure!", output), ("[1]", OutputSchema())):
        with pytest.raises(ModelUnavailable, match="not the JSON"):
            held(turn(text=text), output=wanted)
