"""A conversation with tools, whatever format it came in: what is asked, what is answered, and the answer in pieces.

Wire formats (`notation.wire`) read these values from HTTP bodies and write them back; dialects (`notation.chat`) turn
them into token ids and read what a model samples; loops and servers see nothing else. Arguments stay the text that a
model or a client wrote: a value that was read and written again would not be what was approved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal, Protocol


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ChatCall:
    """A call in a conversation, as it was written: neither parsed nor trusted.

    `arguments` is the text of a JSON object, if all is well. `complete` is False where the text ended before the call
    did. A model's text that began like a call and is none has no `name`, and the whole of it is in `arguments`.
    """

    id: str
    name: str
    arguments: str
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `calls` are an assistant's; a tool's message answers the call `call_id`, and says if it failed."""

    role: Role
    text: str = ""
    calls: tuple[ChatCall, ...] = ()
    call_id: str = ""
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a request declares it: nothing that could be run. `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    strict: bool = False


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Whether to call: `auto` may, `none` may not, `required` must. `names`: only these; all tools where empty."""

    mode: Literal["auto", "none", "required"] = "auto"
    names: tuple[str, ...] = ()

    @property
    def forced(self) -> bool:
        return self.mode == "required"


@dataclass(frozen=True, slots=True)
class OutputSchema:
    """The answer's text is to be JSON: of this schema, or any object where it is None."""

    schema: Mapping[str, Any] | None = None
    name: str = ""
    strict: bool = True


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """All that one turn of a model depends on. None means: as the server or the model has it.

    `parallel` False allows one call a turn. `whose` says whose conversation it is; a cache of what was read before is
    shared by those of one person, and by nobody else. It is on no wire.
    """

    messages: tuple[Message, ...]
    model: str = ""
    tools: tuple[ToolSpec, ...] = ()
    choice: ToolChoice = ToolChoice()
    parallel: bool = True
    output: OutputSchema | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    stream: bool = False
    stream_usage: bool = False
    whose: str = ""

    @property
    def callable(self) -> tuple[ToolSpec, ...]:
        """The tools that may be called in this turn."""
        if self.choice.mode == "none":
            return ()
        return tuple(tool for tool in self.tools if not self.choice.names or tool.name in self.choice.names)


class StopReason(StrEnum):
    """Why a turn ended: the model ended it, met a stop string, waits for calls, was cut off, or declined."""

    END = "end"
    STOP = "stop"
    CALLS = "calls"
    LENGTH = "length"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens. `prompt` counts all that was given, of which `cached` had been read before."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(self.prompt + other.prompt, self.completion + other.completion, self.cached + other.cached)


@dataclass(frozen=True, slots=True)
class ChatReply:
    """One turn of the model. Calls are to be executed only where `stop` is CALLS: a turn that was cut holds none that
    may run."""

    text: str = ""
    calls: tuple[ChatCall, ...] = ()
    stop: StopReason = StopReason.END
    usage: TokenUsage = field(default_factory=TokenUsage)

    @property
    def message(self) -> Message:
        return Message(Role.ASSISTANT, self.text, self.calls)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class CallDelta:
    """A piece of the call number `index`: the first one has `id` and `name`, all have a piece of the arguments."""

    index: int
    arguments: str = ""
    id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class ReplyEnded:
    """The last piece. `broken`: the numbers of the calls that never came to their end."""

    stop: StopReason
    usage: TokenUsage = field(default_factory=TokenUsage)
    broken: tuple[int, ...] = ()


ChatDelta = TextDelta | CallDelta | ReplyEnded


class ChatModel(Protocol):
    """Whatever answers a conversation: a local model with its dialect, or a server behind a wire format."""

    @property
    def name(self) -> str: ...

    def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
        """One turn, piece by piece; the last piece is a ReplyEnded. Closing the iterator ends the work.

        Raises BadInput for a request that this model cannot take, ModelUnavailable where it does not answer.
        """


def gathered(deltas: Iterable[ChatDelta]) -> ChatReply:
    """The turn that the pieces make, in the order of the calls' first pieces."""
    texts: list[str] = []
    calls: dict[int, ChatCall] = {}
    arguments: dict[int, list[str]] = {}
    ended = ReplyEnded(StopReason.LENGTH)  # a stream that broke off
    for delta in deltas:
        match delta:
            case TextDelta(text):
                texts.append(text)
            case CallDelta(index, piece, id_, name):
                calls.setdefault(index, ChatCall(id_, name, ""))
                arguments.setdefault(index, []).append(piece)
            case ReplyEnded():
                ended = delta
    broken = frozenset(ended.broken)
    whole = [
        replace(call, arguments="".join(arguments[index]), complete=index not in broken)
        for index, call in calls.items()
    ]
    return ChatReply("".join(texts), tuple(whole), ended.stop, ended.usage)


def pieces(reply: ChatReply) -> Iterator[ChatDelta]:
    """The same turn as pieces: `gathered(pieces(reply)) == reply` (a call's number is its place)."""
    if reply.text:
        yield TextDelta(reply.text)
    for index, call in enumerate(reply.calls):
        yield CallDelta(index, call.arguments, call.id, call.name)
    broken = tuple(index for index, call in enumerate(reply.calls) if not call.complete)
    yield ReplyEnded(reply.stop, reply.usage, broken)
