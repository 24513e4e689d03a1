"""A turn's pieces <-> the Messages API's events: blocks that start, grow and stop, one after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolwise.core import jsonio
from toolwise.core.chat import CallDelta, ChatCall, ChatDelta, ChatRequest, ReplyEnded, TextDelta, TokenUsage
from toolwise.core.errors import ToolwiseError
from toolwise.notation.wire.anthropic.errors import read_error, write_error
from toolwise.notation.wire.anthropic.reply import API, ending, opening, read_stop, read_usage, write_usage
from toolwise.notation.wire.base import Event, Ident, Json
from toolwise.notation.wire.server import event_json, promised_otherwise
from toolwise.notation.wire.turn import Arguments, Nesting, arguments_text, own_id, told_stop


class Writer:
    """Blocks are numbered as they begin. Text after a call is a block of its own; so is a call that has no name, as
    text. A piece of a call whose block has stopped goes to that block all the same: clients add up by number.

    Not covered: arguments that turn out to be no JSON. They have gone out by then, and the client's parser says so.
    """

    def __init__(self, request: ChatRequest, ident: Ident) -> None:
        self._request = request
        self._ident = ident
        self._started = False
        self._blocks = 0
        self._open: int | None = None  # the block that grows
        self._text = False  # whether that is text
        self._of_call: dict[int, int | None] = {}  # a call's number -> its block; None for one that is text
        self._arguments: dict[int, Arguments] = {}  # by block; where there are none, its start has said so
        self._ended = False

    def push(self, delta: ChatDelta) -> list[Event]:
        if self._ended:
            return []
        events = [] if self._started else [self._start()]
        match delta:
            case TextDelta(text):
                events += self._grow_text(text)
            case CallDelta():
                events += self._grow_call(delta)
            case ReplyEnded():
                self._ended = True
                called = any(block is not None for block in self._of_call.values())
                broken = any(self._of_call.get(number) is not None for number in delta.broken)
                told = ending(told_stop(delta.stop, called, broken), self._request)
                events += self._stop()
                events.append(_event("message_delta", delta=told, usage=write_usage(delta.usage)))
                events.append(_event("message_stop"))
        return events

    def fail(self, error: ToolwiseError) -> list[Event]:
        """The client raises for it. After an end or a failure nothing is written any more."""
        if self._ended:
            return []
        self._ended = True
        return [Event(jsonio.compact(write_error(error)[1]), "error")]

    def _start(self) -> Event:
        self._started = True
        message = {**opening(self._ident), "content": [], "stop_reason": None, "stop_sequence": None}
        return _event("message_start", message={**message, "usage": write_usage(TokenUsage())})

    def _grow_text(self, text: str) -> list[Event]:
        if not text:
            return []
        begun = [] if self._text else self._begin({"type": "text", "text": ""})
        self._text = True
        return [*begun, self._grown({"type": "text_delta", "text": text})]

    def _grow_call(self, delta: CallDelta) -> list[Event]:
        events: list[Event] = []
        if delta.index not in self._of_call:
            if delta.name:
                events = self._begin({"type": "tool_use", "id": delta.id, "name": delta.name, "input": {}})
            self._of_call[delta.index] = self._open if delta.name else None
        block = self._of_call[delta.index]
        if block is None:
            return self._grow_text(delta.arguments)
        if piece := self._arguments.setdefault(block, Arguments()).push(delta.arguments):
            events.append(self._grown({"type": "input_json_delta", "partial_json": piece}, block))
        return events

    def _begin(self, block: Json) -> list[Event]:
        events = self._stop()
        self._open, self._blocks, self._text = self._blocks, self._blocks + 1, False
        return [*events, _event("content_block_start", index=self._open, content_block=block)]

    def _grown(self, delta: Json, block: int | None = None) -> Event:
        return _event("content_block_delta", index=self._open if block is None else block, delta=delta)

    def _stop(self) -> list[Event]:
        if self._open is None:
            return []
        stopped = _event("content_block_stop", index=self._open)
        self._open, self._text = None, False
        return [stopped]


@dataclass(slots=True)
class _Block:
    """A call's block: its number among the calls, what stood in its start, how far it got, and whether it stopped."""

    number: int
    input: Any
    nesting: Nesting = field(default_factory=Nesting)
    arguments: Arguments = field(default_factory=Arguments)
    begun: bool = False  # whether any of them came that are not blank
    stopped: bool = False

    @property
    def complete(self) -> bool:
        return self.stopped and not self.nesting.open


