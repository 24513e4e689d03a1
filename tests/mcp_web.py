"""A hand-written MCP server over streamable HTTP on the loopback, which keeps what it was asked, headers and all."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ECHO = {"name": "echo", "description": "Gives back.", "inputSchema": {"type": "object"}}
Reply = tuple[int, dict[str, str], bytes]


@dataclass
class Web:
    """A server of the revision 2025-11-25 on the loopback; `called` says what a call of its tool is answered with."""

    called: Callable[[dict[str, Any]], Reply] = lambda asked: answer(asked, "echoed")
    requests: list[tuple[str, Mapping[str, str], Any]] = field(default_factory=list)
    port: int = 0
    session: str = ""

    def reply(self, method: str, headers: Mapping[str, str], asked: Any) -> Reply:
        self.requests.append((method, {name.lower(): value for name, value in headers.items()}, asked))
        if method != "POST":
            return 405, {}, b""
        if self.session and asked.get("method") == "tools/call" and headers.get("mcp-session-id") != self.session:
            return 404, {}, b""
        match asked.get("method"):
            case "initialize":
                info = {"name": "web", "version": "1"}
                told = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
                more = {"mcp-session-id": self.session} if self.session else {}
                return answer(asked, told, **more)
            case "tools/list":
                return answer(asked, {"tools": [ECHO]})
            case "tools/call":
                return self.called(asked)
            case _ if "id" in asked:
                return 400, {}, b"no"
        return 202, {}, b""

    @property
    def calls(self) -> list[Mapping[str, str]]:
        """The headers of every call of the tool."""
        return [headers for _, headers, asked in self.requests if asked and asked.get("method") == "tools/call"]


def answer(asked: dict[str, Any], told: Any, status: int = 200, **headers: str) -> Reply:
    result = {"content": [{"type": "text", "text": told}]} if isinstance(told, str) else told
    body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
    return status, {"content-type": "application/json", **headers}, body


def stream(asked: dict[str, Any], *pieces: bytes) -> Reply:
    return 200, {"content-type": "text/event-stream"}, b"".join(pieces)


def event(asked: dict[str, Any], told: str) -> bytes:
    return b"event: message\r\ndata: " + answer(asked, told)[2] + b"\r\n\r\n"


@contextmanager
def web(site: Web | None = None, port: int = 0) -> Iterator[Web]:
    site = site or Web()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            data = self.rfile.read(int(self.headers.get("content-length", 0)))
            status, headers, body = site.reply(self.command, self.headers, json.loads(data) if data else None)
            if status == 0:  # it hangs up
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", headers.get("content-length", str(len(body))))
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True

        do_POST = do_GET = do_DELETE = handle_any

        def log_message(self, *_: Any) -> None:
            pass

    made = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    made.daemon_threads = True
    site.port = made.server_address[1]
    threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield site
    finally:
        made.shutdown()
        made.server_close()
