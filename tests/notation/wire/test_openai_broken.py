"""Bodies and events with anything in the wrong place: refused by an error of ours, or read, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwise.core import jsonio
from toolwise.core.chat import ChatReply, ChatRequest, gathered
from toolwise.core.errors import BadInput, ModelUnavailable, ToolwiseError
from toolwise.notation.wire import openai_chat, openai_responses
from wire_talk import VALUES, told

EXAMPLES = Path(__file__).parent / "examples"
WIRES: dict[str, Any] = {"openai_chat": openai_chat, "openai_responses": openai_responses}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


@st.composite
def broken(draw: st.DrawFn, kind: str) -> tuple[Any, Any]:
    """A format, and an example of this kind with other values in up to two places."""
    name = draw(st.sampled_from(sorted(WIRES)))
    files = [jsonio.loads(file.read_text(encoding="utf-8")) for file in sorted((EXAMPLES / name).glob("*.json"))]
    body = draw(st.sampled_from([file[kind] for file in files if kind in file]))
    for _ in range(draw(st.integers(1, 2))):
        body = put(body, draw(st.sampled_from(places(body))), draw(VALUES))
    return WIRES[name], body


@settings(max_examples=100)
@given(broken("request"))
def test_a_request_is_read_or_refused(case: tuple[Any, Any]) -> None:
    wire, body = case
    try:
        asked = wire.read_request(body)
    except BadInput:
        return
    assert isinstance(asked, ChatRequest)
    assert all(isinstance(message.text, str) for message in asked.messages)


@settings(max_examples=100)
@given(broken("reply"))
def test_a_reply_is_read_or_the_server_is_blamed(case: tuple[Any, Any]) -> None:
    wire, body = case
    try:
        reply = wire.read_reply(body)
    except ModelUnavailable:
        return
    check(reply)


@settings(max_examples=100)
@given(broken("events"))
def test_a_stream_is_read_or_the_server_is_blamed(case: tuple[Any, Any]) -> None:
    wire, body = case
    events = [event for event in body if isinstance(event, dict | str)] if isinstance(body, list) else []
    events = [event for event in events if isinstance(event, str) or isinstance(event.get("type", ""), str)]
    reader = wire.reader()
    try:
        deltas = [delta for event in told(events) for delta in reader.push(event)]
    except ModelUnavailable:
        return
    check(gathered([*deltas, *reader.flush()]))


def check(reply: ChatReply) -> None:
    """A turn of which every call has an id of its own, a name and arguments that are text."""
    assert len({call.id for call in reply.calls} - {""}) == len(reply.calls)
    assert all(isinstance(call.name, str) and isinstance(call.arguments, str) for call in reply.calls)


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
@given(st.integers(300, 599), VALUES)
def test_an_error_is_always_one_of_ours(wire: Any, status: int, body: Any) -> None:
    assert isinstance(wire.read_error(status, body), ToolwiseError)
