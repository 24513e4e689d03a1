"""One session with a server, from its start to its end, over the client of the `mcp` package.

    begin -> ready (its tools are listed) -> request, request, ... -> dead (why) or closed

Covered: the time until it is ready, of a request and of its end; the number of tools and pages; a server that says its
tools changed is asked for them again before the next call. A session never comes back: `server` makes another.

Not covered: what else servers offer (prompts, resources) or ask for (sampling, roots, elicitation), which is declined;
the declared schemas of results, which are text to a model.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from toolwise.core.errors import ToolwiseError
from toolwise.core.jsonio import fingerprint, printable
from toolwise.core.limits import Limits
from toolwise.tools.confined.network import Network
from toolwise.tools.mcp.background import background, begin
from toolwise.tools.mcp.config import ServerConfig
from toolwise.tools.mcp.life import Life
from toolwise.tools.mcp.program import program
from toolwise.tools.mcp.watch import Watch
from toolwise.tools.mcp.web import web

for _name in ("mcp", "client"):  # the package's loggers, which would write servers' words to a terminal
    logging.getLogger(_name).addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class Listed:
    """A tool as its server describes it."""

    name: str
    description: str
    schema: Mapping[str, Any]

    @property
    def fingerprint(self) -> str:
        return fingerprint([self.name, self.description, self.schema])


class Lost(Exception):
    """The session is no more. `sent`: a request may have arrived."""

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class Refused(Exception):
    """The server answered with an error of the protocol, not with a result; `code` is JSON-RPC's."""

    def __init__(self, code: int, message: str, *, ours: bool) -> None:
        super().__init__(message)
        self.code, self.ours = code, ours


