"""An MCP server of ours: on the loopback in this process, or the command as a program; and the official client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from mcp import Client

from toolwise import CedarPolicy, Effect, Gate, Registry, Tool, open_state
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import ToolContext
from toolwise.gate.state import State
from toolwise.serve.keys import Keys
from toolwise.serve.mcp import ToolServer, mcp_app
from toolwise.serve.run import bound, server
from toolwise.tools import CALCULATOR

T = TypeVar("T")
POLICY = """
permit (principal, action == Action::"call", resource) when { resource.effect != "write" || resource.name == "note" };
@id("a person looks") permit (principal, action == Action::"ask", resource == Tool::"send");
"""
#: In a request's `_meta`, the revision of 2026.
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


@dataclass
class Noted:
    """What the tools were called with; `note` waits until `go` is set."""

    calls: list[tuple[str, str]]
    go: threading.Event

    def tools(self) -> list[Tool]:
        def note(text: str, context: ToolContext) -> str:
            self.calls.append((context.principal.id, text))
            self.go.wait(20)
            return f"noted {text}"

        def send(text: str, context: ToolContext) -> str:
            self.calls.append((context.principal.id, text))
            return f"sent {text}"

        def fail(text: str) -> str:
            raise ConnectionResetError("postgres://u:p@h")

        more: dict[str, Any] = {"parameters": TEXT, "bounded": True}
        return [
            CALCULATOR,
            Tool("note", "Notes.", effect=Effect.WRITE, run=note, context_parameter="context", **more),
            Tool("send", "Sends.", effect=Effect.WRITE, run=send, context_parameter="context", **more),
            Tool("fail", "Fails.", effect=Effect.READ, run=fail, **more),
        ]


@dataclass
class Door:
    port: int
    noted: Noted
    gate: Gate

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def post(self, body: Any, **headers: str) -> httpx2.Response:
        """A request of the revision of 2026."""
        sent = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28"}
        if isinstance(body, dict) and "method" in body:
            sent["mcp-method"] = body["method"]
            if "name" in body.get("params", {}):
                sent["mcp-name"] = body["params"]["name"]
        return httpx2.post(self.url, json=body, headers=sent | headers, timeout=20)

    def call(self, name: str, key: str = "", id: Any = 1, headers: dict[str, str] | None = None, **more: Any) -> Any:
        meta = MODERN | ({"toolwise/idempotency-key": key} if key else {})
        params = {"name": name, "arguments": {"text": "hello"}, "_meta": meta} | more
        body = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
        return self.post(body, **(headers or {})).json()


@contextmanager
def door(
    keys: Keys | None = None,
    state: State | None = None,
    noted: Noted | None = None,
    limits: Limits = LIMITS,
    tools: list[Tool] | None = None,
    policy: str = POLICY,
) -> Iterator[Door]:
    """A server until the end of the block."""
    found = noted or Noted([], threading.Event())
    if noted is None:
        found.go.set()
    registry = Registry(found.tools() if tools is None else tools)
    with Gate(registry, CedarPolicy.from_text(policy), state or open_state(":memory:"), limits=limits) as gate:
        app, running = mcp_app(ToolServer(gate, registry, limits=limits), keys=keys, limits=limits)
        made, where = server(app, limits, 64), bound(0)
        port = where.getsockname()[1]

        async def main() -> None:
            async with running():
                await made.serve(sockets=[where])

        thread = threading.Thread(target=asyncio.run, args=(main(),))
        thread.start()
        try:
            yield Door(port, found, gate)
        finally:
            found.go.set()
            made.should_exit = True
            thread.join(20)
            assert not thread.is_alive()


def talk(server: Any, mode: str, story: Callable[[Client], Awaitable[T]]) -> T:
    """What the official client is told, within a minute."""

    async def main() -> T:
        async with asyncio.timeout(60), Client(server, mode=mode) as client:
            return await story(client)

    return asyncio.run(main())


def text_of(result: Any) -> str:
    (content,) = result.content
    return str(content.text)


def line_count(file: Path) -> int:
    return len(file.read_text().splitlines()) if file.exists() else 0
