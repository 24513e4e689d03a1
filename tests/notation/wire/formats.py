"""The four formats side by side, as the tests of what holds in each of them see them: a module, what it can carry, and
how a client writes a conversation in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import strategies as st

from toolwise.core import jsonio
from toolwise.core.chat import (
    ChatCall,
    ChatReply,
    ChatRequest,
    Message,
    OutputSchema,
    Role,
    StopReason,
    ToolChoice,
    ToolSpec,
    gathered,
    pieces,
)
from toolwise.notation.wire import anthropic, gemini, openai_chat, openai_responses
from toolwise.notation.wire.base import Event
from wire_talk import IDENT, NAMES, OBJECTS, TEXTS, calls, replies, written

Json = dict[str, Any]
Options = Mapping[str, st.SearchStrategy[Any]]

FILLED = TEXTS.filter(bool)
SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
SCHEMAS = st.just(SCHEMA) | OBJECTS.map(lambda more: {**more, "type": "object", "properties": {}})
TOOLS = st.lists(
    st.builds(ToolSpec, NAMES, TEXTS, SCHEMAS, st.booleans()), max_size=4, unique_by=lambda tool: tool.name
).map(tuple)
COUNTS = st.integers(1, 10**6)
SHARES = st.none() | st.floats(0, 1)
HEAT = st.none() | st.floats(0, 2)
STOPS = st.lists(FILLED, max_size=4).map(tuple)


@dataclass(frozen=True)
class Format:
    """`requests` and `replies` are whatever the API can carry. A conversation is made of the messages that `user`,
    `asks` (ids of calls, and the text of their arguments) and `results` (id and text, one after another) give.
    """

    wire: Any
    requests: st.SearchStrategy[ChatRequest]
    replies: st.SearchStrategy[ChatReply]
    body: Callable[[list[Json]], Json]
    user: Callable[[str], list[Json]]
    asks: Callable[[list[str], str], list[Json]]
    results: Callable[[list[tuple[str, str]]], list[Json]]

    @property
    def name(self) -> str:
        return str(self.wire.__name__.rpartition(".")[2])


# What each can carry


@st.composite
def conversations(draw: st.DrawFn, ids_again: bool = True) -> tuple[Message, ...]:
    """A system prompt, perhaps, and turns that are all answered; the ids of one turn may stand in another."""
    messages = [Message(Role.SYSTEM, draw(FILLED))] if draw(st.booleans()) else []
    messages.append(Message(Role.USER, draw(TEXTS)))
    for turn in range(draw(st.integers(0, 3))):
        made = draw(calls())
        if not ids_again:
            made = tuple(replace(call, id=f"{turn}-{call.id}") for call in made)
        messages.append(Message(Role.ASSISTANT, draw(TEXTS if made else FILLED), made))
        for call in made:
            code = draw(st.sampled_from(["", "", "tool_failed", "timeout"]))
            words = f"Error ({code}): {draw(TEXTS)}" if code else draw(TEXTS)
            messages.append(Message(Role.TOOL, words, call_id=call.id, is_error=bool(code)))
        if not made or draw(st.booleans()):
            messages.append(Message(Role.USER, draw(TEXTS)))
    return tuple(messages)


@st.composite
def openai_requests(draw: st.DrawFn, options: Options) -> ChatRequest:
    """Any subset of the tools may be chosen, and a schema of the answer has a name."""
    outputs = [None, OutputSchema(), OutputSchema(SCHEMA, "answer"), OutputSchema(SCHEMA, "x", False)]
    tools = draw(TOOLS)
    choice = ToolChoice()
    if tools:
        names = tuple(draw(st.lists(st.sampled_from([tool.name for tool in tools]), unique=True)))
        mode = draw(st.sampled_from(["auto", "none", "required"]))
        choice = ToolChoice(mode, () if mode == "none" else names)
    parallel = not tools or draw(st.booleans())
    asked = ChatRequest(draw(conversations()), "m", tools, choice, parallel, draw(st.sampled_from(outputs)))
    return replace(asked, **{name: draw(values) for name, values in options.items()})


@st.composite
def anthropic_requests(draw: st.DrawFn) -> ChatRequest:
    """One tool may be named; ids differ in the whole conversation; a bound on the answer is always there."""
    tools = draw(TOOLS)
    choices = [ToolChoice("none"), ToolChoice("required"), ToolChoice("required", (tools[0].name,))] if tools else []
    choice = draw(st.sampled_from([ToolChoice(), *choices]))
    stream = draw(st.booleans())
    return ChatRequest(
        draw(conversations(ids_again=False)),
        model="m",
        tools=tuple(tool for tool in tools if not choice.names or tool.name in choice.names),
        choice=choice,
        parallel=not tools or choice.mode == "none" or draw(st.booleans()),
        output=draw(st.none() | OBJECTS.map(OutputSchema)),
        max_tokens=draw(COUNTS),
        temperature=draw(SHARES),
        top_p=draw(SHARES),
        stop=draw(STOPS),
        stream=stream,
        stream_usage=stream,
    )


@st.composite
def gemini_requests(draw: st.DrawFn) -> ChatRequest:
    """All tools are strict or none is; model and streaming stand in the path, and not in the body."""
    tools = draw(TOOLS)
    named = [ToolChoice("required", tuple(tool.name for tool in tools[:some])) for some in (1, 2)]
    choices = [ToolChoice("none"), ToolChoice("required"), *named] if tools else []
    choice = draw(st.sampled_from([ToolChoice(), *choices]))
    strict = choice.forced or (choice.mode == "auto" and draw(st.booleans()))
    return ChatRequest(
        draw(conversations()),
        tools=tuple(replace(tool, strict=strict) for tool in tools),
        choice=choice,
        output=draw(st.none() | st.just(OutputSchema()) | OBJECTS.filter(bool).map(OutputSchema)),
        max_tokens=draw(st.none() | COUNTS),
        temperature=draw(HEAT),
        top_p=draw(SHARES),
        seed=draw(st.none() | st.integers(0, 2**31 - 1)),
        stop=draw(STOPS),
    )


@st.composite
def cut_replies(draw: st.DrawFn, broken: bool) -> ChatReply:
    """Turns of every kind, also those that were cut off or declined with calls in them; `broken`: in one of them."""
    reply = draw(replies())
    if not reply.calls or draw(st.booleans()):
        return reply
    if not broken or draw(st.booleans()):
        return replace(reply, stop=draw(st.sampled_from([StopReason.LENGTH, StopReason.REFUSED])))
    last = replace(reply.calls[-1], arguments=reply.calls[-1].arguments[:-1], complete=False)
    return replace(reply, calls=(*reply.calls[:-1], last), stop=StopReason.LENGTH)


CHAT_OPTIONS: Options = {
    **{"max_tokens": st.none() | COUNTS, "temperature": HEAT, "top_p": SHARES},
    **{"seed": st.none() | st.integers(), "stop": STOPS, "stream": st.just(True), "stream_usage": st.booleans()},
}
RESPONSES_OPTIONS: Options = {"max_tokens": st.none() | COUNTS, "temperature": HEAT, "top_p": SHARES}


def parsed(arguments: str) -> Any:
    return jsonio.loads(arguments.strip() or "null")


def gemini_call(id: str, arguments: str) -> Json:
    return {"functionCall": {"id": id, "name": "f", "args": parsed(arguments)}}


def gemini_result(id: str, text: str) -> Json:
    return {"functionResponse": {"id": id, "name": "f", "response": {"output": text}}}


FORMATS = [
    Format(
        openai_chat,
        openai_requests(CHAT_OPTIONS),
        cut_replies(broken=True),
        body=lambda messages: {"model": "m", "messages": messages},
        user=lambda text: [{"role": "user", "content": text}],
        asks=lambda ids, arguments: [
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}} for id in ids
                ],
            }
        ],
        results=lambda told: [{"role": "tool", "tool_call_id": id, "content": text} for id, text in told],
    ),
    Format(
        openai_responses,
        st.builds(
            lambda asked, stream: replace(asked, stream=stream, stream_usage=stream),
            openai_requests(RESPONSES_OPTIONS),
            st.booleans(),
        ),
        cut_replies(broken=True),
        body=lambda messages: {"model": "m", "input": messages},
        user=lambda text: [{"role": "user", "content": text}],
        asks=lambda ids, arguments: [
            {"type": "function_call", "call_id": id, "name": "f", "arguments": arguments} for id in ids
        ],
        results=lambda told: [{"type": "function_call_output", "call_id": id, "output": text} for id, text in told],
    ),
    Format(
        anthropic,
        anthropic_requests(),
        cut_replies(broken=False),
        body=lambda messages: {"model": "m", "max_tokens": 10, "messages": messages},
        user=lambda text: [{"role": "user", "content": text}],
        asks=lambda ids, arguments: [
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": id, "name": "f", "input": parsed(arguments)} for id in ids],
            }
        ],
        results=lambda told: [
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": id, "content": text} for id, text in told],
            }
        ],
    ),
    Format(
        gemini,
        gemini_requests(),
        cut_replies(broken=False),
        body=lambda messages: {"contents": messages},
        user=lambda text: [{"role": "user", "parts": [{"text": text}]}],
        asks=lambda ids, arguments: [{"role": "model", "parts": [gemini_call(id, arguments) for id in ids]}],
        results=lambda told: [{"role": "user", "parts": [gemini_result(id, text) for id, text in told]}],
    ),
]

every_format = pytest.mark.parametrize("format", FORMATS, ids=[format.name for format in FORMATS])


# What each makes of the same turn

ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {}})
ASKED = ChatRequest((Message(Role.USER, "?"),), model="m", tools=(ADD,), max_tokens=5, stream=True, stream_usage=True)


def streamed(format: Format, reply: ChatReply) -> list[Event]:
    return written(format.wire.writer(ASKED, IDENT), pieces(reply))


def read_events(format: Format, events: list[Event]) -> ChatReply:
    reader = format.wire.reader()
    return gathered([*(delta for event in events for delta in reader.push(event)), *reader.flush()])


def as_streamed(format: Format, reply: ChatReply) -> ChatReply:
    return read_events(format, streamed(format, reply))


def as_whole(format: Format, reply: ChatReply) -> ChatReply:
    found: ChatReply = format.wire.read_reply(through_json(format.wire.write_reply(reply, ASKED, IDENT)))
    return found


def through_json(body: Any) -> Any:
    return jsonio.loads(jsonio.compact(body))


def read_again(format: Format, *history: Message) -> tuple[Message, ...]:
    """The history as a server of this format reads it."""
    body = format.wire.write_request(ChatRequest(history, model="m", max_tokens=5))
    found: tuple[Message, ...] = format.wire.read_request(through_json(body)).messages
    return found


def answered(*calls: ChatCall, text: str = "") -> list[Message]:
    """A turn with these calls, and the result of each."""
    results = [Message(Role.TOOL, f"result {call.id}", call_id=call.id) for call in calls]
    return [Message(Role.USER, "go"), Message(Role.ASSISTANT, text, calls), *results]
