"""The HTTP server under every door: one strict parser, and bounds on all that comes before an application is asked.

Covered: a head that is too large (431) or too slow (408), also on a connection that is kept; more connections than may
be (503, before anything is read); bytes that are no HTTP/1.1 (400); headers that a proxy is believed to set; an access
log that could hold a key. Not covered: more connections than the process may have files, of which the system makes the
rest wait; TLS and HTTP/2, for which another server stands in front.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS, Limits

_SAID = {
    400: ("bad_input", "This is no request of HTTP/1.1."),
    408: ("timeout", "Send the head of the request sooner."),
    431: ("limit", "Send a smaller head."),
    503: ("overloaded", "Too many connections are open here: come back later."),
}
_PHRASES = {
    400: "Bad Request",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


def bound(port: int, host: str = "127.0.0.1") -> socket.socket:
    """A socket that already takes connections. Raises BadInput where the port cannot be had."""
    # The protocol is said: asyncio sends small pieces at once only where it is, and else an answer waits for 40 ms.
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(2_048)
    except OSError as error:
        made.close()
        raise BadInput(f"Port {port} cannot be used ({error.strerror}): choose another one.") from error
    return made


def server(app: ASGIApp, limits: Limits = LIMITS, connections: int | None = None) -> uvicorn.Server:
    """The server: few bytes of a head, little time for it, no headers that are believed, no access log."""
    most = limits.connections if connections is None else connections
    config = uvicorn.Config(
        app,
        http=_protocol(most, limits.request_seconds),
        ws="none",
        lifespan="off",
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_level="error",
        log_config=None,
        h11_max_incomplete_event_size=limits.request_bytes,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)


def run(app: ASGIApp, where: socket.socket, limits: Limits = LIMITS, connections: int | None = None) -> None:
    """Answer until the process is interrupted."""
    asyncio.run(server(app, limits, connections).serve(sockets=[where]))


def _protocol(most: int, head_seconds: float) -> type[asyncio.Protocol]:
    """uvicorn's own protocol, with a bound on connections and a deadline for every head."""

    class Bounded(H11Protocol):
        _head: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > most:
                self._end(503)
            else:
                self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            self._unwatch()
            super().connection_lost(exc)

        def handle_events(self) -> None:
            super().handle_events()
            if self.conn.their_state is not h11.IDLE:
                self._unwatch()
            elif self.conn.trailing_data[0]:  # a head has begun; one that is kept and says nothing has uvicorn's own
                self._watch()

        def send_400_response(self, msg: str) -> None:
            hint = getattr(sys.exc_info()[1], "error_status_hint", 400)  # uvicorn calls this where it caught the error
            self._end(hint if hint in _SAID else 400)

        def _watch(self) -> None:
            if self._head is None:
                self._head = self.loop.call_later(head_seconds, self._end, 408)

        def _unwatch(self) -> None:
            if self._head is not None:
                self._head.cancel()
                self._head = None

        def _end(self, status: int) -> None:
            """Say why, and hang up; the parser is not asked, since there may be no request that it could answer."""
            self._unwatch()
            if self.transport.is_closing():
                return
            answering = self.cycle is not None and not self.cycle.response_complete
            silent = status == 408 and not self.conn.trailing_data[0]  # its next request must not read this as its own
            if not answering and not silent:
                self.transport.write(_answer(status))
            self.transport.close()

    return Bounded


def _answer(status: int) -> bytes:
    code, message = _SAID[status]
    body = json.dumps({"error": {"code": code, "message": message}}).encode()
    retry = "retry-after: 5\r\n" if status == 503 else ""
    head = (
        f"HTTP/1.1 {status} {_PHRASES[status]}\r\ncontent-type: application/json\r\n{retry}"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
