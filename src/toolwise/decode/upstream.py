"""A chat model behind somebody else's server, spoken to in OpenAI's or Anthropic's format over HTTP.

Covered: the server is the operator's choice, and nothing in a conversation or an answer changes where a request goes;
redirects are not followed. Pieces come as the server sends them; each wait, the whole answer and its size are bounded,
and whoever closes the iterator closes the connection. A request is sent again only while nothing of an answer has been
given, and not before the server says (`Retry-After`); where that is too long, its refusal stands. The key comes from
the environment, goes to this server alone, and never crosses a network in plain text.

Not covered: what a server does with a request that broke off; it may have computed, and counted, an answer that nobody
read. Connections are not kept for the next request.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, field, replace
from typing import Any, cast

from toolwise.core import jsonio
from toolwise.core.chat import CallDelta, ChatDelta, ChatRequest, ReplyEnded, pieces
from toolwise.core.clock import Clock, SystemClock
from toolwise.core.errors import (
    BadInput,
    DeadlineExceeded,
    ModelTimeout,
    ModelUnavailable,
    ResultInvalid,
    ToolFailed,
    ToolwiseError,
    UnsafeTarget,
)
from toolwise.core.jsonio import quote
from toolwise.core.limits import LIMITS, Limits
from toolwise.notation.wire import anthropic, openai_chat
from toolwise.notation.wire.base import WireFormat
from toolwise.notation.wire.names import wire_names
from toolwise.notation.wire.sse import Decoder
from toolwise.tools.confined.exchange import Left, Reply, Request, exchange
from toolwise.tools.confined.fetch import checked_headers
from toolwise.tools.confined.network import Network, SystemNetwork
from toolwise.tools.confined.targets import Target

_CLOCK, _NETWORK = SystemClock(), SystemNetwork()
_LATER = frozenset({408, 429, 502, 503, 504, 529})  # says that another time may be better


@dataclass(frozen=True, slots=True)
class Spoken:
    """A format as servers offer it: behind which path its answers are, and how a key is sent."""

    wire: WireFormat
    path: str
    version: str
    headers: Callable[[str], Mapping[str, str]]


def _openai_headers(key: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


def _anthropic_headers(key: str) -> Mapping[str, str]:
    return {"anthropic-version": "2023-06-01"} | ({"x-api-key": key} if key else {})


#: By the names that people know.
FORMATS: Mapping[str, Spoken] = {
    "openai": Spoken(cast(WireFormat, openai_chat), "/chat/completions", "/v1", _openai_headers),
    "anthropic": Spoken(cast(WireFormat, anthropic), "/messages", "/v1", _anthropic_headers),
}


@dataclass(frozen=True)
class Upstream:
    """A ChatModel. Use `connect`. `base` is what stands before the format's own path."""

    name: str
    base: Target
    spoken: Spoken
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    limits: Limits = field(default=LIMITS, repr=False)
    network: Network = field(default=_NETWORK, repr=False)
    clock: Clock = field(default=_CLOCK, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
        """Raises ModelTimeout and ModelUnavailable, and BadInput for a request that the server refuses."""
        names = wire_names(request)
        asked = names.sent(replace(request, model=self.name, stream=True, stream_usage=True))
        bounds = replace(self.limits, json_depth=self.limits.chat_depth)
        try:
            body = jsonio.compact(self.spoken.wire.write_request(asked), bounds).encode()
        except ResultInvalid as error:
            raise BadInput(f"The request cannot be sent: {error}.") from None
        with self._failures(), ExitStack() as stack, closing(self._pieces(stack, body)) as read:
            for delta in read:
                if isinstance(delta, CallDelta) and delta.index >= self.limits.upstream_calls:
                    raise ModelUnavailable(f"The server's turn has more than {self.limits.upstream_calls} calls.")
                yield names.meant(delta)

    def models(self) -> list[str]:
        """What the server says it has; nothing where it does not say. Raises as `reply` does."""
        with self._failures(), ExitStack() as stack:
            try:
                body = self._json(self._answer(stack, Request("GET", self._sent()), "/models"))
                return [str(model["id"]) for model in body["data"]]
            except (BadInput, LookupError, TypeError):
                return []

    def _pieces(self, stack: ExitStack, body: bytes) -> Generator[ChatDelta, None, None]:
        wire = self.spoken.wire
        sent = self._sent() | {"content-type": "application/json", "accept": "text/event-stream, application/json"}
        reply = self._answer(stack, Request("POST", sent, body), self.spoken.path)
        if not reply.headers.get("content-type", "").lower().startswith("text/event-stream"):
            yield from pieces(wire.read_reply(self._json(reply)))
            return
        decoder, reader, left = Decoder(self.limits), wire.reader(), self.limits.upstream_bytes
        for part in reply.parts:
            left -= len(part)
            if left < 0:
                raise ModelUnavailable(f"The server's answer has more than {self.limits.upstream_bytes} bytes.")
            for event in decoder.push(part):
                for delta in reader.push(event):
                    yield delta
                    if isinstance(delta, ReplyEnded):
                        return
        yield from reader.flush()

    # One request

    def _answer(self, stack: ExitStack, request: Request, path: str) -> Reply:
        """The head of a good answer, whose parts can be read until the stack is closed. Nothing of it was given to
        anybody yet, so what may pass is tried again."""
        left, waits = self._countdown()
        for attempt in range(1, self.limits.attempts + 1):
            last, pause = attempt == self.limits.attempts, self.limits.retry_seconds * 2 ** (attempt - 1)
            with ExitStack() as opened:
                try:
                    reply = opened.enter_context(self._exchange(request, path, left, waits))
                except ToolFailed:
                    if last:
                        raise
                else:
                    if reply.headers.get("content-encoding", "identity").strip().lower() != "identity":
                        raise ModelUnavailable("The server sent an encoding that was not asked for.")
                    if reply.status == 200:
                        stack.push(opened.pop_all())
                        return reply
                    pause = max(pause, _asked_pause(reply))
                    if last or reply.status not in _LATER or pause > self.limits.retry_after_seconds:
                        raise self._refusal(reply)
            waits[0] = pause
            self.clock.sleep(left())
        raise AssertionError("the last attempt returns or raises")

    def _exchange(self, request: Request, path: str, left: Left, waits: list[float]) -> AbstractContextManager[Reply]:
        target = replace(self.base, path=self.base.path.rstrip("/") + path)
        waits[0] = self.limits.fetch_seconds  # a connection is there soon, or never
        addresses = [str(target.address)] if target.address else self.network.resolve(target.host, target.port, left())
        if not addresses:
            raise ToolFailed("There is no such host.")

        def leaving() -> None:
            waits[0] = self.limits.silent_seconds

        return exchange(
            target, list(addresses), request, network=self.network, left=left, leaving=leaving, tls=self.tls
        )

    def _countdown(self) -> tuple[Left, list[float]]:
        """How long the next wait may last, and the bound on one that can be set meanwhile."""
        deadline, waits = self.clock.monotonic() + self.limits.upstream_seconds, [self.limits.fetch_seconds]

        def left() -> float:
            remaining = deadline - self.clock.monotonic()
            if remaining <= 0:
                raise DeadlineExceeded("too late")
            return min(remaining, waits[0])

        return left, waits

    def _failures(self) -> _Failures:
        return _Failures(self.base.authority)

    def _sent(self) -> dict[str, str]:
        return {"user-agent": "toolwise", "accept": "application/json", **self.headers}

    def _json(self, reply: Reply) -> Any:
        body = self._whole(reply, self.limits.chat_bytes)
        bounds = replace(self.limits, string_bytes=self.limits.chat_bytes)
        try:
            return jsonio.loads(body, bounds)
        except ToolwiseError as error:
            raise ModelUnavailable(f"The server's answer is no JSON: {error}.") from None

    def _refusal(self, reply: Reply) -> ToolwiseError:
        """What the server says of its refusal, as its format has it."""
        try:
            body: Any = self._whole(reply, self.limits.argument_bytes)
            body = jsonio.loads(body) if body.lstrip()[:1] in (b"{", b"[") else body.decode("utf-8", "replace")
        except ToolwiseError:
            body = None
        return self.spoken.wire.read_error(reply.status, body)

    def _whole(self, reply: Reply, most: int) -> bytes:
        body = bytearray()
        for part in reply.parts:
            body += part
            if len(body) > most:
                raise ModelUnavailable(f"The server's answer has more than {most} bytes.")
        return bytes(body)


def _asked_pause(reply: Reply) -> float:
    """The seconds after which a server asks to be tried again; 0 where it does not say. A date is none here: whose
    clock it is by, nobody knows."""
    asked = reply.headers.get("retry-after", "").strip()
    return float(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 10 else 0.0


class _Failures:
    """What happens on the network, as it is said of a model."""

    def __init__(self, server: str) -> None:
        self._server = server

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, DeadlineExceeded):
            raise ModelTimeout(f"The model's server at {self._server} does not answer in time.") from error
        if isinstance(error, ToolFailed):
            raise ModelUnavailable(f"The model's server at {self._server} cannot be reached, or broke off.") from error


def connect(
    url: str,
    model: str = "",
    format: str = "openai",
    key_env: str = "",
    *,
    limits: Limits = LIMITS,
    network: Network = _NETWORK,
    clock: Clock = _CLOCK,
    tls: ssl.SSLContext | None = None,
) -> Upstream:
    """A model of a server. `url` is what stands before the format's path, with or without `/v1`; `key_env` names the
    variable that holds the key. Without `model` it is the only one that the server lists.

    Raises BadInput: no such address or format, no key in the variable, a key that would cross the network in plain
    text, no model that is certain, a package that is missing; without `model`, also what `reply` raises.
    """
    spoken = FORMATS.get(format)
    if spoken is None:
        raise BadInput(f"No format is named {quote(format)}: use {' or '.join(FORMATS)}.")
    try:
        base = Target.read(url.rstrip("/"), limits)
    except UnsafeTarget as error:
        raise BadInput(f"The upstream {quote(url)} is no address: {error}") from None
    if "?" in url or "#" in url:
        raise BadInput(f"The upstream {quote(url)} has a query or a fragment: give what stands before {spoken.path}.")
    if base.path == "/" or (format == "anthropic" and not base.path.endswith(spoken.version)):
        base = replace(base, path=base.path.rstrip("/") + spoken.version)
    headers = checked_headers(dict(spoken.headers(_key(base, key_env))))
    found = Upstream(model, base, spoken, headers, limits, network, clock, tls)
    if model:
        return found
    names = found.models()
    if len(names) != 1:
        known = f" It has {', '.join(map(quote, names[:8]))}." if names else ""
        raise BadInput(f"Say which of the server's models is meant.{known}")
    return replace(found, name=names[0])


def _key(base: Target, key_env: str) -> str:
    if not key_env:
        return ""
    key = os.environ.get(key_env, "").strip()
    if not key:
        raise BadInput(f"The variable {quote(key_env)} of the environment is not set, or empty: export the key in it.")
    if base.scheme == "http" and not base.is_near:
        raise BadInput("The key would cross the network in plain text: give an https address.")
    return key
