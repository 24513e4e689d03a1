"""Who may come in over HTTP, and what every answer carries; the same for every application behind it.

Covered: a page of another site that has its own name point here (the Host must be exactly one of ours, with any port);
a form or a script of another site (a request that changes something must be JSON, and must come from a page of ours:
its Origin names the same host and port, or, at a door for programs, there is none, which no browser leaves out);
framing, sniffing, referrers and caches; bodies and the time they take; a token that is guessed by its timing. Every
refusal is JSON with a code of ours, unless the application says it in a shape of its own.

Not covered: heads of requests and the number of connections (`serve.run` bounds them), encryption (put a server with
TLS in front), and whoever can read this process's memory or the terminal in which a token was printed.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
from collections.abc import Collection, Mapping
from typing import Any, Protocol

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolwise.core import jsonio
from toolwise.core.errors import BadInput, DeadlineExceeded, Denied, LimitExceeded, ModelFault, ToolwiseError
from toolwise.core.jsonio import printable
from toolwise.core.limits import LIMITS, Limits

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\.?(?::[0-9]{1,5})?", re.ASCII)
_SMALL = 64 * 1024  # bytes that are read at once, in a millisecond
_READING = frozenset({"GET", "HEAD"})
_HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Refuse(Protocol):
    """How an application says what is refused under a path."""

    def __call__(self, path: str, error: ToolwiseError, status: int) -> ASGIApp: ...


class Door:
    """Lets in what may come in, and adds what every answer carries. Raises BadInput for a host that is none.

    `programs` come without an Origin; otherwise there must be one. Their application asks itself whether what is sent
    `is_json`, since it knows which paths take anything.
    """

    def __init__(
        self, app: ASGIApp, hosts: Collection[str] = (), *, programs: bool = False, refuse: Refuse | None = None
    ) -> None:
        self._app = app
        self._programs = programs
        self._refuse = refuse or (lambda _, error, status: refused(error, status))
        for host in hosts:
            if not (found := _HOST.fullmatch(host.lower().rstrip("."))) or found[1] != found[0]:
                raise BadInput(f"{host!r} is no name of a host: give it as gate.example, without http:// and port.")
        self._hosts = LOOPBACK | {host.lower().rstrip(".") for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        refusal = self._refusal(scope["method"], Headers(scope=scope))
        answer = self._app if refusal is None else self._refuse(scope["path"], *refusal)
        await answer(scope, receive, with_headers)

    def _refusal(self, method: str, headers: Headers) -> tuple[ToolwiseError, int] | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._ours(hosts[0]):
            return Denied("This host is not served here."), 403
        if method in _READING:
            return None
        origins = headers.getlist("origin")
        if not (self._programs and not origins) and origins not in ([f"http://{hosts[0]}"], [f"https://{hosts[0]}"]):
            return Denied("Say with Origin that the request comes from this host."), 403
        if not self._programs and not is_json(headers):
            return NOT_JSON, 415
        return None

    def _ours(self, host: str) -> bool:
        found = _HOST.fullmatch(host.lower())
        return found is not None and found[1] in self._hosts


#: What is said of anything else, with the status 415.
NOT_JSON = BadInput("Send application/json.")


def is_json(headers: Headers) -> bool:
    """Whether the body is said to be JSON, which no form of another site can say."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


class Tokens:
    """Who a bearer token stands for. Names are compared nowhere: the token alone says who it is."""

    def __init__(self, people: Mapping[str, str]) -> None:
        if not people or any(
            len(token) < 16 or not token.isascii() or not token.isprintable() for token in people.values()
        ):
            raise BadInput("Give every person a token of at least 16 characters that print.")
        if len(set(people.values())) < len(people):
            raise BadInput("Give every person a token of their own.")
        self._people = {_digest(token): name for name, token in people.items()}

    def person(self, request: Request) -> str | None:
        """The person whose token the request carries."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        given, found = _digest(token.strip()), None
        for digest, name in self._people.items():  # all of them, so that the time says nothing
            if hmac.compare_digest(digest, given):
                found = name
        return found if scheme.lower() == "bearer" else None


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


async def body_of(request: Request, limits: Limits = LIMITS) -> Any:
    """The JSON value of a request. Raises BadInput, and LimitExceeded or DeadlineExceeded where it is large or slow."""
    too_large = LimitExceeded(f"Send at most {limits.request_bytes} bytes.")
    said = request.headers.get("content-length", "")
    if said.isdecimal() and int(said) > limits.request_bytes:
        raise too_large  # before a byte of it is read
    data = bytearray()
    try:
        async with asyncio.timeout(limits.request_seconds):
            async for piece in request.stream():
                data += piece
                if len(data) > limits.request_bytes:
                    raise too_large
        # Two seconds for eight megabytes of brackets, in which the others are answered.
        if len(data) > _SMALL:
            return await run_in_threadpool(jsonio.loads, bytes(data), limits)
        return jsonio.loads(bytes(data), limits)
    except ClientDisconnect:  # nobody hears it, and no log need tell of it
        raise BadInput("The body ended early.") from None
    except TimeoutError:
        raise DeadlineExceeded(f"Send the whole request within {limits.request_seconds:g} seconds.") from None
    except ModelFault as error:
        raise BadInput(f"The body cannot be used: {error}.") from None


def refused(error: ToolwiseError, status: int, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An error as every door says it."""
    message = printable(str(error), LIMITS.message_chars)
    return JSONResponse({"error": {"code": error.code, "message": message}}, status, headers)