class Reader:
    """Survives: calls whose arguments stand in the start of their block or are missing, blocks that never stop, other
    kinds of blocks, a reason that does not fit, usage told once, ids that are empty or stand twice.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._ids: set[str] = set()
        self._reason: Any = None
        self._usage = TokenUsage()
        self._ended = False

    def push(self, event: Event) -> list[ChatDelta]:
        """Raises what `read_error` says for an error event, ModelUnavailable for one that the API does not have."""
        if self._ended or not event.data.strip() or event.data == "[DONE]":
            return []
        said = event_json(event.data)
        match said.get("type") or event.name:
            case "message_start":
                message = said.get("message")
                self._usage = read_usage(message.get("usage") if isinstance(message, dict) else None)
            case "content_block_start":
                return self._block_started(said)
            case "content_block_delta":
                return self._block_grew(said)
            case "content_block_stop":
                return self._block_stopped(said)
            case "message_delta":
                delta = said.get("delta")
                self._reason = (delta.get("stop_reason") if isinstance(delta, dict) else None) or self._reason
                self._usage = read_usage(said.get("usage"), self._usage)
            case "message_stop":
                return self.flush()
            case "error":
                raise read_error(0, said)
        return []

    def flush(self) -> list[ChatDelta]:
        if self._ended:
            return []
        self._ended = True
        broken = tuple(block.number for block in self._blocks.values() if not block.complete)
        calls = [ChatCall("", "", "", complete=block.complete) for block in self._blocks.values()]
        return [ReplyEnded(read_stop(self._reason, calls), self._usage, broken)]

    def _block_started(self, said: Mapping[str, Any]) -> list[ChatDelta]:
        block = said.get("content_block")
        if not isinstance(block, dict):
            raise promised_otherwise(API)
        if block.get("type") == "text":
            return _text(block.get("text"))
        if block.get("type") != "tool_use":
            return []
        id, name = own_id(block.get("id"), self._ids, "toolu_"), block.get("name")
        self._ids.add(id)
        begun = _Block(len(self._blocks), block.get("input"))
        self._blocks[_index(said)] = begun
        return [CallDelta(begun.number, "", id, name if isinstance(name, str) else "")]

    def _block_grew(self, said: Mapping[str, Any]) -> list[ChatDelta]:
        delta = said.get("delta")
        if not isinstance(delta, dict):
            raise promised_otherwise(API)
        if delta.get("type") == "text_delta":
            return _text(delta.get("text"))
        if delta.get("type") != "input_json_delta":
            return []
        block, piece = self._blocks.get(_index(said)), delta.get("partial_json")
        if block is None or not isinstance(piece, str):
            return []
        block.nesting.push(piece)
        block.begun = block.begun or bool(piece.strip())
        told = block.arguments.push(piece)
        return [CallDelta(block.number, told)] if told else []

    def _block_stopped(self, said: Mapping[str, Any]) -> list[ChatDelta]:
        block = self._blocks.get(_index(said))
        if block is None or block.stopped:
            return []
        block.stopped = True
        rest = block.arguments.end() if block.begun else arguments_text(block.input)
        return [CallDelta(block.number, rest)] if rest else []


def _index(said: Mapping[str, Any]) -> int:
    index = said.get("index")
    if not isinstance(index, int):
        raise promised_otherwise(API)
    return index


def _text(text: Any) -> list[ChatDelta]:
    return [TextDelta(text)] if isinstance(text, str) and text else []


def _event(kind: str, **fields: Any) -> Event:
    return Event(jsonio.compact({"type": kind, **fields}), kind)


def writer(request: ChatRequest, ident: Ident) -> Writer:
    return Writer(request, ident)


def reader() -> Reader:
    return Reader()
