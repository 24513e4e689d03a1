"""Between a transport and the `mcp` package: what a server says is looked at before anything acts on it.

Covered: an answer to what was never asked, or answered before (`strict`: where one pipe carries all of them), and a
server that talks and never answers, end its session; of a listing, tools that are none are taken out and noted, so that
one of them costs the others nothing. Of listings, tools, results and their parts only what is read here is left: the
package checks all of it, which takes seconds for a megabyte that nobody reads, in the one loop through which every
server's messages pass. What else a server says is bounded in its number of values.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from toolwise.core import jsonio
from toolwise.core.limits import Limits
from toolwise.tools.mcp.life import Life

_LISTING = ("tools", "nextCursor", "resultType", "ttlMs", "cacheScope")
_RESULT = ("content", "structuredContent", "isError", "resultType")
_PART = ("type", "text", "data", "mimeType", "uri", "name", "blob")

Streams = AbstractAsyncContextManager[tuple[Any, Any]]


@dataclass
class Watch:
    """What was asked and not answered, by id. Of a listing: `left_out` has name and reason of each part that is no
    tool, and `kept` the names of its last page. `revision` is of the protocol, once it is known."""

    life: Life
    limits: Limits
    strict: bool
    left_out: list[tuple[str, str]] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    revision: str = ""
    _asked: dict[str, str] = field(default_factory=dict)
    _unasked: int = 0

    @asynccontextmanager
    async def around(self, streams: Streams) -> AsyncIterator[tuple[Any, Any]]:
        async with streams as (read, write):
            yield _Reading(read, self), _Writing(write, self)

    def leaves(self, message: Any) -> None:
        if hasattr(message, "method") and hasattr(message, "id"):
            self._asked[str(message.id)] = message.method

    def arrives(self, message: Any) -> bool:
        """Whether it may be handed on; otherwise the session has ended."""
        if hasattr(message, "method"):
            self._unasked += 1
            if self._unasked > self.limits.mcp_unasked:
                self.life.end(f"said {self.limits.mcp_unasked} things in a row that nobody had asked for")
            return self._unasked <= self.limits.mcp_unasked and self._few(message.params)
        self._unasked = 0
        method = self._asked.pop(str(message.id), None)
        if method is None and self.strict:
            self.life.end("answered what it was not asked, or had answered before")
            return False
        result = getattr(message, "result", None)
        if method == "tools/list" and result is not None:
            _leave(result, _LISTING)
            self._tools(result)
        elif method == "tools/call" and result is not None:
            _leave(result, _RESULT)
            self._content(result)
        else:
            return self._few(result)
        return True

    def _few(self, value: Any) -> bool:
        """Whether a message that the package checks whole has no more values than one of its kind needs."""
        most = self.limits.mcp_values
        if sum(1 for _ in islice(jsonio.walk(value), most + 1)) <= most:
            return True
        self.life.end(f"sent a message of more than {most} values")
        return False

    def _content(self, result: dict[str, Any]) -> None:
        told = result.get("content")
        if isinstance(told, list):
            most = self.limits.mcp_parts
            result["content"] = [_part(part) for part in told[:most]]
            if len(told) > most:
                rest = f"({len(told) - most} more parts of this result are left out.)"
                result["content"].append({"type": "text", "text": rest})

    def _tools(self, listing: dict[str, Any]) -> None:
        told = listing.get("tools")
        if isinstance(told, list):
            some = told[: self.limits.mcp_tools + 1]
            listing["tools"] = [tool for each in some if (tool := self._tool(each, listing))]
            self.kept = [tool["name"] for tool in listing["tools"]]

    def _tool(self, told: Any, listing: dict[str, Any]) -> dict[str, Any] | None:
        """What is read of a tool, if the package could read it."""
        from mcp_types.methods import validate_server_result

        if not isinstance(told, dict) or not isinstance(told.get("name"), str):
            self.left_out.append(("", "it has no name that is a text"))
            return None
        tool = {name: told[name] for name in ("name", "description", "inputSchema") if told.get(name) is not None}
        try:
            validate_server_result("tools/list", self.revision, {**listing, "tools": [tool]})
        except KeyError:
            return tool  # a revision of which the package has no word
        except ValueError:
            self.left_out.append((tool["name"], "its description is no text, or its schema none of an object"))
            return None
        return tool


def _leave(told: dict[str, Any], names: tuple[str, ...]) -> None:
    for name in told.keys() - set(names):
        del told[name]


def _part(told: Any) -> Any:
    """What is read of a part of a result; what is none stays as it is, for the package to say so."""
    if not isinstance(told, dict):
        return told
    part = {name: told[name] for name in _PART if isinstance(told.get(name), str)}
    return part | ({"resource": _part(told["resource"])} if isinstance(told.get("resource"), dict) else {})


class _Reading:
    """A session's read stream."""

    def __init__(self, inner: Any, watch: Watch) -> None:
        self._inner, self._watch = inner, watch

    async def receive(self) -> Any:
        return await self.__anext__()

    def __aiter__(self) -> _Reading:
        return self

    async def __anext__(self) -> Any:
        item = await self._inner.__anext__()
        if not isinstance(item, Exception) and not self._watch.arrives(item.message):
            raise StopAsyncIteration
        return item

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> _Reading:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Writing:
    """A session's write stream."""

    def __init__(self, inner: Any, watch: Watch) -> None:
        self._inner, self._watch = inner, watch

    async def send(self, item: Any) -> None:
        self._watch.leaves(item.message)
        await self._inner.send(item)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> _Writing:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
