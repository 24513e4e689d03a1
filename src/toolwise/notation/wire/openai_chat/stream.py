"""The pieces of a turn -> the events of a streamed reply of OpenAI's Chat Completions."""

from __future__ import annotations

from toolwise.core import jsonio
from toolwise.core.chat import CallDelta, ChatDelta, ChatRequest, ReplyEnded, TextDelta
from toolwise.core.errors import ToolwiseError
from toolwise.notation.wire.base import Event, Ident, Json
from toolwise.notation.wire.openai_chat.errors import error_object
from toolwise.notation.wire.openai_chat.reply import DONE, FINISH, head, write_usage
from toolwise.notation.wire.turn import told_stop


class Writer:
    """The first event names the role. After the last one, or a failure, nothing is written any more."""

    def __init__(self, request: ChatRequest, ident: Ident) -> None:
        self._head = head(ident, "chat.completion.chunk")
        self._usage = request.stream_usage
        self._numbers: dict[int, int | None] = {}  # of the calls, as they are written; None for what is text
        self._begun = False
        self._ended = False

    def push(self, delta: ChatDelta) -> list[Event]:
        if self._ended:
            return []
        match delta:
            case TextDelta(text):
                return [self._chunk({"content": text})] if text else []
            case CallDelta():
                return self._call(delta)
        return self._end(delta)

    def fail(self, error: ToolwiseError) -> list[Event]:
        """The client raises for it; no [DONE] follows, which would say that the turn is whole."""
        if self._ended:
            return []
        self._ended = True
        return [Event(jsonio.compact({"error": error_object(error)}))]

    def _call(self, delta: CallDelta) -> list[Event]:
        if delta.index not in self._numbers:
            named = self._named
            self._numbers[delta.index] = named if delta.name else None
            if delta.name:
                function = {"name": delta.name, "arguments": delta.arguments}
                call = {"index": named, "id": delta.id, "type": "function", "function": function}
                return [self._chunk({"tool_calls": [call]})]
        number = self._numbers[delta.index]
        if not delta.arguments:
            return []
        if number is None:
            return [self._chunk({"content": delta.arguments})]
        return [self._chunk({"tool_calls": [{"index": number, "function": {"arguments": delta.arguments}}]})]

    @property
    def _named(self) -> int:
        return sum(number is not None for number in self._numbers.values())

    def _end(self, ended: ReplyEnded) -> list[Event]:
        broken = any(self._numbers.get(index) is not None for index in ended.broken)
        events = [self._chunk({}, FINISH[told_stop(ended.stop, self._named > 0, broken)])]
        if self._usage:
            events.append(Event(jsonio.compact(self._head | {"choices": [], "usage": write_usage(ended.usage)})))
        self._ended = True
        return [*events, Event(DONE)]

    def _chunk(self, delta: Json, finish: str | None = None) -> Event:
        if not self._begun:
            self._begun = True
            delta = {"role": "assistant", "content": "" if finish else None} | delta
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        chunk = self._head | {"choices": [choice]}
        return Event(jsonio.compact(chunk | {"usage": None} if self._usage else chunk))


def writer(request: ChatRequest, ident: Ident) -> Writer:
    return Writer(request, ident)
