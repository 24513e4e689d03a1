"""Chat Completions, both ways: what is read is what was written, whole and streamed, for any text."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest
from formats import cut_replies
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)

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
from toolwise.core.errors import LEAVES, BadInput, ModelUnavailable, NotFound
from toolwise.notation.wire import openai_chat, openai_responses
from toolwise.notation.wire.base import Event
from toolwise.notation.wire.openai_chat.read import LEFT, READ
from wire_talk import IDENT, written

ASKED = ChatRequest((Message(Role.USER, "hi"),), stream=True, stream_usage=True)
TOOL = {"type": "function", "function": {"name": "get_date", "parameters": {"type": "object", "properties": {}}}}
OTHER = {"type": "function", "function": {"name": "search"}}
HI = {"role": "user", "content": "hi"}


def streamed(reply: ChatReply, request: ChatRequest = ASKED) -> list[Event]:
    return written(openai_chat.writer(request, IDENT), pieces(reply))


def read(events: list[Event]) -> ChatReply:
    reader = openai_chat.reader()
    return gathered([delta for event in events for delta in reader.push(event)] + reader.flush())


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> Event:
    return Event(jsonio.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}))


def call(arguments: Any = None, name: Any = None, id: Any = None, index: Any = None) -> dict[str, Any]:
    return {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}


def calls_of(*deltas: dict[str, Any], finish: str = "tool_calls") -> list[tuple[str, str]]:
    """Name and arguments of the calls that a stream of these deltas makes."""
    events = [chunk({"tool_calls": [delta]}) for delta in deltas]
    return [(call.name, call.arguments) for call in read([*events, chunk({}, finish)]).calls]


def request(**fields: Any) -> ChatRequest:
    return openai_chat.read_request({"model": "m", "messages": [HI], **fields})


@pytest.mark.parametrize("wire", [openai_chat, openai_responses])
def test_the_text_of_arguments_stays_as_it_was_written(wire: Any) -> None:
    reply = ChatReply("", (ChatCall("1", "f", '{"n": 9007199254740993,  "m": 1.0}'),), StopReason.CALLS)
    assert wire.read_reply(wire.write_reply(reply, ASKED, IDENT)) == reply
    reader = wire.reader()
    assert (
        gathered(delta for event in written(wire.writer(ASKED, IDENT), pieces(reply)) for delta in reader.push(event))
        == reply
    )


# What we write, as OpenAI's own types see it


@given(cut_replies(broken=True), st.booleans())
def test_what_is_written_fits_the_types_of_the_official_package(reply: ChatReply, usage: bool) -> None:
    whole = ChatCompletion.model_validate(openai_chat.write_reply(reply, ASKED, IDENT), strict=True)
    assert not whole.model_extra
    message = whole.choices[0].message
    assert (message.content or "") == reply.text
    assert len(message.tool_calls or []) == len(reply.calls)
    *chunks, done = streamed(reply, ChatRequest(ASKED.messages, stream=True, stream_usage=usage))
    assert done == Event("[DONE]")
    told = [ChatCompletionChunk.model_validate(jsonio.loads(event.data), strict=True) for event in chunks]
    assert not any(one.model_extra or choice.model_extra for one in told for choice in one.choices)
    assert told[0].choices[0].delta.role == "assistant"
    assert [one.usage is not None for one in told] == [False] * (len(told) - usage) + [True] * usage


@pytest.mark.parametrize(
    ("stop", "told"),
    [
        (StopReason.END, "stop"),
        (StopReason.STOP, "stop"),
        (StopReason.CALLS, "tool_calls"),
        (StopReason.LENGTH, "length"),
        (StopReason.REFUSED, "content_filter"),
    ],
)
def test_every_way_to_end_has_its_finish_reason(stop: StopReason, told: str) -> None:
    reply = ChatReply("", (ChatCall("1", "f", "{}"),), stop)
    assert openai_chat.write_reply(reply, ASKED, IDENT)["choices"][0]["finish_reason"] == told
    assert jsonio.loads(streamed(reply)[-3].data)["choices"][0]["finish_reason"] == told


def test_calls_are_numbered_among_themselves_where_text_stands_between_them() -> None:
    calls = (ChatCall("1", "f", "{}"), ChatCall("2", "", "what"), ChatCall("3", "g", "{}"))
    reply = read(streamed(ChatReply("", calls, StopReason.CALLS)))
    assert [(call.id, call.name) for call in reply.calls] == [("1", "f"), ("3", "g")]
    assert reply.text == "what"


def test_a_failure_in_a_stream_is_told_once_and_the_stream_is_not_called_done() -> None:
    writer = openai_chat.writer(ASKED, IDENT)
    writer.push(TextDelta("a"))
    [event] = writer.fail(ModelUnavailable("The model is gone."))
    assert jsonio.loads(event.data)["error"]["message"] == "The model is gone."
    assert writer.push(ReplyEnded(StopReason.END)) == writer.fail(BadInput("x")) == []


# Requests


@pytest.mark.parametrize(
    ("choice", "meant"),
    [
        ("auto", ToolChoice("auto")),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        (None, ToolChoice()),
        ({"type": "function", "function": {"name": "search"}}, ToolChoice("required", ("search",))),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [OTHER]}},
            ToolChoice("auto", ("search",)),
        ),
        (
            {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [OTHER, TOOL]}},
            ToolChoice("required", ("search", "get_date")),
        ),
    ],
)
def test_every_form_of_choice_is_read(choice: Any, meant: ToolChoice) -> None:
    assert request(tools=[TOOL, OTHER], tool_choice=choice).choice == meant


def test_content_is_a_string_or_text_parts_and_a_developer_is_a_system() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    messages = [{"role": "developer", "content": parts}, HI, {"role": "assistant", "refusal": "no"}]
    assert openai_chat.read_request({"messages": messages}).messages == (
        Message(Role.SYSTEM, "ab"),
        Message(Role.USER, "hi"),
        Message(Role.ASSISTANT, "no"),
    )


def test_options_are_read_and_those_that_change_nothing_are_left() -> None:
    asked = request(
        max_completion_tokens=5,
        stop="x",
        seed=7,
        temperature=0,
        metadata={"a": "b"},
        user="me",
        store=True,
        n=1,
        logprobs=False,
        frequency_penalty=0,
        modalities=["text"],
        reasoning_effort="low",
        response_format={"type": "text"},
        parallel_tool_calls=False,
    )
    assert asked == ChatRequest(
        (Message(Role.USER, "hi"),), "m", parallel=False, max_tokens=5, stop=("x",), seed=7, temperature=0.0
    )


def test_an_answer_of_a_schema_is_asked_for() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
    asked = request(response_format=form).output
    assert asked is not None
    assert (asked.schema, asked.name, asked.strict) == (schema, "answer", True)
    asked = request(response_format={"type": "json_object"}).output
    assert asked is not None
    assert asked.schema is None


TURN = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f"}}],
}


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"function_call": "auto"}, "function_call"),
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"logit_bias": {"1": 2}}, "logit_bias"),
        ({"presence_penalty": 0.5}, "presence_penalty"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"modalities": ["text", "audio"]}, "modalities[1]"),
        ({"web_search_options": {}}, "web_search_options"),
        ({"guided_json": {}}, "guided_json"),
        ({"temperature": 2.5}, "temperature"),
        ({"temperature": "1"}, "temperature"),
        ({"top_p": True}, "top_p"),
        ({"seed": 1.5}, "seed"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1, "max_completion_tokens": 2}, "max_tokens"),
        ({"stop": ["a", "b", "c", "d", "e"]}, "stop"),
        ({"stop": [""]}, "stop[0]"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"parallel_tool_calls": 0}, "parallel_tool_calls"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0].type"),
        ({"tools": [TOOL, OTHER, TOOL]}, "tools[2]"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
        (
            {"tools": [{"type": "function", "function": {"name": "a", "parameters": {"type": "array"}}}]},
            "tools[0].function.parameters.type",
        ),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": "sometimes"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": OTHER}, "tool_choice.function.name"),
        ({"tools": [TOOL], "tool_choice": {"type": "custom", "custom": {"name": "x"}}}, "tool_choice.type"),
        (
            {"tools": [TOOL], "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}},
            "tool_choice.allowed_tools.tools",
        ),
        ({"response_format": {"type": "grammar"}}, "response_format.type"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
            "response_format.json_schema.schema",
        ),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "function", "content": "x", "name": "f"}]}, "messages[0].role"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "messages[0].content[0].type",
        ),
        ({"messages": [{"role": "assistant", "audio": {"id": "x"}}]}, "messages[0].audio"),
        ({"messages": [HI, TURN]}, "messages[1]"),
        ({"messages": [TURN, HI, {"role": "tool", "tool_call_id": "a", "content": "x"}]}, "messages[0]"),
        ({"messages": [HI, {"role": "tool", "tool_call_id": "a", "content": "x"}]}, "messages[1]"),
        ({"messages": [TURN, {"role": "tool", "content": "x"}]}, "messages[1].tool_call_id"),
        ({"messages": [TURN, {"role": "tool", "tool_call_id": "b", "content": "x"}]}, "messages[1]"),
        ({"messages": [TURN, *[{"role": "tool", "tool_call_id": "a", "content": "x"}] * 2]}, "messages[2]"),
        (
            {"messages": [{"role": "assistant", "tool_calls": TURN["tool_calls"] * 2}]},
            "messages[0]",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_its_place(fields: dict[str, Any], place: str) -> None:
    with pytest.raises(BadInput) as refused:
        request(**fields)
    assert refused.value.field == place
    assert str(refused.value).startswith(place + ": ")
    status, body = openai_chat.write_error(refused.value)
    assert (status, body["error"]["param"]) == (400, place)


def test_every_option_of_the_official_package_is_read_left_or_refused_on_purpose() -> None:
    refused = {"audio", "function_call", "functions", "moderation", "web_search_options"}
    known = set(get_type_hints(CompletionCreateParamsStreaming)) | set(
        get_type_hints(CompletionCreateParamsNonStreaming)
    )
    assert known - READ - LEFT == refused
    assert (READ | LEFT) - known == set()
    assert not READ & LEFT
    for name in refused:
        with pytest.raises(BadInput, match=rf"^{name}: not supported"):
            request(**{name: {}})


def test_a_call_that_is_none_goes_upstream_as_text_and_what_was_said_of_it_after_the_other_results() -> None:
    calls = (ChatCall("a", "", "<tool_call>"), ChatCall("b", "f", "{}"))
    results = [Message(Role.TOOL, "Error (malformed_call): x", (), "a", True), Message(Role.TOOL, "y", (), "b")]
    sent = openai_chat.write_request(ChatRequest((Message(Role.ASSISTANT, "so ", calls), *results)))["messages"]
    assert [(message["role"], message["content"]) for message in sent] == [
        ("assistant", "so <tool_call>"),
        ("tool", "y"),
        ("user", "Error (malformed_call): x"),
    ]


# What real servers answer


@pytest.mark.case("R9")
@pytest.mark.case("R10")
@pytest.mark.parametrize("arguments", ["", None, "null", "  ", {}])
def test_a_call_without_arguments_has_an_empty_object(arguments: Any) -> None:
    assert calls_of(call(arguments, "f", "1", 0)) == [("f", "{}")]
    message = {"content": None, "tool_calls": [call(arguments, "f", "1")]}
    reply = openai_chat.read_reply({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    assert reply.calls == (ChatCall("1", "f", "{}"),)


def test_pieces_of_null_are_no_arguments_and_what_only_begins_so_is_kept() -> None:
    assert calls_of(call("nu", "f", "1", 0), call("ll", index=0)) == [("f", "{}")]
    assert calls_of(call(" n", "f", "1", 0), call("o", index=0)) == [("f", " no")]


@pytest.mark.case("R17")
@pytest.mark.case("R23")
@pytest.mark.parametrize(
    "deltas",
    [
        # as the API says
        [call("", "f", "1", 0), call('{"a":1}', index=0), call("", "g", "2", 1), call('{"b":2}', index=1)],
        # one number for all calls
        [call("", "f", "1", 0), call('{"a":1}', index=0), call("", "g", "2", 0), call('{"b":2}', index=0)],
        [call('{"a":1}', "f", "1", 0), call('{"b":2}', "g", "2", 0)],
        # and no id
        [call('{"a":1}', "f", "", 0), call('{"b":2}', "g", "", 0)],
        [call('{"a":1}', "f"), call('{"b":2}', "g")],
        # pieces by turns, by id
        [
            call("", "f", "1", 0),
            call("", "g", "2", 0),
            call('{"a":1}', id="1", index=0),
            call('{"b":2}', id="2", index=0),
        ],
        # one id for all calls
        [call('{"a":1}', "f", "1", 0), call('{"b":2}', "g", "1", 1)],
        [call('{"a":1}', "f", "1", 0), call('{"b"', "g", "1", 0), call(":2}", index=0)],
        # the name with every piece
        [call('{"a"', "f", "1", 0), call(":1}", "f", "1", 0), call('{"b":', "g", "2", 1), call("2}", "g", "2", 1)],
        # a new id with every piece
        [
            call('{"a"', "f", "1", 0),
            call(":1}", id="2", index=0),
            call('{"b":2', "g", "3", 1),
            call("}", id="4", index=1),
        ],
        # a new number with every piece
        [call('{"a"', "f", "1", 0), call(":1}", index=1), call('{"b":2}', "g", "2", 2)],
        # numbers by turns
        [call("", "f", "1", 1), call("", "g", "2", 0), call('{"a":1}', index=1), call('{"b":2}', index=0)],
        # the name after the id, an object for a text
        [call(None, None, "1", 0), call({"a": 1}, "f", "1", 0), call({"b": 2}, "g", "2", 1)],
    ],
)
def test_calls_are_told_apart_whatever_their_numbers(deltas: list[dict[str, Any]]) -> None:
    assert calls_of(*deltas) == [("f", '{"a":1}'), ("g", '{"b":2}')]


def test_two_calls_of_one_tool_with_one_number_and_no_id_are_two() -> None:
    assert calls_of(call('{"a":1}', "f", "", 0), call('{"a":2}', "f", "", 0)) == [("f", '{"a":1}'), ("f", '{"a":2}')]


def test_an_empty_piece_with_the_name_again_is_no_other_call() -> None:
    assert calls_of(call('{"a":1}', "f", "1", 0), call("", "f", "1", 0)) == [("f", '{"a":1}')]


@pytest.mark.case("R20")
@pytest.mark.parametrize("id_", ["", None, "call_0"])
def test_ids_that_are_empty_or_stand_twice_are_made_anew(id_: str | None) -> None:
    message = {"tool_calls": [call("{}", "f", id_), call("{}", "f", id_), call("{}", "f", "call_2")]}
    whole = openai_chat.read_reply({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    stream = read([chunk({"tool_calls": [call("{}", "f", id_, 0), call("{}", "f", id_, 1)]}, "tool_calls")])
    for reply in (whole, stream):
        ids = [call.id for call in reply.calls]
        assert all(ids)
        assert len(set(ids)) == len(ids)
    assert whole.calls[2].id == "call_2"


@pytest.mark.case("R3")
@pytest.mark.case("R42")
@pytest.mark.parametrize("finish", ["tool_calls", "stop", "length"])
@pytest.mark.parametrize("arguments", ['{"thread_id":"a","limit":', '{"a":"b', '{"a":"\\', "{", '{"a":[{}'])
def test_a_call_that_was_never_closed_means_that_the_turn_was_cut(finish: str, arguments: str) -> None:
    reply = read([chunk({"tool_calls": [call(arguments, "f", "1", 0)]}, finish)])
    assert reply == ChatReply("", (ChatCall("1", "f", arguments, complete=False),), StopReason.LENGTH)


@pytest.mark.case("R1")
@pytest.mark.case("R2")
@pytest.mark.parametrize(
    "arguments", ['{"command": "mkdir -p test/{test1,test2"}', '{"numbers":[{"x":1}]}', r'{"a":"\"}{\\"}']
)
def test_brackets_in_strings_end_nothing_however_the_stream_is_cut(arguments: str) -> None:
    for size in range(1, len(arguments) + 1):
        parts = [arguments[start : start + size] for start in range(0, len(arguments), size)]
        deltas = [call(parts[0], "f", "1", 0), *(call(part, "f", "1", 0) for part in parts[1:])]
        assert calls_of(*deltas) == [("f", arguments)]
        assert read([chunk({"tool_calls": deltas}, "tool_calls")]).stop is StopReason.CALLS


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("stop", StopReason.CALLS),
        ("tool_calls", StopReason.CALLS),
        ("length", StopReason.LENGTH),
        ("content_filter", StopReason.REFUSED),
        ("abort", StopReason.LENGTH),
        (None, StopReason.LENGTH),
    ],
)
def test_whole_calls_run_only_where_the_server_vouches_for_the_turn(finish: str | None, stop: StopReason) -> None:
    assert read([chunk({"tool_calls": [call("{}", "f", "1", 0)]}, finish), Event("[DONE]")]).stop is stop
    message = {"tool_calls": [call("{}", "f", "1")]}
    assert openai_chat.read_reply({"choices": [{"message": message, "finish_reason": finish}]}).stop is stop


def test_a_turn_that_ends_for_calls_and_has_none_has_ended() -> None:
    assert read([chunk({"content": "a"}, "tool_calls")]) == ChatReply("a")


def test_a_refusal_is_text_of_a_turn_that_was_declined() -> None:
    assert read([chunk({"refusal": "I will"}), chunk({"refusal": " not"}, "stop")]).stop is StopReason.REFUSED
    message = {"content": None, "refusal": "no"}
    reply = openai_chat.read_reply({"choices": [{"message": message, "finish_reason": "stop"}]})
    assert reply == ChatReply("no", stop=StopReason.REFUSED)


@pytest.mark.case("R26")
def test_a_call_that_was_left_in_the_text_stays_there() -> None:
    text = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    assert read([chunk({"content": text}, "stop")]) == ChatReply(text)


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        ({}, TokenUsage()),
        ({"usage": None}, TokenUsage()),
        ({"usage": {"prompt_tokens": 3, "completion_tokens": None}}, TokenUsage(3)),
        (
            {"usage": {"prompt_tokens": 3, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 2}}},
            TokenUsage(3, 4, 2),
        ),
    ],
)
def test_usage_is_taken_where_it_is_told(usage: dict[str, Any], told: TokenUsage) -> None:
    after = Event(jsonio.dumps({"choices": [], **usage}))
    assert read([chunk({"content": "a"}, "stop"), after, Event("[DONE]")]).usage == told
    assert read([chunk({"content": "a"}, "stop", **usage)]).usage == told
    body = {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}], **usage}
    assert openai_chat.read_reply(body).usage == told


def test_each_piece_comes_as_soon_as_it_is_there() -> None:
    reader = openai_chat.reader()
    assert reader.push(chunk({"role": "assistant", "content": ""})) == []
    assert reader.push(Event("")) == []
    assert reader.push(chunk({"content": "a"})) == [TextDelta("a")]
    assert reader.push(chunk({"tool_calls": [call("", "f", "1", 0)]})) == [CallDelta(0, "", "1", "f")]
    assert reader.push(chunk({"tool_calls": [call('{"', index=0)]})) == [CallDelta(0, '{"')]
    assert reader.push(chunk({"tool_calls": [call('a":1}', index=0)]})) == [CallDelta(0, 'a":1}')]
    assert reader.push(chunk({}, "tool_calls")) == []
    assert reader.push(Event("[DONE]")) == [ReplyEnded(StopReason.CALLS)]
    assert reader.push(chunk({"content": "late"})) == reader.flush() == []


@pytest.mark.parametrize(
    "event",
    [
        Event('{"choices": 3}'),
        Event('{"choices": [{"delta": {"content": 3}}]}'),
        Event('{"choices": [{"delta": {"tool_calls": [3]}}]}'),
        Event('{"error": {"message": "out of memory"}}'),
        Event('{"message": "out of memory"}', "error"),
    ],
)
def test_a_stream_that_breaks_the_api_is_the_servers_fault(event: Event) -> None:
    with pytest.raises(ModelUnavailable):
        openai_chat.reader().push(event)


# Errors


@pytest.mark.parametrize("leaf", LEAVES)
def test_every_error_has_its_status_and_the_shape_of_the_api(leaf: type[Exception]) -> None:
    status, body = openai_chat.write_error(leaf("It is so."))  # type: ignore[arg-type]
    assert 400 <= status < 600
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert openai_chat.write_error(NotFound("x"))[0] == 404