class Session:
    """Begins at once; `ready` waits until it can be used. Threads may share a session."""

    def __init__(self, config: ServerConfig, limits: Limits, network: Network, tls: ssl.SSLContext | None) -> None:
        self._config, self._limits, self._network, self._tls = config, limits, network, tls
        self._pid = os.getpid()
        self._ready: Future[None] = Future()
        self._life = Life()
        self._watch = Watch(self._life, limits, strict=not config.url)
        self._client: Any = None
        self._changed = False
        self.revision = ""
        self.listed: dict[str, Listed] = {}
        self.left_out: list[tuple[str, str]] = []
        self._task = begin(self._live())

    def ready(self, seconds: float) -> None:
        """Raises Lost with the reason, `sent` False, where it ended before; TimeoutError where it still begins."""
        self._ready.result(seconds)

    @property
    def dead(self) -> bool:
        """Whether it has ended, or belongs to the process that this one was forked from."""
        return self._pid != os.getpid() or self._task.done() or self._life.ended.is_set()

    def request(self, name: str, arguments: dict[str, Any], meta: dict[str, Any], seconds: float) -> Any:
        """The result of a call, as the package reads it. Raises Lost, Refused, TimeoutError, ValueError."""
        asked = begin(self._request(name, arguments, meta, seconds))
        try:
            return asked.result(seconds + self._limits.grace_seconds)
        except CancelledError:
            raise Lost(self._reason("ended"), sent=True) from None
        finally:
            asked.cancel()

    def listing(self, seconds: float) -> Mapping[str, Listed]:
        """The tools by name, asked for again where the server says that they changed. Raises as `request` does."""
        if self._changed:
            asked = begin(self._within(self._list(), seconds))
            try:
                asked.result(seconds + self._limits.grace_seconds)
            except CancelledError:
                raise Lost(self._reason("ended"), sent=False) from None
            finally:
                asked.cancel()
        return self.listed

    def close(self) -> None:
        """End it. Returns when its process is gone, or after a bounded time without it."""
        if self._pid != os.getpid():
            return
        background().call_soon_threadsafe(self._life.end, "was closed")
        if not self._ready.done():
            self._task.cancel()
        with suppress(TimeoutError, CancelledError):
            self._task.result(4 * self._limits.mcp_close_seconds)
            return
        self._task.cancel()

    # In the loop's thread

    async def _live(self) -> None:
        from mcp import Client
        from mcp_types import Implementation

        life, watch = self._life, self._watch
        streams = (
            web(self._config, life, self._limits, self._network, self._tls)
            if self._config.url
            else program(self._config, life, self._limits)
        )
        client = Client(
            watch.around(streams),
            mode={"": "auto", "2025-11-25": "legacy"}.get(self._config.revision, self._config.revision),
            cache=None,
            client_info=Implementation(name="toolwise", version="1"),
            message_handler=self._heard,
        )
        try:
            async with client:
                self._client = client
                self.revision = watch.revision = client.protocol_version
                try:
                    await self._list()
                except Exception as error:
                    life.end(_reason(error))  # before the transport ends, which would be the reason otherwise
                    raise
                if not self._ready.done():
                    self._ready.set_result(None)
                await life.ended.wait()
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  whatever it was, the session is over
            life.end(_reason(error))
        finally:
            life.end("ended")
            if not self._ready.done():
                self._ready.set_exception(Lost(self._reason(life.why), sent=False))

    async def _list(self) -> None:
        """Ask for the tools, page by page. `_changed` falls first: what changes meanwhile is asked for again."""
        from mcp_types import PaginatedRequestParams

        self._changed = False
        self._watch.left_out.clear()
        found: list[Listed] = []
        cursor: str | None = None
        for page in range(self._limits.mcp_pages + 1):
            if page == self._limits.mcp_pages:
                raise Lost(f"has more than {self._limits.mcp_pages} pages of tools", sent=True)
            params = None if cursor is None else PaginatedRequestParams(cursor=cursor)
            listing = await self._client.session.list_tools(params=params)
            found += [Listed(tool.name, tool.description or "", tool.input_schema) for tool in listing.tools]
            shown = {tool.name for tool in listing.tools}
            dropped = [name for name in self._watch.kept if name not in shown]
            self._watch.left_out += [(name, "its x-mcp-header cannot be used") for name in dropped]
            if len(found) > self._limits.mcp_tools:
                raise Lost(f"has more than {self._limits.mcp_tools} tools", sent=True)
            cursor = listing.next_cursor
            if cursor is None:
                break
        names = [tool.name for tool in found]
        twice = {name for name in names if names.count(name) > 1}
        self.listed = {tool.name: tool for tool in found if tool.name not in twice}
        self.left_out = [*self._watch.left_out, *((name, "it is listed more than once") for name in sorted(twice))]

    async def _within(self, work: Any, seconds: float) -> Any:
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED

        try:
            async with asyncio.timeout(seconds):
                return await work
        except MCPError as error:
            if self._life.ended.is_set() or error.code == CONNECTION_CLOSED:
                raise Lost(self._reason("ended"), sent=True) from None
            ours = error.error.data == self._life.nonce
            raise Refused(error.code, error.message, ours=ours) from None

    async def _request(self, name: str, arguments: dict[str, Any], meta: dict[str, Any], seconds: float) -> Any:
        from mcp_types import CallToolRequest, CallToolRequestParams

        if self._life.ended.is_set() or self._client is None:
            raise Lost(self._reason("ended"), sent=False)
        params = CallToolRequestParams(name=name, arguments=arguments, _meta=meta or None)  # type: ignore[arg-type]
        asked = self._client.session.send_request(CallToolRequest(params=params), _either_result())
        return await self._within(asked, seconds)

    async def _heard(self, message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self._changed = True

    def _reason(self, otherwise: str) -> str:
        """Why it is over, and the last that its program said."""
        words = self._life.last_words(self._limits.error_line_chars)
        return (self._life.why or otherwise) + (f'; the last it said was "{words}"' if words else "")


@cache
def _either_result() -> TypeAdapter[Any]:
    from mcp_types import CallToolResult, InputRequiredResult

    return TypeAdapter(CallToolResult | InputRequiredResult)


def _reason(error: BaseException) -> str:
    """What went wrong, as a sentence goes on behind "the server"."""
    from mcp.shared.exceptions import MCPError

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MCPError):
        return f"answered with an error ({error.code}: {printable(error.message, 100)})"
    if isinstance(error, Lost):
        return str(error)
    if isinstance(error, ToolwiseError):
        return f"cannot be used: {error}"
    if isinstance(error, OSError):
        return f"cannot be started: {error.strerror or 'the system refuses'}"
    return f"does not speak the protocol ({type(error).__name__})"
