"""The wire formats that the server speaks, as a table: paths, who reads and writes, how a stream is framed.

Everything else about a format stands in `notation.wire`. A new format is one more entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from starlette.requests import Request

from toolwise.core.chat import ChatRequest
from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS, Limits
from toolwise.notation.wire import anthropic, gemini, openai_chat, openai_responses, sse
from toolwise.notation.wire.base import Event, WireFormat


class Framing(Protocol):
    """How the events of a stream stand in the body."""

    media_type: str

    def events(self, events: Sequence[Event]) -> bytes: ...

    def alive(self) -> bytes:
        """What says that the stream lives, and says nothing else."""

    def end(self) -> bytes: ...


class ServerSentEvents:
    """`event: name`, `data: json`, a blank line. `ping` is the API's own event for it; without: a comment."""

    media_type = "text/event-stream"

    def __init__(self, ping: bytes = b": ping\n\n") -> None:
        self._ping = ping

    def events(self, events: Sequence[Event]) -> bytes:
        return b"".join(map(sse.encode, events))

    def alive(self) -> bytes:
        return self._ping

    def end(self) -> bytes:
        return b""


class Array:
    """One JSON array whose items are the events: a stream for those who read it whole or item by item."""

    media_type = "application/json"

    def __init__(self) -> None:
        self._array = gemini.JsonArray()
        self._begun = False

    def events(self, events: Sequence[Event]) -> bytes:
        self._begun = self._begun or bool(events)
        return self._array.push(events)

    def alive(self) -> bytes:
        return b"\n" if self._begun else b""

    def end(self) -> bytes:
        return self._array.end()


@dataclass(frozen=True, slots=True)
class Api:
    """One format as the server offers it.

    `name` is that of its door (in keys and in metrics), `under` the path below which whatever is refused has its shape.
    `told_by_path` adds to a request what the API says in path and query, and chooses the framing.
    """

    name: str
    wire: WireFormat
    paths: tuple[str, ...]
    under: str
    told_by_path: Callable[[ChatRequest, Request], tuple[ChatRequest, Framing]]

    def read(self, body: Any, request: Request) -> tuple[ChatRequest, Framing]:
        """Raises BadInput."""
        return self.told_by_path(_bounded(self.wire.read_request(body)), request)


def _bounded(asked: ChatRequest, limits: Limits = LIMITS) -> ChatRequest:
    """The request, where its parts are no more than anybody would send."""
    if len(asked.messages) > limits.chat_messages:
        raise BadInput(f"Send at most {limits.chat_messages} messages.", "messages")
    if len(asked.tools) > limits.chat_tools:
        raise BadInput(f"Send at most {limits.chat_tools} tools.", "tools")
    if any(len(stop) > limits.stop_chars for stop in asked.stop):
        raise BadInput(f"Send stop strings of at most {limits.stop_chars} characters.", "stop")
    return asked


def _plain(asked: ChatRequest, request: Request) -> tuple[ChatRequest, Framing]:
    return asked, ServerSentEvents()


def _anthropic(asked: ChatRequest, request: Request) -> tuple[ChatRequest, Framing]:
    return asked, ServerSentEvents(b'event: ping\ndata: {"type": "ping"}\n\n')


def _gemini(asked: ChatRequest, request: Request) -> tuple[ChatRequest, Framing]:
    streamed = request.url.path.endswith(":streamGenerateContent")
    alt = request.query_params.getlist("alt") or ["json"]
    if alt not in (["sse"], ["json"]):
        raise BadInput("alt is sse or json.", "alt")
    # Google's client takes a comment for an event, and passes over an empty line.
    framing: Framing = ServerSentEvents(b"\n") if alt == ["sse"] else Array()
    return replace(asked, model=request.path_params["model"], stream=streamed), framing


def _wire(module: object) -> WireFormat:
    return cast(WireFormat, module)


#: What stands behind a model's name in Gemini's paths.
METHODS = (":generateContent", ":streamGenerateContent")
_VERSIONS = ("v1beta", "v1")  # newer clients ask under the second
_GEMINI = tuple(f"/{version}/models/{{model:path}}{method}" for version in _VERSIONS for method in METHODS)
#: The first one is whose shape a refusal has where nothing says which one is spoken.
APIS = (
    Api("chat", _wire(openai_chat), ("/v1/chat/completions",), "/v1", _plain),
    Api("responses", _wire(openai_responses), ("/v1/responses",), "/v1/responses", _plain),
    Api("messages", _wire(anthropic), ("/v1/messages",), "/v1/messages", _anthropic),
    Api("gemini", _wire(gemini), _GEMINI, "/v1beta", _gemini),
)
#: The API that counts the tokens of a request besides, and where.
COUNTED = next(api for api in APIS if api.name == "messages")
COUNT_PATH = "/v1/messages/count_tokens"


def api_of(path: str) -> Api:
    """Whose shape an answer under this path has: that of the longest path that stands above it.

    Gemini's newer client asks under `/v1` too, where what it asks for says whose path it is.
    """
    if path.endswith(METHODS):
        return next(api for api in APIS if api.name == "gemini")
    fitting = [api for api in APIS if path == api.under or path.startswith((api.under + "/", api.under + ":"))]
    return max(fitting, key=lambda api: len(api.under), default=APIS[0])
