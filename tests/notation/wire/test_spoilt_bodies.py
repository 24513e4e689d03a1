"""Whatever a client or a server sends, what is raised is ours, and says who has to act."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from formats import FORMATS, Format, every_format
from hypothesis import given
from hypothesis import strategies as st

from toolwise.core import jsonio
from toolwise.core.chat import ChatReply, ChatRequest, ReplyEnded, gathered
from toolwise.core.errors import BadInput, ModelUnavailable, ToolwiseError
from toolwise.notation.wire import anthropic, gemini
from toolwise.notation.wire.sse import encode
from wire_talk import VALUES, read, spoilt, told

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
OWN_SCHEMA = {
    "type": "OBJECT",
    "properties": {"a": {"type": "STRING", "enum": ["x"], "nullable": True}},
    "required": ["a"],
}
REQUESTS: dict[Any, Any] = {
    anthropic: {
        "model": "m",
        "max_tokens": 5,
        "system": [{"type": "text", "text": "s"}],
        "tools": [{"name": "f", "description": "d", "input_schema": SCHEMA, "strict": True}],
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
        "stop_sequences": ["x"],
        "temperature": 0.5,
        "stream": True,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {"a": 1}}]},
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "a",
                        "content": [{"type": "text", "text": "ok"}],
                        "is_error": True,
                    },
                    {"type": "text", "text": "go"},
                ],
            },
        ],
    },
    gemini: {
        "systemInstruction": {"parts": [{"text": "s"}]},
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "f", "description": "d", "parameters": OWN_SCHEMA},
                    {"name": "g", "parametersJsonSchema": SCHEMA},
                ]
            }
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        "generationConfig": {"temperature": 1, "responseSchema": OWN_SCHEMA, "stopSequences": ["x"], "seed": 1},
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"functionCall": {"id": "a", "name": "f", "args": {"a": "x"}}}, {"text": "t"}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "a", "name": "f", "response": {"output": 1}}}]},
        ],
    },
}
REPLIES: dict[Any, Any] = {
    anthropic: {
        "content": [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "a", "name": "f", "input": {"a": 1}}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 3},
    },
    gemini: {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [{"text": "a"}, {"functionCall": {"name": "f", "args": {"a": 1}}}],
                },
                "finishReason": "STOP",
            }
        ],
        "promptFeedback": {"blockReason": None},
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2},
    },
}
STREAMS: dict[Any, Any] = {
    anthropic: [
        {"type": "message_start", "message": {"usage": {"input_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "a", "name": "f"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "a"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}},
        {"type": "error", "error": {"type": "overloaded_error", "message": "x"}},
    ],
    gemini: [REPLIES[gemini], {"error": {"code": 503, "message": "x", "status": "UNAVAILABLE"}}],
}
EXAMPLES = Path(__file__).parent / "examples"
FILES = {
    format.name: [jsonio.loads(file.read_text("utf-8")) for file in sorted((EXAMPLES / format.name).glob("*.json"))]
    for format in FORMATS
}


def samples(format: Format, kind: str, more: dict[Any, Any]) -> list[Any]:
    """The recorded bodies of this kind, and one with whatever they have not."""
    own = [more[format.wire]] if format.wire in more else []
    return own + [file[kind] for file in FILES[format.name] if kind in file]


def check(reply: ChatReply) -> None:
    """A turn of which every call has an id of its own, a name and arguments that are text."""
    assert len({call.id for call in reply.calls} - {""}) == len(reply.calls)
    assert all(isinstance(call.name, str) and isinstance(call.arguments, str) for call in reply.calls)


@every_format
def test_the_bodies_that_are_spoilt_are_whole(format: Format) -> None:
    for body in samples(format, "request", REQUESTS):
        assert isinstance(format.wire.read_request(body), ChatRequest)
    assert any(format.wire.read_reply(body).calls for body in samples(format, "reply", REPLIES))


@every_format
@given(data=st.data())
def test_a_spoilt_request_is_read_or_refused_by_a_place_in_it(format: Format, data: st.DataObject) -> None:
    sent = data.draw(spoilt(data.draw(st.sampled_from(samples(format, "request", REQUESTS)))))
    refused: BadInput | None = None
    try:
        asked = format.wire.read_request(sent)
        assert isinstance(asked, ChatRequest)
        assert all(isinstance(message.text, str) for message in asked.messages)
        assert isinstance(format.wire.write_request(asked), dict)
    except BadInput as error:
        refused = error
    if refused:
        assert str(refused).startswith(refused.field or "body")
        assert format.wire.write_error(refused)[0] == 400
        jsonio.compact(format.wire.write_error(refused)[1]).encode()


@every_format
@given(data=st.data())
def test_a_spoilt_reply_is_read_or_is_the_server_s_fault(format: Format, data: st.DataObject) -> None:
    sent = data.draw(spoilt(data.draw(st.sampled_from(samples(format, "reply", REPLIES)))) | VALUES)
    assert isinstance(format.wire.read_error(data.draw(st.integers(300, 599)), sent), ToolwiseError)
    try:
        reply = format.wire.read_reply(sent)
    except ModelUnavailable:
        return
    check(reply)


@every_format
@given(data=st.data())
def test_a_spoilt_stream_is_read_or_is_the_server_s_fault(format: Format, data: st.DataObject) -> None:
    sent = data.draw(spoilt(data.draw(st.sampled_from(samples(format, "events", STREAMS)))))
    events = [event for event in sent if isinstance(event, dict | str)]
    try:
        deltas = read(format.wire.reader(), map(encode, told(events)))
    except (ModelUnavailable, BadInput):  # the latter for an error that says so of the request
        return
    assert [type(delta) for delta in deltas].count(ReplyEnded) == 1
    check(gathered(deltas))
