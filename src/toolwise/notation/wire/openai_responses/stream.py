"""The pieces of a turn -> the events of a streamed reply of OpenAI's Responses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toolwise.core import jsonio
from toolwise.core.chat import CallDelta, ChatCall, ChatDelta, ChatRequest, ReplyEnded, StopReason, TextDelta
from toolwise.core.errors import ToolwiseError
from toolwise.notation.wire.base import Event, Ident, Json, status_of
from toolwise.notation.wire.openai_chat.errors import error_object
from toolwise.notation.wire.openai_responses.reply import call_item, message_item, response, text_part
from toolwise.notation.wire.turn import Nesting, told_stop

_CODES = {400: "invalid_prompt", 429: "rate_limit_exceeded"}  # the API knows no others for what happens here


@dataclass(slots=True, eq=False)
class _Item:
    """An item of the output, as it grows; a message where `call` is None."""

    number: int
    call: CallDelta | None = None
    texts: list[str] = field(default_factory=list)
    nesting: Nesting = field(default_factory=Nesting)
    done: Json | None = None

    @property
    def text(self) -> str:
        return "".join(self.texts)


class Writer:
    """Items follow one another: one that cannot grow any more is done when the next one begins.

    A message goes on in a new item after a call. Calls whose pieces come by turns stay open side by side.
    """

    def __init__(self, request: ChatRequest, ident: Ident) -> None:
        self._request = request
        self._ident = ident
        self._sequence = 0
        self._items: list[_Item] = []
        self._message: _Item | None = None  # that text goes to
        self._calls: dict[int, _Item | None] = {}  # by our number; None for what is text
        self._ended = False

    def push(self, delta: ChatDelta) -> list[Event]:
        if self._ended:
            return []
        events = self._begin()
        match delta:
            case TextDelta(text):
                return events + self._grow_text(text)
            case CallDelta():
                return events + self._grow_call(delta)
        return events + self._end(delta)

    def fail(self, error: ToolwiseError) -> list[Event]:
        if self._ended:
            return []
        events = self._begin()
        self._ended = True
        told = error_object(error)
        failed = response(self._request, self._ident, [item.done for item in self._items if item.done])
        failed |= {"status": "failed", "error": {**told, "code": _CODES.get(status_of(error), "server_error")}}
        return [*events, self._event("response.failed", response=failed)]

    def _begin(self) -> list[Event]:
        if self._sequence:
            return []
        begun = response(self._request, self._ident, [])
        return [self._event("response.created", response=begun), self._event("response.in_progress", response=begun)]

    def _grow_text(self, text: str) -> list[Event]:
        if not text:
            return []
        events: list[Event] = []
        if self._message is None:
            events = self._open(_Item(len(self._items)))
        assert self._message is not None
        self._message.texts.append(text)
        return [*events, self._part_event("output_text.delta", self._message, delta=text, logprobs=[])]

    def _grow_call(self, delta: CallDelta) -> list[Event]:
        events: list[Event] = []
        if delta.index not in self._calls:
            begun = _Item(len(self._items), delta) if delta.name else None
            self._calls[delta.index] = begun
            events = self._open(begun) if begun else []
        item = self._calls[delta.index]
        if item is None:
            return self._grow_text(delta.arguments)
        if delta.arguments:
            item.texts.append(delta.arguments)
            item.nesting.push(delta.arguments)
            events.append(self._item_event("function_call_arguments.delta", item, delta=delta.arguments))
        return events

    def _end(self, ended: ReplyEnded) -> list[Event]:
        events: list[Event] = []
        if not self._items:
            events += self._open(_Item(0))
        broken = [item for item in map(self._calls.get, ended.broken) if item is not None]
        stop = told_stop(ended.stop, any(item.call for item in self._items), bool(broken))
        cut = stop in (StopReason.LENGTH, StopReason.REFUSED)
        for item in self._items:
            if item.done is None:
                events += self._close(item, cut if item.call is None else item in broken)
        self._ended = True
        # A call that went on after it was done is told as it is in the end.
        output = [self._written(item, item.done["status"]) for item in self._items if item.done]
        told = response(self._request, self._ident, output, stop, ended.usage)
        return [*events, self._event(f"response.{told['status']}", response=told)]

    # Items

    def _open(self, item: _Item) -> list[Event]:
        """The item begins, after those that are done by it."""
        events = [
            event
            for earlier in self._items
            if earlier.done is None and (earlier.call is None or earlier.nesting.closed)
            for event in self._close(earlier)
        ]
        self._items.append(item)
        self._message = item if item.call is None else None
        added = self._written(item, "in_progress")
        events.append(self._event("response.output_item.added", output_index=item.number, item=added))
        if item.call is None:
            events.append(self._part_event("content_part.added", item, part=text_part("")))
        return events

    def _close(self, item: _Item, cut: bool = False) -> list[Event]:
        item.done = self._written(item, "incomplete" if cut else "completed")
        if item.call is None:
            said = [
                self._part_event("output_text.done", item, text=item.text, logprobs=[]),
                self._part_event("content_part.done", item, part=text_part(item.text)),
            ]
        else:
            said = [self._item_event("function_call_arguments.done", item, arguments=item.text)]
        return [*said, self._event("response.output_item.done", output_index=item.number, item=item.done)]

    def _written(self, item: _Item, status: str) -> Json:
        if item.call is not None:
            call = ChatCall(item.call.id, item.call.name, item.text)
            return call_item(self._ident, item.number, call, status)
        return message_item(self._ident, item.number, None if status == "in_progress" else item.text, status)

    # Events

    def _part_event(self, kind: str, item: _Item, **told: Any) -> Event:
        return self._item_event(kind, item, content_index=0, **told)

    def _item_event(self, kind: str, item: _Item, **told: Any) -> Event:
        prefix = "fc" if item.call else "msg"
        place = {"item_id": f"{prefix}_{self._ident.id}_{item.number}", "output_index": item.number}
        return self._event(f"response.{kind}", **place, **told)

    def _event(self, kind: str, **told: Any) -> Event:
        event = Event(jsonio.compact({"type": kind, "sequence_number": self._sequence, **told}), kind)
        self._sequence += 1
        return event


def writer(request: ChatRequest, ident: Ident) -> Writer:
    return Writer(request, ident)
