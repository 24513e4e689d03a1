"""A reply of OpenAI's Responses, whole or streamed -> one turn; as tolerant as servers make it necessary.

Items are told apart by their ids where a server sends them, else by their places. What a server tells only when an
item is done, or the whole turn, is taken then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolwise.core.chat import ChatDelta, ChatReply, ReplyEnded, StopReason, TextDelta, TokenUsage, gathered
from toolwise.notation.wire.base import Event
from toolwise.notation.wire.fields import Field
from toolwise.notation.wire.openai_chat.errors import read_error
from toolwise.notation.wire.openai_chat.pieces import CallPieces
from toolwise.notation.wire.openai_chat.read_reply import failed, promised, read_usage
from toolwise.notation.wire.openai_chat.reply import DONE
from toolwise.notation.wire.server import event_json

_LAST = {"response.completed": "completed", "response.incomplete": "incomplete", "response.failed": "failed"}


def read_reply(body: Any) -> ChatReply:
    """Raises ModelUnavailable for a body that the API does not promise, and for a turn that failed."""
    reader = Reader()
    with promised():
        return gathered([*reader.read_response(Field(body)), *reader.flush()])


@dataclass(slots=True)
class _Item:
    """A call or a message. `told`: how many characters of each of its parts; a call has one."""

    call_id: str = ""
    told: dict[Any, int] = field(default_factory=dict)

    def rest(self, part: Any, text: str, whole: bool) -> str:
        """What is new in this text: all of it, if it is a piece and not the `whole` part."""
        told = self.told.get(part, 0)
        text = text[told:] if whole else text
        self.told[part] = told + len(text)
        return text


class Reader:
    def __init__(self) -> None:
        self._pieces = CallPieces()
        self._calls: dict[Any, _Item] = {}  # by the ids of the item and the call, and by the place in the output
        self._messages: dict[Any, _Item] = {}
        self._told: set[str] = set()  # kinds of items
        self._refused = False
        self._stop = StopReason.LENGTH  # until somebody vouches for the turn
        self._usage = TokenUsage()
        self._ended = False

    def push(self, event: Event) -> list[ChatDelta]:
        """Raises what `read_error` says for an error, ModelUnavailable for what the API does not promise."""
        if self._ended or event.data.strip() in ("", DONE):
            return []
        body = event_json(event.data)
        kind = Field(body)["type"].word or event.name
        if kind == "error" or body.get("error"):
            raise read_error(0, body)
        response = body.get("response")
        if kind == "response.failed" and isinstance(response, Mapping):
            raise read_error(0, response)
        with promised():
            if kind in _LAST:
                return [*self.read_response(Field(body)["response"], _LAST[kind]), *self.flush()]
            return self._read(kind.removeprefix("response."), Field(body))

    def flush(self) -> list[ChatDelta]:
        if self._ended:
            return []
        self._ended = True
        pieces, broken = self._pieces.end()
        stop = self._stop
        if self._refused:
            stop = StopReason.REFUSED
        elif stop is StopReason.END and "function_call" in self._told:
            stop = StopReason.LENGTH if broken else StopReason.CALLS
        return [*pieces, ReplyEnded(stop, self._usage, broken)]

    def read_response(self, response: Field, status: str = "") -> list[ChatDelta]:
        """How the turn ended, and all of it that was not told before."""
        status = response["status"].text(status)
        if status == "failed" or not response["error"].absent:
            raise failed({"error": response["error"].value})
        reason = {} if response["incomplete_details"].absent else response["incomplete_details"].object()
        if status == "completed":
            self._stop = StopReason.END
        elif reason.get("reason") == "content_filter":
            self._stop = StopReason.REFUSED
        if isinstance(response["usage"].value, Mapping):
            self._usage = read_usage(response["usage"].value, "input", "output")
        if response["output"].absent:
            raise response["output"].refused("there is none")
        # Some servers give other ids here than before: only what is of a kind that was not told at all is new.
        new = [item for item in response["output"].items() if item["type"].word not in self._told]
        return [delta for place, item in enumerate(new) for delta in self._item(item, place, whole=True)]

    def _read(self, kind: str, event: Field) -> list[ChatDelta]:
        place, item_id = event["output_index"].value, event["item_id"].value
        match kind:
            case "output_item.added" | "output_item.done":
                return self._item(event["item"], place, done=kind == "output_item.done")
            case "output_text.delta" | "refusal.delta":
                self._refused = self._refused or kind == "refusal.delta"
                message = self._message(item_id, place)
                text = message.rest(event["content_index"].integer(), event["delta"].text(""), whole=False)
                return [TextDelta(text)] if text else []
            case "function_call_arguments.delta":
                call = _known(self._calls, item_id, place)
                # Of a call that did not begin, nobody knows the name: all of it is told when it is done.
                return [] if call is None else self._arguments(call, place, event["delta"].text(""), whole=False)
        return []

    def _item(self, item: Field, place: Any, done: bool = False, whole: bool = False) -> list[ChatDelta]:
        """An item that begins, one that is `done`, or one that is told only once, as a `whole`."""
        match item["type"].word:
            case "function_call":
                return self._call(item, place, done)
            case "message" if done or whole:
                message = self._message(item["id"].value, place)
                parts = enumerate(item["content"].items())
                texts = [message.rest(number, self._part(part), whole=True) for number, part in parts]
                return [TextDelta(text) for text in texts if text]
        return []

    def _message(self, item_id: Any, place: Any) -> _Item:
        return _known(self._messages, item_id, place) or self._new("message", self._messages, item_id, place)

    def _part(self, part: Field) -> str:
        refused = part["type"].value == "refusal"
        self._refused = self._refused or refused
        return part["refusal" if refused else "text"].text("")

    def _call(self, item: Field, place: Any, done: bool) -> list[ChatDelta]:
        item_id, call_id, arguments = item["id"].value, item["call_id"].word, item["arguments"].value
        call = self._done(item_id, call_id, place) if done else None
        if call is not None:
            return self._arguments(call, place, item["arguments"].word, whole=True)
        call = self._new("function_call", self._calls, item_id, place, call_id)
        call.told[0] = len(item["arguments"].word)
        return list(self._pieces.push(call_id, place, item["name"].value, arguments))

    def _done(self, item_id: Any, call_id: str, place: Any) -> _Item | None:
        """The call that ends, if it had begun."""
        there = _known(self._calls, item_id) or _known(self._calls, place)
        if there is None or call_id in ("", there.call_id):
            return there
        return _known(self._calls, call_id)

    def _arguments(self, call: _Item, place: Any, arguments: str, whole: bool) -> list[ChatDelta]:
        return list(self._pieces.push(call.call_id, place, "", call.rest(0, arguments, whole)))

    def _new(self, kind: str, items: dict[Any, _Item], item_id: Any, place: Any, call_id: str = "") -> _Item:
        new = _Item(call_id)
        self._told.add(kind)
        for key in (item_id, place, call_id):
            if isinstance(key, int | str) and key != "":
                items[key] = new
        return new


def _known(items: Mapping[Any, _Item], *keys: Any) -> _Item | None:
    """The item with the first of these ids or places that is known."""
    found = (items[key] for key in keys if isinstance(key, int | str) and key in items)
    return next(found, None)


def reader() -> Reader:
    return Reader()
