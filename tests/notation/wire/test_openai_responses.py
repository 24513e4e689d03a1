"""Responses, both ways: what is read is what was written, whole and streamed, for any text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_type_hints

import pytest
from formats import RESPONSES_OPTIONS, cut_replies, openai_requests
from hypothesis import given, settings
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)
from pydantic import TypeAdapter

from toolwise.core import jsonio
from toolwise.core.chat import (
    CallDelta,
    ChatCall,
    ChatReply,
    ChatRequest,
    Message,
    ReplyEnded,
    Role,
    StopReason,
    TextDelta,
    TokenUsage,
    ToolChoice,
    gathered,
    pieces,
)
from toolwise.core.errors import BadInput, BudgetExceeded, ModelUnavailable, StorageUnavailable
from toolwise.notation.wire import openai_responses
from toolwise.notation.wire.base import Event
from toolwise.notation.wire.openai_responses.read import LEFT, READ
from wire_talk import IDENT, written

ASKED = ChatRequest((Message(Role.USER, "hi"),), "m", stream=True)
TOOL = {"type": "function", "name": "get_date", "parameters": {"type": "object", "properties": {}}, "strict": False}
OTHER = {"type": "function", "name": "search"}
HI = {"role": "user", "content": "hi"}
CALL = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "a", "output": "x"}
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def streamed(reply: ChatReply, request: ChatRequest = ASKED) -> list[Event]:
    return written(openai_responses.writer(request, IDENT), pieces(reply))


def read(*events: dict[str, Any]) -> ChatReply:
    reader = openai_responses.reader()
    told = [Event(jsonio.dumps({**event, "type": f"response.{event['type']}"})) for event in events]
    return gathered([delta for event in told for delta in reader.push(event)] + reader.flush())


def request(**fields: Any) -> ChatRequest:
    return openai_responses.read_request({"model": "m", "input": "hi", **fields})


def added(item: dict[str, Any], place: Any = 0) -> dict[str, Any]:
    return {"type": "output_item.added", "output_index": place, "item": item}


def done(item: dict[str, Any], place: Any = 0) -> dict[str, Any]:
    return {"type": "output_item.done", "output_index": place, "item": item}


def more(arguments: str, item_id: Any = None, place: Any = 0) -> dict[str, Any]:
    return {"type": "function_call_arguments.delta", "item_id": item_id, "output_index": place, "delta": arguments}


def call(arguments: Any = "", name: str = "f", call_id: Any = "1", id: Any = None) -> dict[str, Any]:
    return {"type": "function_call", "id": id, "call_id": call_id, "name": name, "arguments": arguments}


def said(text: str, **place: Any) -> dict[str, Any]:
    return {"type": "output_text.delta", "delta": text, **place}


def message(*texts: str, **more: Any) -> dict[str, Any]:
    return {"type": "message", "content": [{"type": "output_text", "text": text} for text in texts], **more}


def completed(*output: dict[str, Any], status: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"type": "completed", "response": {"status": status, "output": list(output), **fields}}


# What we write, as OpenAI's own types see it


def extras(value: Any) -> list[str]:
    """Fields that the types of the official package do not know."""
    found = list(getattr(value, "model_extra", None) or {})
    if isinstance(value, list):
        return found + [name for item in value for name in extras(item)]
    if hasattr(value, "model_fields_set"):
        return found + [name for field in value.model_fields_set for name in extras(getattr(value, field))]
    return found


@settings(max_examples=30)  # the union of all events of the official package is slow
@given(openai_requests(RESPONSES_OPTIONS), cut_replies(broken=True))
def test_what_is_written_fits_the_types_of_the_official_package(asked: ChatRequest, reply: ChatReply) -> None:
    whole = Response.model_validate(openai_responses.write_reply(reply, asked, IDENT), strict=True)
    assert not extras(whole)
    assert whole.output_text == reply.text
    events = [EVENT.validate_python(jsonio.loads(event.data), strict=True) for event in streamed(reply, asked)]
    assert not [name for event in events for name in extras(event)]
    assert [event.type for event in events] == [event.name for event in streamed(reply, asked)]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].response == whole


def test_a_stream_tells_its_items_one_after_another() -> None:
    reply = ChatReply("a", (ChatCall("1", "f", "{}"), ChatCall("2", "g", "{}")), StopReason.CALLS)
    assert [event.name.removeprefix("response.") for event in streamed(reply)] == [
        *("created", "in_progress"),
        *("output_item.added", "content_part.added", "output_text.delta"),
        *("output_text.done", "content_part.done", "output_item.done"),
        *("output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"),
        *("output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"),
        "completed",
    ]


def test_calls_by_turns_and_text_after_them_are_told_apart() -> None:
    deltas = [
        *(CallDelta(0, '{"a"', "1", "f"), CallDelta(1, "{", "2", "g"), CallDelta(0, ":1}"), CallDelta(1, "}")),
        *(TextDelta("x"), CallDelta(2, "{}", "3", "h"), CallDelta(1, "junk"), TextDelta("y")),
        ReplyEnded(StopReason.CALLS),
    ]
    events = written(openai_responses.writer(ASKED, IDENT), deltas)
    for event in events:
        EVENT.validate_python(jsonio.loads(event.data), strict=True)
    output = jsonio.loads(events[-1].data)["response"]["output"]
    told = [item.get("arguments") or item["content"][0]["text"] for item in output]
    assert told == ['{"a":1}', "{}junk", "x", "{}", "y"]


@pytest.mark.parametrize(
    ("stop", "status", "reason"),
    [
        (StopReason.END, "completed", None),
        (StopReason.STOP, "completed", None),
        (StopReason.CALLS, "completed", None),
        (StopReason.LENGTH, "incomplete", {"reason": "max_output_tokens"}),
        (StopReason.REFUSED, "incomplete", {"reason": "content_filter"}),
    ],
)
def test_every_way_to_end_has_its_status(stop: StopReason, status: str, reason: Any) -> None:
    reply = ChatReply("a", stop=stop)
    told = openai_responses.write_reply(reply, ASKED, IDENT)
    assert (told["status"], told["incomplete_details"]) == (status, reason)
    last = streamed(reply)[-1]
    assert last.name == f"response.{status}"
    assert jsonio.loads(last.data)["response"] == told


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadInput("x"), "invalid_prompt"),
        (BudgetExceeded("x"), "rate_limit_exceeded"),
        (StorageUnavailable("x"), "server_error"),
    ],
)
@pytest.mark.parametrize("deltas", [[], [TextDelta("a")]])
def test_a_failure_in_a_stream_is_its_last_event(error: Any, code: str, deltas: list[TextDelta]) -> None:
    writer = openai_responses.writer(ASKED, IDENT)
    events = written(writer, deltas) + writer.fail(error)
    told = [EVENT.validate_python(jsonio.loads(event.data), strict=True) for event in events]
    assert told[0].type == "response.created"
    assert told[-1].type == "response.failed"
    assert (told[-1].response.error.code, told[-1].response.error.message) == (code, "x")
    assert writer.push(ReplyEnded(StopReason.END)) == writer.fail(error) == []


# Requests


@pytest.mark.parametrize(
    ("choice", "meant"),
    [
        ("auto", ToolChoice("auto")),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        (None, ToolChoice()),
        ({"type": "function", "name": "search"}, ToolChoice("required", ("search",))),
        ({"type": "allowed_tools", "mode": "auto", "tools": [OTHER]}, ToolChoice("auto", ("search",))),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [OTHER, TOOL]},
            ToolChoice("required", ("search", "get_date")),
        ),
    ],
)
def test_every_form_of_choice_is_read(choice: Any, meant: ToolChoice) -> None:
    assert request(tools=[TOOL, OTHER], tool_choice=choice).choice == meant


def test_a_tool_is_strict_unless_it_says_that_it_is_not() -> None:
    assert [tool.strict for tool in request(tools=[TOOL, OTHER]).tools] == [False, True]


def test_items_of_one_turn_are_one_message() -> None:
    items = [
        HI,
        {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x"},
        {
            "type": "message",
            "role": "assistant",
            "id": "m",
            "content": [{"type": "output_text", "text": "so", "annotations": []}],
        },
        CALL,
        {**CALL, "call_id": "b", "arguments": "", "id": "fc", "status": "completed"},
        {**RESULT, "call_id": "b", "output": [{"type": "input_text", "text": "Error (timeout): x"}]},
        RESULT,
        CALL,
        RESULT,
        {"role": "developer", "content": [{"type": "input_text", "text": "be brief"}]},
    ]
    assert request(input=items, instructions="help").messages == (
        Message(Role.SYSTEM, "help"),
        Message(Role.USER, "hi"),
        Message(Role.ASSISTANT, "so", (ChatCall("a", "f", "{}"), ChatCall("b", "f", "{}"))),
        Message(Role.TOOL, "x", call_id="a"),
        Message(Role.TOOL, "Error (timeout): x", call_id="b", is_error=True),
        Message(Role.ASSISTANT, "", (ChatCall("a", "f", "{}"),)),
        Message(Role.TOOL, "x", call_id="a"),
        Message(Role.SYSTEM, "be brief"),
    )


def test_options_are_read_and_those_that_change_nothing_are_left() -> None:
    schema = {"type": "object"}
    asked = request(
        max_output_tokens=5,
        temperature=1,
        store=False,
        metadata={"a": "b"},
        reasoning={"effort": "low"},
        include=["reasoning.encrypted_content"],
        truncation="auto",
        background=False,
        text={
            "format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": True},
            "verbosity": "low",
        },
    )
    assert (asked.max_tokens, asked.temperature) == (5, 1.0)
    assert asked.output is not None
    assert (asked.output.schema, asked.output.name, asked.output.strict) == (schema, "answer", True)
    assert request(text={"format": {"type": "text"}}).output is request(text={}).output is None


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "c"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"store": True}, "store"),
        ({"background": True}, "background"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"include": ["message.output_text.logprobs"]}, "include[0]"),
        ({"truncation": "sometimes"}, "truncation"),
        ({"context_management": []}, "context_management"),
        ({"stop": "x"}, "stop"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"temperature": 3}, "temperature"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"type": "mcp", "server_label": "x"}]}, "tools[0].type"),
        ({"tools": [{**TOOL, "defer_loading": True}]}, "tools[0].defer_loading"),
        ({"tools": [TOOL, TOOL]}, "tools[1]"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": OTHER}, "tool_choice.name"),
        ({"tools": [TOOL], "tool_choice": {"type": "web_search"}}, "tool_choice.type"),
        ({"tools": [TOOL], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}}, "tool_choice.tools"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format.type"),
        ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
        ({"input": [{"type": "web_search_call", "id": "x"}]}, "input[0].type"),
        ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0].type"),
        ({"input": [HI, CALL]}, "input[1]"),
        ({"input": [HI, RESULT]}, "input[1]"),
        ({"input": [CALL, RESULT, RESULT]}, "input[2]"),
        ({"input": [CALL, HI, RESULT]}, "input[0]"),
        ({"input": [CALL, CALL, RESULT]}, "input[0]"),
        ({"input": [{**CALL, "namespace": "x"}, RESULT]}, "input[0].namespace"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_its_place(fields: dict[str, Any], place: str) -> None:
    with pytest.raises(BadInput) as refused:
        request(**fields)
    assert refused.value.field == place
    assert openai_responses.write_error(refused.value)[1]["error"]["param"] == place


def test_every_option_of_the_official_package_is_read_left_or_refused_on_purpose() -> None:
    stored = {"previous_response_id", "conversation", "prompt"}
    refused = {"access_programs", "background_options", "context_management", "image", "moderation"}
    known = set(get_type_hints(ResponseCreateParamsStreaming)) | set(get_type_hints(ResponseCreateParamsNonStreaming))
    assert known - READ - LEFT == refused | stored
    assert (READ | LEFT) - known == set()
    assert not READ & LEFT
    for name in refused:
        with pytest.raises(BadInput, match=rf"^{name}: not supported"):
            request(**{name: {}})


@pytest.mark.parametrize("option", [{"seed": 1}, {"stop": ("x",)}])
def test_what_the_api_has_not_is_not_dropped(option: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        openai_responses.write_request(replace(ASKED, **option))


# What real servers answer


@pytest.mark.case("R9")
@pytest.mark.case("R10")
@pytest.mark.parametrize("arguments", ["", None, "null", " ", {}])
def test_a_call_without_arguments_has_an_empty_object(arguments: Any) -> None:
    called = (ChatCall("1", "f", "{}"),)
    assert read(added(call(arguments)), completed(call(arguments))).calls == called
    assert read(completed(call(arguments))).calls == called


@pytest.mark.case("R17")
@pytest.mark.case("R23")
@pytest.mark.parametrize(
    "events",
    [
        # as the API says
        [added(call(id="x")), more('{"a":1}', "x"), added(call("", "g", "2", "y"), 1), more('{"b":2}', "y", 1)],
        # all at one place
        [added(call(id="x")), more('{"a":1}', "x"), added(call("", "g", "2", "y")), more('{"b":2}', "y")],
        # by turns
        [added(call(id="x")), added(call("", "g", "2", "y"), 1), more('{"b":2}', "y", 1), more('{"a":1}', "x")],
        [added(call(id="x")), added(call("", "g", "2", "y")), more('{"b":2}', "y"), more('{"a":1}', "x")],
        # without ids of the items
        [added(call()), more('{"a":1}', None), added(call("", "g", "2"), 1), more('{"b":2}', None, 1)],
        # ids that only the pieces have
        [added(call()), more('{"a":1}', "x"), added(call("", "g", "2"), 1), more('{"b":2}', "y", 1)],
        # all told when it is done
        [added(call(id="x")), done(call('{"a":1}', id="x")), done(call('{"b":2}', "g", "2", "y"), 1)],
        [done(call('{"a":1}')), done(call('{"b":2}', "g", "2"))],
        [more('{"a":', "x"), done(call('{"a":1}', id="x")), done(call('{"b":2}', "g", "2", "y"), 1)],
        [],
    ],
)
def test_calls_are_told_apart_whatever_their_places(events: list[dict[str, Any]]) -> None:
    # The last event has other ids for the same calls, as some servers make them up anew.
    ids = ("1", "2") if not events else ("8", "9")
    end = completed(call('{"a":1}', "f", ids[0]), call('{"b":2}', "g", ids[1]))
    reply = read(*events, end)
    assert reply == ChatReply("", (ChatCall("1", "f", '{"a":1}'), ChatCall("2", "g", '{"b":2}')), StopReason.CALLS)


def test_text_is_told_once_whichever_events_tell_it() -> None:
    place = {"item_id": "m", "output_index": 0, "content_index": 0}
    end = completed(message("ab", id="m"))
    assert read(said("a", **place), said("b", **place), done(message("ab", id="m")), end).text == "ab"
    assert read(said("a", **place), done(message("ab", id="m")), end).text == "ab"
    assert read(done(message("a", "b")), end).text == "ab"
    assert read(said("ab"), end).text == "ab"
    assert read(end).text == "ab"


@pytest.mark.case("R20")
@pytest.mark.parametrize("call_id", ["", None, "call_0"])
def test_ids_that_are_empty_or_stand_twice_are_made_anew(call_id: Any) -> None:
    whole = read(completed(call("{}", "f", call_id), call("{}", "f", call_id)))
    stream = read(added(call("{}", "f", call_id)), added(call("{}", "f", call_id), 1), completed())
    for reply in (whole, stream):
        assert len({call.id for call in reply.calls} - {""}) == 2


@pytest.mark.case("R3")
@pytest.mark.case("R42")
@pytest.mark.parametrize("status", ["completed", "incomplete"])
def test_a_call_that_was_never_closed_means_that_the_turn_was_cut(status: str) -> None:
    reply = read(added(call('{"a":"b')), completed(status=status))
    assert reply == ChatReply("", (ChatCall("1", "f", '{"a":"b', complete=False),), StopReason.LENGTH)


@pytest.mark.parametrize(
    ("fields", "stop"),
    [
        ({"status": "completed"}, StopReason.CALLS),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, StopReason.LENGTH),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, StopReason.REFUSED),
        ({"status": "in_progress"}, StopReason.LENGTH),
        ({"status": "cancelled"}, StopReason.LENGTH),
        ({}, StopReason.LENGTH),
    ],
)
def test_whole_calls_run_only_where_the_server_vouches_for_the_turn(fields: dict[str, Any], stop: StopReason) -> None:
    assert openai_responses.read_reply({"output": [call("{}")], **fields}).stop is stop


def test_a_refusal_is_text_of_a_turn_that_was_declined() -> None:
    refused = {"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}
    assert read(completed(refused)) == ChatReply("no", stop=StopReason.REFUSED)
    assert read({"type": "refusal.delta", "delta": "no"}, completed(refused)) == ChatReply(
        "no", stop=StopReason.REFUSED
    )


def test_a_stream_that_breaks_off_is_cut() -> None:
    assert read(said("a")) == ChatReply("a", stop=StopReason.LENGTH)
    assert read(added(call("{}"))).stop is StopReason.LENGTH


def test_events_without_data_and_an_end_that_the_api_has_not_are_passed_over() -> None:
    assert [openai_responses.reader().push(Event(data)) for data in ("", " ", "[DONE]")] == [[], [], []]


def test_items_that_say_nothing_here_are_passed_over() -> None:
    reasoning = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    delta = {"type": "reasoning_summary_text.delta", "delta": "hm"}
    assert read(added(reasoning), delta, done(reasoning), completed(reasoning, message("a"))) == ChatReply("a")


def test_usage_is_taken_where_it_is_told() -> None:
    usage = {"input_tokens": 3, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 2}}
    assert read(completed(message("a"), usage=usage)).usage == TokenUsage(3, 4, 2)
    assert read(completed(message("a"), usage={"input_tokens": None})).usage == TokenUsage()


@pytest.mark.parametrize(
    "event",
    [
        Event('{"type": "error", "message": "out of memory"}'),
        Event('{"error": {"message": "out of memory"}}'),
        Event('{"type": "response.failed", "response": {"status": "failed", "error": {"message": "out of memory"}}}'),
        Event('{"type": "response.completed"}'),
        Event('{"type": "response.output_item.added"}'),
        Event('{"type": "response.output_text.delta", "delta": 3}'),
    ],
)
def test_a_stream_that_breaks_the_api_is_the_servers_fault(event: Event) -> None:
    with pytest.raises(ModelUnavailable):
        openai_responses.reader().push(event)
