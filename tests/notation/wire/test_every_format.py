"""What holds in all four formats, streamed and whole."""

from __future__ import annotations

import pytest

from toolwise.core.chat import ChatCall, ChatReply, ChatRequest, Message, Role, StopReason, ToolSpec, gathered, pieces
from toolwise.notation.wire import anthropic, gemini, openai_chat, openai_responses
from toolwise.notation.wire.base import Ident, WireFormat

FORMATS = [openai_chat, openai_responses, anthropic, gemini]
ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {}})
REQUEST = ChatRequest((Message(Role.USER, "?"),), model="m", tools=(ADD,), max_tokens=5)
IDENT = Ident("1", "m", 0)


def as_streamed(wire: WireFormat, reply: ChatReply) -> ChatReply:
    writer, reader = wire.writer(REQUEST, IDENT), wire.reader()
    events = [event for delta in pieces(reply) for event in writer.push(delta)]
    return gathered([*(delta for event in events for delta in reader.push(event)), *reader.flush()])


def as_whole(wire: WireFormat, reply: ChatReply) -> ChatReply:
    return wire.read_reply(wire.write_reply(reply, REQUEST, IDENT))


@pytest.mark.parametrize("sent", [as_streamed, as_whole])
@pytest.mark.parametrize("wire", FORMATS, ids=lambda wire: wire.__name__.rpartition(".")[2])
def test_a_turn_in_which_a_call_never_ended_is_told_as_cut_off(wire, sent):
    whole, broken = ChatCall("1", "add", "{}"), ChatCall("2", "add", '{"to": "carol', complete=False)
    for calls in ((broken,), (whole, broken)):
        for stop in (StopReason.CALLS, StopReason.LENGTH):
            assert sent(wire, ChatReply("Hm.", calls, stop)).stop is StopReason.LENGTH
    assert sent(wire, ChatReply("Hm.", (whole,), StopReason.CALLS)).stop is StopReason.CALLS


@pytest.mark.parametrize("wire", FORMATS, ids=lambda wire: wire.__name__.rpartition(".")[2])
def test_no_client_is_told_to_run_a_call_that_never_ended(wire):
    broken = ChatCall("1", "add", '{"to": "carol', complete=False)
    writer = wire.writer(REQUEST, IDENT)
    *_, ending = [writer.push(delta) for delta in pieces(ChatReply("", (broken,), StopReason.CALLS))]
    told = "".join(event.data for event in ending)
    assert not any(word in told for word in ('"tool_use"', '"tool_calls"', '"STOP"', '"status":"completed"'))
