"""One request for a reply, from its place in the line to the last byte; the same for every format.

Covered: a client that goes away, while it waits or in the middle of a stream, ends the work at its next piece; a model
that takes too long, and a reader that takes nothing, are given up; an error before the first byte is an answer of its
own status, and one in the middle of a stream is told as the format tells it. A place is given back when the model's
thread is done, not before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from toolwise.core.chat import CallDelta, ChatDelta, ChatRequest, ReplyEnded, StopReason, gathered
from toolwise.core.clock import Clock
from toolwise.core.errors import DeadlineExceeded, LimitExceeded, Overloaded, ToolwiseError, Unauthenticated
from toolwise.core.limits import Limits
from toolwise.notation.grammar.grammar import Downgrade
from toolwise.notation.wire.base import Ident
from toolwise.serve.formats import Api, Framing
from toolwise.serve.metrics import Metrics
from toolwise.serve.not_masked import not_masked
from toolwise.serve.slots import Places
from toolwise.serve.streams import Replying

GONE = 499  # nginx's, for a client that went away before its answer


@dataclass(frozen=True, slots=True)
class Shop:
    """What all answers of a server share."""

    places: Places
    threads: Executor
    metrics: Metrics
    clock: Clock
    limits: Limits


def refusal(api: Api, error: ToolwiseError, status: int | None = None, retry_after: int = 1) -> Response:
    """An error in the format's own shape; `status` where HTTP has one that the format's errors do not know."""
    usual, body = api.wire.write_error(error)
    if status and body["error"].get("code") == usual:  # a format that repeats the status in the body
        body["error"]["code"] = status
    headers: dict[str, str] = {}
    if isinstance(error, LimitExceeded | DeadlineExceeded):
        headers["connection"] = "close"  # there may be more of the body than anybody wants to read
    if isinstance(error, Overloaded):
        headers["retry-after"] = str(retry_after)
    if isinstance(error, Unauthenticated):
        headers["www-authenticate"] = "Bearer"
    return JSONResponse(body, status or usual, headers)


def failure() -> ToolwiseError:
    """What is said of an error that nobody foresaw."""
    return ToolwiseError("Something failed here; whoever runs this machine can see what.")


class _Stalled(Exception):
    """Whoever reads takes nothing."""


class Answer:
    """The reply to one request, as an ASGI application. `make` makes the turn, `lost` says before what of its schemas
    no mask enforces; both block."""

    def __init__(
        self,
        shop: Shop,
        api: Api,
        asked: ChatRequest,
        framing: Framing,
        ident: Ident,
        make: Callable[[], Iterator[ChatDelta]],
        lost: Callable[[], Sequence[Downgrade]] = tuple,
    ) -> None:
        self._shop = shop
        self._api = api
        self._asked = asked
        self._framing = framing
        self._ident = ident
        self._make = make
        self._lost = lost
        self._headers: dict[str, str] | None = None  # until the model's thread has them
        self._begun = False
        self._ended = ReplyEnded(StopReason.LENGTH)
        self._calls: set[int] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        work = asyncio.ensure_future(self._answered(scope, receive, send))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and not self._begun:
                self._shop.metrics.answered(self._api.name, GONE)
        finally:
            gone.cancel()
            if not work.done():
                work.cancel()
            await asyncio.wait({work})
        if not work.cancelled():
            work.result()

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        shop = self._shop
        try:
            await shop.places.take()
            try:
                replying = Replying(self._made, shop.threads, shop.places.free, shop.limits)
            except BaseException:
                shop.places.free()
                raise
            try:
                async with asyncio.timeout(shop.limits.reply_seconds):
                    answer = await self._reply(replying, send)
            finally:
                replying.stop()
        except _Stalled:
            return  # the server hangs up on an answer without an end
        except TimeoutError:
            answer = await self._failed(DeadlineExceeded("The reply took too long: ask for less."), send)
        except ToolwiseError as error:
            answer = await self._failed(error, send)
        except Exception:
            failed = await self._failed(failure(), send)
            if failed is not None:
                await failed(scope, receive, send)
            raise  # the server's log has it
        if answer is not None:
            await answer(scope, receive, send)

    def _made(self) -> Iterator[ChatDelta]:
        """The turn, in the model's thread."""
        self._headers = not_masked(self._lost(), self._shop.limits)
        yield from self._make()

    async def _reply(self, replying: Replying, send: Send) -> Response | None:
        """The whole reply; None where it was streamed."""
        shop, door, started = self._shop, self._api.name, self._shop.clock.monotonic()
        if self._asked.stream:
            with shop.metrics.open_streams.track_inprogress():
                await self._streamed(replying, send, started)
            answer = None
        else:
            deltas: list[ChatDelta] = []
            while pieces := await replying.pieces():
                if not deltas:
                    shop.metrics.first(door, shop.clock.monotonic() - started)
                self._note(pieces)
                deltas += pieces
            body = self._api.wire.write_reply(gathered(deltas), self._asked, self._ident)
            answer = JSONResponse(body, headers=self._headers)
        shop.metrics.replied(door, self._ended, len(self._calls), shop.clock.monotonic() - started)
        return answer

    async def _streamed(self, replying: Replying, send: Send, started: float) -> None:
        self._writer = self._api.wire.writer(self._asked, self._ident)
        first = True
        while True:
            pieces = await self._pieces_or_pings(replying, send)
            if first:
                first = False
                self._shop.metrics.first(self._api.name, self._shop.clock.monotonic() - started)
            if not pieces:
                break
            self._note(pieces)
            await self._write(self._framing.events([e for delta in pieces for e in self._writer.push(delta)]), send)
        await self._write(self._framing.end(), send, more=False)

    async def _pieces_or_pings(self, replying: Replying, send: Send) -> list[ChatDelta]:
        coming = asyncio.ensure_future(replying.pieces())
        try:
            while True:
                done, _ = await asyncio.wait({coming}, timeout=self._shop.limits.ping_seconds)
                if done:
                    return coming.result()
                if self._headers is not None:
                    await self._write(self._framing.alive(), send)
        finally:
            coming.cancel()

    async def _failed(self, error: ToolwiseError, send: Send) -> Response | None:
        """An answer of its own, or the end of the stream that has begun; None then."""
        if not self._begun:
            return refusal(self._api, error, retry_after=self._shop.places.retry_after)
        await self._write(self._framing.events(self._writer.fail(error)) + self._framing.end(), send, more=False)
        return None

    async def _write(self, data: bytes, send: Send, more: bool = True) -> None:
        """Raises _Stalled."""
        if not self._begun:
            self._begun = True
            said = {"content-type": self._framing.media_type, **(self._headers or {})}
            headers = [(name.encode(), value.encode()) for name, value in said.items()]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
        if data or not more:
            try:
                async with asyncio.timeout(self._shop.limits.stalled_seconds):
                    await send({"type": "http.response.body", "body": data, "more_body": more})
            except TimeoutError:
                raise _Stalled from None

    def _note(self, pieces: list[ChatDelta]) -> None:
        for delta in pieces:
            if isinstance(delta, CallDelta):
                self._calls.add(delta.index)
            elif isinstance(delta, ReplyEnded):
                self._ended = delta


async def _gone(receive: Receive) -> None:
    """Until the client is."""
    while (await receive())["type"] != "http.disconnect":
        pass
