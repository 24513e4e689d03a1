"""A server over streamable HTTP, reached by addresses that were checked, with the operator's token and nothing else.

Covered: requests go to the configured origin alone, at addresses that `confined` lets through, however its name is
answered and wherever it redirects; bodies are bounded, whole and by event; no cookies, no proxies, no credentials of
the environment. What fails on the way fails for one request, and says whether the request can have arrived.

Not covered: what the server does with a token that it was given.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from toolwise.core.clock import SystemClock
from toolwise.core.errors import BadInput, ToolwiseError, UnsafeTarget
from toolwise.core.limits import Limits
from toolwise.tools.confined.fetch import checked_addresses, countdown
from toolwise.tools.confined.network import Network
from toolwise.tools.confined.targets import Target
from toolwise.tools.mcp.config import ServerConfig
from toolwise.tools.mcp.life import Life

#: Codes of the answers that are made here, from the part of their range that every implementation may use.
NOT_SENT, NOT_LET_IN = -32010, -32011
_NOT_LET_IN = (401, 403, 429)


def token_of(config: ServerConfig) -> str:
    """Raises BadInput where the variable is not set, or holds what cannot be sent."""
    if not config.bearer_env:
        return ""
    token = os.environ.get(config.bearer_env, "").strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise BadInput(f"the variable {config.bearer_env} holds no token: export it")
    return token


@asynccontextmanager
async def web(
    config: ServerConfig, life: Life, limits: Limits, network: Network, tls: ssl.SSLContext | None
) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of a session with this server. Raises BadInput."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    token = token_of(config)
    client = httpx2.AsyncClient(
        transport=_transport(Target.read(config.url, limits), config, life, limits, network, tls),
        headers={"user-agent": "toolwise", "accept-encoding": "identity"}
        | ({"authorization": f"Bearer {token}"} if token else {}),
        timeout=httpx2.Timeout(limits.mcp_start_seconds, read=None),  # each call has a deadline of its own
        trust_env=False,
        follow_redirects=False,
    )
    async with client:
        streams = streamable_http_client(config.url, http_client=client, max_sse_event_size=limits.mcp_bytes)
        async with streams as (read, write):
            yield read, write


def _transport(
    target: Target, config: ServerConfig, life: Life, limits: Limits, network: Network, tls: ssl.SSLContext | None
) -> Any:
    """httpx's transport to the checked addresses of one origin."""
    import anyio
    import httpx2

    literal = target.address is not None or target.is_near
    allowed = frozenset({(target.host, target.port)}) if literal or config.own_network else frozenset()

    class Checked(httpx2.AsyncBaseTransport):
        def __init__(self) -> None:
            self._inner = httpx2.AsyncHTTPTransport(verify=tls or True, trust_env=False)

        async def handle_async_request(self, request: Any) -> Any:
            url = request.url
            port = url.port or {"http": 80, "https": 443}.get(url.scheme)
            if (url.scheme, url.host, port) != target.origin:
                return _own_answer(life, NOT_SENT, "It is another server, which is not asked.")
            try:
                left = countdown(SystemClock(), limits.mcp_start_seconds)
                addresses = await anyio.to_thread.run_sync(checked_addresses, target, allowed, network, left)
            except ToolwiseError as error:
                return _own_answer(life, NOT_SENT, str(error))
            request.extensions = {**request.extensions, "sni_hostname": target.host}
            for address in addresses:
                request.url = url.copy_with(host=address)
                try:
                    return await _let_in(await self._inner.handle_async_request(request), target, life, limits)
                except (httpx2.ConnectError, httpx2.ConnectTimeout):
                    continue
                except httpx2.TransportError:
                    return httpx2.Response(502)
            return _own_answer(life, NOT_SENT, "It cannot be reached.")

        async def aclose(self) -> None:
            await self._inner.aclose()

    return Checked()


def _own_answer(life: Life, code: int, message: str) -> Any:
    """An answer in the server's place, which the session knows by the nonce."""
    import httpx2

    error = {"code": code, "message": message, "data": life.nonce}
    return httpx2.Response(400, json={"jsonrpc": "2.0", "id": None, "error": error})


async def _let_in(response: Any, target: Target, life: Life, limits: Limits) -> Any:
    """The server's answer, bounded; one of ours where it lets nobody in, or sends whoever asks elsewhere."""
    if response.status_code in _NOT_LET_IN:
        await response.aclose()
        return _own_answer(life, NOT_LET_IN, f"It answered {response.status_code}.")
    if 300 <= response.status_code < 400 and not _stays(target, response.headers.get("location", "")):
        await response.aclose()
        return _own_answer(life, NOT_LET_IN, "It redirects to another server, which is not followed.")
    response.stream = _bounded(response.stream, limits)
    return response


def _bounded(body: Any, limits: Limits) -> Any:
    """A body that ends early where it is too large or breaks off; what is cut is no message."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = limits.mcp_bytes
            try:
                async for piece in body:
                    left -= len(piece)
                    if left < 0:
                        return
                    yield piece
            except httpx2.TransportError:
                return

        async def aclose(self) -> None:
            await body.aclose()

    return Bounded()


def _stays(target: Target, location: str) -> bool:
    try:
        return target.follow(location).origin == target.origin
    except UnsafeTarget:
        return False
