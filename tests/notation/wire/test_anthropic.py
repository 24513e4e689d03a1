"""Anthropic's Messages: what was written is read, whole and in any pieces, and what cannot be carried is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message as Answer
from anthropic.types import RawMessageStreamEvent
from anthropic.types.message_create_params import MessageCreateParams
from formats import anthropic_requests, cut_replies, through_json
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from toolwise.core import jsonio
from toolwise.core.chat import (
    CallDelta,
    ChatCall,
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
from toolwise.notation.wire import anthropic as wire
from toolwise.notation.wire.sse import encode
from wire_talk import IDENT, cut_pieces, read, replies, written

ASKED = ChatRequest((Message(Role.USER, "Hello"),), model="a-model", max_tokens=100)
EVENT: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
PARAMS: TypeAdapter[Any] = TypeAdapter(MessageCreateParams)


def body(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 10, "messages": list(messages or [user("Hello")]), **fields}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content[0] if isinstance(content[0], str) else list(content)}


def asks(*ids: str) -> dict[str, Any]:
    """A turn with calls of these ids."""
    return {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "f", "input": {}} for id in ids]}


def deep_call() -> dict[str, Any]:
    deep: Any = {}
    for _ in range(40):
        deep = {"a": deep}
    return {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": deep}]}


def result(id: str, content: Any = "done", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **fields}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


# --- the official types ------------------------------------------------------------------------------------------


@given(anthropic_requests())
def test_a_request_fits_the_official_type(request: ChatRequest) -> None:
    sent = through_json(wire.write_request(request))
    assert len(list(PARAMS.validate_python(sent)["messages"])) == len(sent["messages"])  # it checks when it is read


@given(cut_replies(broken=False))
def test_a_reply_fits_the_official_type(reply: ChatReply) -> None:
    Answer.model_validate(through_json(wire.write_reply(reply, ASKED, IDENT)), strict=True)


@given(st.data())
def test_a_stream_adds_up_to_the_same_message_in_the_official_client(data: st.DataObject) -> None:
    reply = data.draw(replies())
    events = written(wire.writer(ASKED, IDENT), data.draw(cut_pieces(reply)))
    message, buffers = None, dict[int, bytes]()
    for event in events:
        said = EVENT.validate_python(jsonio.loads(event.data))
        assert said.type == event.name
        message = accumulate_event(event=said, current_snapshot=message, json_bufs=buffers)
    whole = Answer.model_validate(wire.write_reply(reply, ASKED, IDENT))
    assert message is not None
    assert message.to_dict(exclude_unset=False) == whole.to_dict(exclude_unset=False)


# --- reading requests --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"messages": []}, "messages"),
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"model": ""}, "model"),
        ({"temperature": 1.5}, "temperature"),
        ({"top_k": 5}, "top_k"),
        ({"mcp_servers": [{}]}, "mcp_servers"),
        ({"container": "c"}, "container"),
        ({"system": [{"type": "image"}]}, "system[0].type"),
        ({"messages": [user({"type": "image", "source": {}})]}, "messages[0].content[0].type"),
        ({"messages": [user({"type": "document", "source": {}})]}, "messages[0].content[0].type"),
        ({"messages": [user(text("a")), {"role": "assistant", "content": "an answer that goes"}]}, "messages[1].role"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [user("go"), deep_call()]}, "messages[1].content[0].input"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"name": "a", "input_schema": {"type": "string"}}]}, "tools[0].input_schema.type"),
        ({"tools": [{"name": "a", "input_schema": {}}] * 2}, "tools[1]"),
        (
            {"tools": [{"name": "a", "input_schema": {}, "allowed_callers": ["code_execution"]}]},
            "tools[0].allowed_callers",
        ),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tool_choice": {"type": "function"}}, "tool_choice.type"),
        (
            {"tools": [{"name": "a", "input_schema": {}}], "tool_choice": {"type": "tool", "name": "b"}},
            "tool_choice.name",
        ),
        ({"output_config": {"format": {"type": "grammar"}}}, "output_config.format.type"),
    ],
)
def test_what_is_not_carried_is_refused_by_its_place(fields: dict[str, Any], place: str) -> None:
    with pytest.raises(BadInput) as refused:
        wire.read_request(body(**fields) if "messages" not in fields else body() | fields)
    assert refused.value.field == place


def test_what_changes_no_answer_is_left() -> None:
    left = {"metadata": {"user_id": "u"}, "service_tier": "auto", "thinking": {"type": "adaptive"}}
    assert wire.read_request(body(**left)) == wire.read_request(body())


@pytest.mark.parametrize(
    ("sent", "choice", "parallel"),
    [
        (None, ToolChoice("auto"), True),
        ({"type": "auto"}, ToolChoice("auto"), True),
        ({"type": "auto", "disable_parallel_tool_use": True}, ToolChoice("auto"), False),
        ({"type": "any", "disable_parallel_tool_use": True}, ToolChoice("required"), False),
        ({"type": "tool", "name": "a"}, ToolChoice("required", ("a",)), True),
        ({"type": "none"}, ToolChoice("none"), True),
    ],
)
@pytest.mark.case("R29")
def test_every_form_of_the_choice_is_read(sent: Any, choice: ToolChoice, parallel: bool) -> None:
    request = wire.read_request(body(tools=[{"name": "a", "input_schema": {"type": "object"}}], tool_choice=sent))
    assert (request.choice, request.parallel) == (choice, parallel)


@pytest.mark.parametrize("where", ["output_config", "output_format"])
def test_a_schema_for_the_answer_is_read_under_both_its_names(where: str) -> None:
    form = {"type": "json_schema", "schema": {"type": "object"}}
    request = wire.read_request(body(**{where: {"format": form} if where == "output_config" else form}))
    assert request.output == OutputSchema({"type": "object"})


@pytest.mark.case("R36")
def test_a_failure_is_kept_in_its_flag_both_ways_and_told_in_the_text() -> None:
    request = wire.read_request(body(user("go"), asks("a"), user(result("a", [text("no such town")], is_error=True))))
    assert request.messages[-1].is_error
    sent = wire.write_request(request)["messages"][-1]["content"][0]
    assert sent["is_error"] is True
    assert sent["content"] == "Error (tool_failed): no such town"


# --- writing -----------------------------------------------------------------------------------------------------


@pytest.mark.case("R11")
@pytest.mark.case("R9")
@pytest.mark.parametrize("arguments", ["", "  ", "null", "{}"])
def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    call = ChatCall("a", "f", arguments)
    assert wire.write_reply(ChatReply("", (call,), StopReason.CALLS), ASKED, IDENT)["content"][0]["input"] == {}
    history = (Message(Role.USER, "x"), Message(Role.ASSISTANT, "", (call,)), Message(Role.TOOL, "1", call_id="a"))
    assert wire.write_request(replace(ASKED, messages=history))["messages"][1]["content"][0]["input"] == {}


@pytest.mark.parametrize(
    "call",
    [
        ChatCall("a", "f", '{"a": 1', complete=False),
        ChatCall("a", "f", "[1]"),
        ChatCall("a", "f", '{"a": 1, "a": 2}'),
        ChatCall("a", "", "<tool_call> f"),
    ],
    ids=["cut off", "no object", "key twice", "no call"],
)
def test_what_is_no_call_is_shown_as_text_and_waits_for_nothing(call: ChatCall) -> None:
    sent = wire.write_reply(ChatReply("Well. ", (call,), StopReason.CALLS), ASKED, IDENT)
    assert [block["type"] for block in sent["content"]] == ["text", "text"]
    assert call.arguments in sent["content"][1]["text"]
    assert sent["stop_reason"] == ("end_turn" if call.complete else "max_tokens")


def test_a_history_with_what_is_no_call_says_it_and_what_was_told_of_it_as_texts() -> None:
    bad, good = ChatCall("a", "f", "(1"), ChatCall("b", "f", "{}")
    failure = Message(Role.TOOL, "Error (malformed_call): not JSON", call_id="a", is_error=True)
    done = Message(Role.TOOL, "1", call_id="b")
    history = (Message(Role.USER, "x"), Message(Role.ASSISTANT, "", (bad, good)), failure, done)
    sent = wire.write_request(replace(ASKED, messages=history))
    assert sent["messages"][1]["content"][0] == text("f (1")
    assert [block["type"] for block in sent["messages"][2]["content"]] == ["tool_result", "text"]
    wire.read_request(sent)


def test_the_text_of_a_call_that_is_none_streams_between_other_blocks() -> None:
    deltas = [
        TextDelta("a"),
        CallDelta(0, "{}", "i", "f"),
        CallDelta(1, "<tool"),
        CallDelta(1, "_call>"),
        TextDelta("b"),
        ReplyEnded(StopReason.CALLS),
    ]
    events = written(wire.writer(ASKED, IDENT), deltas)
    reply = gathered(read(wire.reader(), map(encode, events)))
    assert (reply.text, [call.name for call in reply.calls]) == ("a<tool_call>b", ["f"])
    assert [event.name for event in events].count("content_block_start") == 3


@pytest.mark.case("R20")
def test_ids_that_the_api_refuses_or_has_had_are_replaced_with_their_results() -> None:
    turn = Message(Role.ASSISTANT, "", (ChatCall("call:1", "f", "{}"), ChatCall("b", "f", "{}")))
    results = (Message(Role.TOOL, "1", call_id="call:1"), Message(Role.TOOL, "2", call_id="b"))
    history = (Message(Role.USER, "x"), turn, *results, turn, *results)
    sent = wire.write_request(replace(ASKED, messages=history))["messages"]
    asked = [block["id"] for message in sent[1::2] for block in message["content"]]
    answered = [block["tool_use_id"] for message in sent[2::2] for block in message["content"]]
    assert asked == answered
    assert len(set(asked)) == 4
    assert all(":" not in id for id in asked)


def test_of_a_choice_among_several_only_these_are_sent() -> None:
    tools = tuple(ToolSpec(name, "", {"type": "object"}) for name in "abc")
    sent = wire.write_request(replace(ASKED, tools=tools, choice=ToolChoice("required", ("a", "c"))))
    assert [tool["name"] for tool in sent["tools"]] == ["a", "c"]
    assert sent["tool_choice"] == {"type": "any"}


def test_a_bound_is_always_sent_and_no_tool_choice_without_tools() -> None:
    sent = wire.write_request(replace(ASKED, max_tokens=None, parallel=False))
    assert sent["max_tokens"] > 0
    assert "tool_choice" not in sent


def test_the_stop_string_is_named_where_there_is_one() -> None:
    stopped = ChatReply("a", stop=StopReason.STOP)
    assert wire.write_reply(stopped, replace(ASKED, stop=("\n",)), IDENT)["stop_sequence"] == "\n"
    assert wire.write_reply(stopped, replace(ASKED, stop=("\n", "x")), IDENT)["stop_sequence"] is None
