"""A reply of OpenAI's Chat Completions, whole or streamed -> one turn; as tolerant as servers make it necessary.

A message of a whole reply is read as if it were the only piece of a stream, so both give the same turn. What decides
whether calls may run is what is there, not only what the server says of it: a turn that ends with `stop` and has calls
waits for them; one in which the JSON of a call was never closed was cut off, whatever was said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from toolwise.core.chat import ChatDelta, ChatReply, ReplyEnded, StopReason, TextDelta, TokenUsage, gathered
from toolwise.core.errors import BadInput, ModelUnavailable
from toolwise.notation.wire.base import Event
from toolwise.notation.wire.fields import Field
from toolwise.notation.wire.openai_chat.errors import read_error
from toolwise.notation.wire.openai_chat.pieces import CallPieces
from toolwise.notation.wire.openai_chat.reply import DONE
from toolwise.notation.wire.server import count_of, event_json

_WHOLE = frozenset({"stop", "tool_calls", "function_call"})


def read_reply(body: Any) -> ChatReply:
    """Raises ModelUnavailable for a body that the API does not promise."""
    reader = Reader()
    with promised():
        reply = Field(body)
        if not reply["error"].absent:
            raise failed(reply.object())
        choices = reply["choices"].items()
        if not choices:
            raise reply["choices"].refused("there is none")
        deltas = reader.read_choice(choices[0], "message")
        reader.read_usage(reply["usage"])
        return gathered([*deltas, *reader.flush()])


class Reader:
    """The last piece comes with [DONE] or the end of the stream, since the usage is told after all else."""

    def __init__(self) -> None:
        self._calls = CallPieces()
        self._called = False
        self._refused = False
        self._finish = ""
        self._usage = TokenUsage()
        self._ended = False

    def push(self, event: Event) -> list[ChatDelta]:
        """Raises what `read_error` says for an error, ModelUnavailable for what the API does not promise."""
        if self._ended or not event.data.strip():  # some servers keep a line open by events without data
            return []
        if event.data.strip() == DONE:
            return self.flush()
        body = event_json(event.data)
        if body.get("error") or event.name == "error":
            raise read_error(0, body)
        deltas: list[ChatDelta] = []
        with promised():
            chunk = Field(body)
            for choice in chunk["choices"].items():
                if choice["index"].value in (0, None):
                    deltas += self.read_choice(choice, "delta")
            self.read_usage(chunk["usage"])
        return deltas

    def flush(self) -> list[ChatDelta]:
        if self._ended:
            return []
        self._ended = True
        pieces, broken = self._calls.end()
        return [*pieces, ReplyEnded(self._stop(bool(broken)), self._usage, broken)]

    def read_choice(self, choice: Field, key: Literal["delta", "message"]) -> list[ChatDelta]:
        """What a delta says, or a whole message, in which every call stands once."""
        self._finish = choice["finish_reason"].text("") or self._finish
        message = choice[key]
        if message.absent:
            return []
        refusal = message["refusal"].text("")
        self._refused = self._refused or bool(refusal)
        deltas: list[ChatDelta] = [TextDelta(text) for text in (_content(message["content"]), refusal) if text]
        for number, item in enumerate(message["tool_calls"].items()):
            function = Field({}) if item["function"].absent else item["function"]
            index = number if key == "message" else item["index"].value
            name, arguments = function["name"].value, function["arguments"].value
            deltas += self._calls.push(item["id"].value, index, name, arguments)
            self._called = True
        return deltas

    def read_usage(self, usage: Field) -> None:
        if isinstance(usage.value, Mapping):
            self._usage = read_usage(usage.value)

    def _stop(self, broken: bool) -> StopReason:
        if self._refused or self._finish == "content_filter":
            return StopReason.REFUSED
        if broken or self._finish not in _WHOLE:  # also where nothing vouches for the turn
            return StopReason.LENGTH
        return StopReason.CALLS if self._called else StopReason.END


def reader() -> Reader:
    return Reader()


@contextmanager
def promised() -> Iterator[None]:
    """What does not fit in a server's reply is the server's fault."""
    try:
        yield
    except BadInput as error:
        raise ModelUnavailable(f"The server's reply does not fit its API: {error}") from None


def failed(body: Mapping[str, Any]) -> ModelUnavailable:
    """An error that a server says where its reply should be."""
    return ModelUnavailable(str(read_error(500, body)))


def read_usage(usage: Mapping[str, Any], prompt: str = "prompt", completion: str = "completion") -> TokenUsage:
    """What is missing counts as zero."""
    details = usage.get(f"{prompt}_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else 0
    counts = (usage.get(f"{prompt}_tokens"), usage.get(f"{completion}_tokens"), cached)
    return TokenUsage(*(count_of(count) or 0 for count in counts))


def _content(content: Field) -> str:
    if isinstance(content.value, list):
        return "".join(part["text"].text("") for part in content.items() if part["type"].value == "text")
    return content.text("")
