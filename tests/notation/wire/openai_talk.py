"""What the tests of OpenAI's two formats share: whole conversations, and turns that were cut off in a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from toolwise.core.chat import ChatReply, ChatRequest, Message, OutputSchema, Role, StopReason, ToolChoice, ToolSpec
from wire_talk import NAMES, TEXTS, calls, replies

SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
TOOLS = st.lists(
    st.builds(ToolSpec, NAMES, TEXTS, st.just(SCHEMA), st.booleans()), max_size=4, unique_by=lambda tool: tool.name
).map(tuple)
OUTPUTS = st.sampled_from([None, OutputSchema(), OutputSchema(SCHEMA, "answer"), OutputSchema(SCHEMA, "x", False)])
FILLED = TEXTS.filter(bool)


@st.composite
def any_replies(draw: st.DrawFn) -> ChatReply:
    """Turns of every kind, also those that were cut off or declined with calls in them."""
    reply = draw(replies())
    if not reply.calls or draw(st.booleans()):
        return reply
    if draw(st.booleans()):
        return replace(reply, stop=draw(st.sampled_from([StopReason.LENGTH, StopReason.REFUSED])))
    last = replace(reply.calls[-1], arguments=reply.calls[-1].arguments[:-1], complete=False)
    return replace(reply, calls=(*reply.calls[:-1], last), stop=StopReason.LENGTH)


@st.composite
def turns(draw: st.DrawFn) -> list[Message]:
    """An assistant's turn, with the results of its calls and what follows."""
    made = draw(calls())
    said = [Message(Role.ASSISTANT, draw(TEXTS if made else FILLED), made)]
    for call in made:
        failed, text = draw(st.booleans()), draw(TEXTS)
        said.append(Message(Role.TOOL, f"Error (timeout): {text}" if failed else text, (), call.id, failed))
    return [*said, Message(Role.USER, draw(FILLED))]


@st.composite
def choices(draw: st.DrawFn, tools: tuple[ToolSpec, ...]) -> ToolChoice:
    if not tools:
        return ToolChoice()
    names = tuple(draw(st.lists(st.sampled_from([tool.name for tool in tools]), unique=True)))
    mode = draw(st.sampled_from(["auto", "none", "required"]))
    return ToolChoice(mode, () if mode == "none" else names)


@st.composite
def requests(draw: st.DrawFn, options: Mapping[str, st.SearchStrategy[Any]]) -> ChatRequest:
    """A request; `options` are those that a format has."""
    messages = [Message(Role.USER, draw(FILLED))]
    if draw(st.booleans()):
        messages.insert(0, Message(Role.SYSTEM, draw(FILLED)))
    for turn in draw(st.lists(turns(), max_size=3)):
        messages.extend(turn)
    tools = draw(TOOLS)
    told = {name: draw(values) for name, values in options.items()}
    parallel = not tools or draw(st.booleans())
    return ChatRequest(tuple(messages), "m", tools, draw(choices(tools)), parallel, draw(OUTPUTS), **told)
