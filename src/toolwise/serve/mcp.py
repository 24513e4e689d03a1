"""The MCP server: a registry's tools for MCP clients, every call through the gate, over stdio and streamable HTTP.

Both revisions, 2025-11-25 and 2026-07-28, over the `mcp` package. A failed call is a result whose flag and text say so.
One that a person must confirm says where; made again with the same arguments, it is the same call. So is one that
brings the same idempotency key in `_meta`, whatever its JSON-RPC id: it gets the stored result, over a new connection
and after a restart. Of other calls each is its own run, under what this principal has read here since the start.

Over HTTP each request stands by itself: there are no sessions that somebody else could go on with. Who asks is whose
key it is; the key goes no further than to be looked up, and no tool, header or log sees it. Nothing is offered that a
client would have to bring back (`requestState`): what brings one is refused.

Not covered: how often somebody may call; a budget of the gate bounds that. Sampling, prompts and resources.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import Any, BinaryIO

import anyio
import anyio.to_thread
import mcp_types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolwise.core import jsonio
from toolwise.core.errors import ApprovalRequired, BadInput, NotFound, ToolwiseError, Unauthenticated
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Call, CallContext, Effect, Labels, Principal, Result, Tool
from toolwise.gate.gate import Gate
from toolwise.serve.door import NOT_JSON, Door, body_of, is_json
from toolwise.serve.keys import LOCAL, Keys
from toolwise.serve.mcp_stdio import standard_streams
from toolwise.serve.run import server
from toolwise.tools.mcp.server import KEY
from toolwise.tools.registry import Registry

PATH, DOOR = "/mcp", "mcp"
_PRINCIPAL = "toolwise.principal"  # in a request's scope
#: Headers in which somebody may bring a key.
_SECRET = frozenset({b"authorization", b"x-api-key", b"x-goog-api-key", b"cookie", b"proxy-authorization"})
_STATUS = {"unauthenticated": 401, "not_found": 404, "denied": 403, "limit": 413, "timeout": 408}


class ToolServer:
    """Calls of MCP clients as calls of the gate. Threads may share it. `decide` says with what a person decides."""

    def __init__(
        self,
        gate: Gate,
        registry: Registry,
        *,
        decide: Callable[[str], str] = "toolwise approvals show {}".format,
        limits: Limits = LIMITS,
    ) -> None:
        self.registry = registry
        self._gate, self._decide, self._limits = gate, decide, limits
        self._lock = threading.Lock()
        self._read: dict[str, Labels] = {}  # what was given to each principal; of those there are few
        self._waiting: OrderedDict[str, str] = OrderedDict()  # runs of calls that wait for a person

    def call(self, principal: Principal, name: str, arguments: Mapping[str, Any], key: str = "") -> Result:
        """The one result of a call. It blocks. Raises BadInput for a key that is none."""
        if len(key) > self._limits.id_chars or not key.isprintable():
            raise BadInput("An idempotency key has few characters, and all of them print.")
        same = jsonio.fingerprint([principal.id, name, dict(arguments)])
        with self._lock:
            run = f"mcp-key-{jsonio.fingerprint(key)}" if key else self._waiting.get(same) or f"mcp-{_random()}"
            labels = self._read.get(principal.id, Labels())
        result = self._gate.execute(Call("call", name, arguments), CallContext(principal, run, labels=labels))
        with self._lock:
            self._read[principal.id] = self._read.get(principal.id, Labels()) | result.labels
            self._waiting.pop(same, None)
            if result.code == ApprovalRequired.code and not key:
                self._waiting[same] = run
                if len(self._waiting) > self._limits.paused_runs:
                    self._waiting.popitem(last=False)
        return result

    def told(self, result: Result) -> str:
        """The text of a result, and where a person decides, if one must."""
        if not result.approval:
            return result.text
        return f"{result.text} Decide with: {self._decide(result.approval)}; then make the same call again."


def _random() -> str:
    return secrets.token_hex(12)


def protocol_server(tools: ToolServer, who: Callable[[Any], Principal], limits: Limits = LIMITS) -> Server[Any]:
    """The package's server over these tools; `who` says from a request's context who asks."""
    places = anyio.CapacityLimiter(limits.replies)

    async def list_tools(context: Any, params: Any) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(tools=[_described(tool) for tool in tools.registry.values()])

    async def call_tool(context: Any, params: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
        if params.request_state is not None or params.input_responses is not None:
            raise MCPError(mcp_types.INVALID_PARAMS, "This server gives no requestState and asks for no input.")
        key = dict(params.meta or {}).get(KEY, "")
        if not isinstance(key, str):
            raise MCPError(mcp_types.INVALID_PARAMS, "An idempotency key is a text.")
        call = partial(tools.call, who(context), params.name, params.arguments or {}, key)
        try:
            result = await anyio.to_thread.run_sync(call, limiter=places, abandon_on_cancel=True)
        except ToolwiseError as error:
            raise MCPError(mcp_types.INVALID_PARAMS, str(error)) from None
        meta = {"toolwise/code": result.code} | ({"toolwise/approval": result.approval} if result.approval else {})
        content: list[Any] = [mcp_types.TextContent(type="text", text=tools.told(result))]
        return mcp_types.CallToolResult(content=content, is_error=not result.ok, _meta=meta)

    return Server("toolwise", version=version("toolwise"), on_list_tools=list_tools, on_call_tool=call_tool)


def _described(tool: Tool) -> mcp_types.Tool:
    writes = tool.effect is Effect.WRITE
    hints = mcp_types.ToolAnnotations(
        read_only_hint=not writes, idempotent_hint=tool.idempotent if writes else None, open_world_hint=tool.public
    )
    schema = jsonio.plain(tool.parameters, BadInput, LIMITS.json_size)
    return mcp_types.Tool(name=tool.name, description=tool.description, input_schema=schema, annotations=hints)


def mcp_app(
    tools: ToolServer, *, keys: Keys | None = None, hosts: Collection[str] = (), limits: Limits = LIMITS
) -> tuple[ASGIApp, Callable[[], AbstractAsyncContextManager[None]]]:
    """The application, and what must be entered while it serves. Raises BadInput for a host that is none."""
    protocol = protocol_server(tools, lambda context: context.request.scope[_PRINCIPAL], limits)
    manager = StreamableHTTPSessionManager(
        protocol, json_response=True, stateless=True, max_request_body_size=limits.mcp_bytes
    )
    bounds = replace(
        limits,
        request_bytes=limits.mcp_bytes,
        request_seconds=limits.chat_seconds,
        string_bytes=limits.mcp_bytes,
        json_depth=limits.openapi_depth,
    )

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            if request.url.path != PATH:
                raise NotFound(f"There is nothing under this path; this server answers under {PATH}.")
            principal = LOCAL if keys is None else keys.principal(request.headers, QueryParams(), DOOR)
            if request.method != "POST":
                answer = _refusal("", BadInput("This path takes POST."), 405)
                answer.headers["allow"] = "POST"
                await answer(scope, receive, send)
                return
            if not is_json(request.headers):
                await _refusal("", NOT_JSON, 415)(scope, receive, send)
                return
            body = jsonio.compact(await body_of(request, bounds), bounds).encode()
        except ToolwiseError as error:
            await _refusal("", error, _STATUS.get(error.code, 400))(scope, receive, send)
            return
        headers = [(name, value) for name, value in scope["headers"] if name not in (*_SECRET, b"content-length")]
        own = [*headers, (b"content-length", str(len(body)).encode())]
        known = {**scope, "headers": own, "query_string": b"", _PRINCIPAL: principal}
        await manager.handle_request(known, _replayed(body, receive), send)

    return Door(app, hosts, programs=True, refuse=_refusal), manager.run


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body that was read already, and then whatever comes."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


def _refusal(path: str, error: ToolwiseError, status: int) -> JSONResponse:
    """An error as JSON-RPC says it of a request that has no id yet."""
    code = mcp_types.PARSE_ERROR if status == 400 else mcp_types.INVALID_REQUEST
    message = jsonio.printable(str(error), LIMITS.message_chars)
    headers = {"www-authenticate": "Bearer"} if isinstance(error, Unauthenticated) else None
    said = {"code": code, "message": message, "data": {"code": error.code}}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": said}, status, headers)


async def serve_stdio(
    tools: ToolServer, principal: Principal, streams: tuple[BinaryIO, BinaryIO], limits: Limits = LIMITS
) -> None:
    """Answer the client that started this process until it ends our input; the streams are those that were claimed."""
    protocol = protocol_server(tools, lambda context: principal, limits)
    async with standard_streams(*streams, limits) as (read, write):
        await protocol.run(read, write, protocol.create_initialization_options())


def serve_http(
    app: ASGIApp, running: Callable[[], AbstractAsyncContextManager[None]], where: Any, limits: Limits = LIMITS
) -> None:
    """Answer until the process is interrupted."""

    async def main() -> None:
        async with running():
            await server(app, limits, limits.chat_connections).serve(sockets=[where])

    asyncio.run(main())
