"""A turn's pieces <-> the Gemini API's stream: responses that each have a piece of the text, and whole calls."""

from __future__ import annotations

from collections.abc import Iterable

from toolwise.core import jsonio
from toolwise.core.chat import CallDelta, ChatDelta, ChatRequest, ReplyEnded, TextDelta, gathered
from toolwise.core.errors import ToolwiseError
from toolwise.notation.wire.base import Event, Ident, Json
from toolwise.notation.wire.gemini.errors import read_error, write_error
from toolwise.notation.wire.gemini.reply import Reading, finish_reason, response, write_calls
from toolwise.notation.wire.server import event_json
from toolwise.notation.wire.turn import any_broken


class Writer:
    """Text goes out as it comes. A call is one object there, and that it came to its end is known at the end of the
    turn: calls go out in the last response, which also says why the turn ended.
    """

    def __init__(self, request: ChatRequest, ident: Ident) -> None:
        self._ident = ident
        self._calls: list[CallDelta] = []
        self._ended = False

    def push(self, delta: ChatDelta) -> list[Event]:
        if self._ended:
            return []
        match delta:
            case TextDelta(text):
                return [_event(response(self._ident, [{"text": text}]))] if text else []
            case CallDelta():
                self._calls.append(delta)
                return []
        return self._end(delta)

    def fail(self, error: ToolwiseError) -> list[Event]:
        """After an end or a failure nothing is written any more."""
        if self._ended:
            return []
        self._ended = True
        return [_event(write_error(error)[1])]

    def _end(self, ended: ReplyEnded) -> list[Event]:
        self._ended = True
        calls = gathered([*self._calls, ended]).calls
        parts = write_calls(calls) or [{"text": ""}]
        reason = finish_reason(ended.stop, any("functionCall" in part for part in parts), any_broken(calls))
        return [_event(response(self._ident, parts, reason, ended.usage))]


class JsonArray:
    """Events -> the bytes of one JSON array, which is what a stream is where nobody asked for server-sent events."""

    def __init__(self) -> None:
        self._begun = False

    def push(self, events: Iterable[Event]) -> bytes:
        data = b""
        for event in events:
            data += (b",\r\n" if self._begun else b"[") + event.data.encode()
            self._begun = True
        return data

    def end(self) -> bytes:
        return b"]" if self._begun else b"[]"


class Reader:
    """Nothing in a stream says that it is over: the last piece comes with `flush`."""

    def __init__(self) -> None:
        self._reading = Reading()
        self._ended = False

    def push(self, event: Event) -> list[ChatDelta]:
        """Raises what `read_error` says for an error, ModelUnavailable for what is no response."""
        if self._ended or not event.data.strip() or event.data == "[DONE]":
            return []
        said = dict(event_json(event.data))
        if "error" in said:
            raise read_error(0, said)
        deltas: list[ChatDelta] = []
        number = len(self._reading.calls)
        for part in self._reading.read(said):
            if isinstance(part, str):
                deltas.append(TextDelta(part))
            else:
                deltas.append(CallDelta(number, part.arguments, part.id, part.name))
                number += 1
        return deltas

    def flush(self) -> list[ChatDelta]:
        if self._ended:
            return []
        self._ended = True
        broken = tuple(number for number, call in enumerate(self._reading.calls) if not call.complete)
        return [ReplyEnded(self._reading.stop(), self._reading.usage, broken)]


def writer(request: ChatRequest, ident: Ident) -> Writer:
    return Writer(request, ident)


def reader() -> Reader:
    return Reader()


def _event(said: Json) -> Event:
    return Event(jsonio.compact(said))
