"""What every wire format is: pure functions between an HTTP API's JSON and `core.chat`, in both directions.

A format is a module with the functions of `WireFormat`; the doors of `serve` use the first half, clients of other
servers the second. Whatever the other side may not drop in silence (a picture, a second choice, a tool that the API
runs itself) is refused by name with BadInput; what changes no answer (metadata, a user's name) is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from toolwise.core.chat import ChatDelta, ChatReply, ChatRequest
from toolwise.core.errors import ToolwiseError

Json = dict[str, Any]

#: The HTTP status of an error, by its code; what stands here is what a server can say. Any other one is 500.
STATUS: Mapping[str, int] = MappingProxyType(
    {
        "bad_input": 400,
        "malformed_call": 400,
        "invalid_arguments": 400,
        "unauthenticated": 401,
        "denied": 403,
        "not_found": 404,
        "timeout": 408,
        "limit": 413,
        "budget_exceeded": 429,
        "overloaded": 503,
        "model_unavailable": 503,
        "model_timeout": 504,
        "storage_unavailable": 503,
    }
)


def status_of(error: ToolwiseError) -> int:
    """The status with which every API here says an error, unless an API has one of its own for it."""
    return STATUS.get(error.code, 500)


@dataclass(frozen=True, slots=True)
class Ident:
    """What an answer says of itself: `id` is unique, `created` are seconds since 1970."""

    id: str
    model: str
    created: int


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event: `data` as it stands behind `data: `, `name` behind `event: ` if there is one."""

    data: str
    name: str = ""


class StreamWriter(Protocol):
    """A turn's pieces -> events, in the order of the API."""

    def push(self, delta: ChatDelta) -> list[Event]: ...

    def fail(self, error: ToolwiseError) -> list[Event]:
        """How this API tells in the middle of a stream that it broke off."""


class StreamReader(Protocol):
    """Events of an API -> a turn's pieces; each piece as soon as it is certain."""

    def push(self, event: Event) -> list[ChatDelta]: ...

    def flush(self) -> list[ChatDelta]:
        """The stream is over: a ReplyEnded, if there was none, by which nothing is executed."""


class WireFormat(Protocol):
    """A module of this package."""

    def read_request(self, body: Any) -> ChatRequest:
        """Raises BadInput, naming the field."""

    def write_reply(self, reply: ChatReply, request: ChatRequest, ident: Ident) -> Json: ...

    def writer(self, request: ChatRequest, ident: Ident) -> StreamWriter: ...

    def write_error(self, error: ToolwiseError) -> tuple[int, Json]:
        """The HTTP status, and the body in the API's own shape."""

    def write_request(self, request: ChatRequest) -> Json: ...

    def read_reply(self, body: Any) -> ChatReply:
        """Raises ModelUnavailable for a body that the API does not promise."""

    def reader(self) -> StreamReader: ...

    def read_error(self, status: int, body: Any) -> ToolwiseError: ...
