"""A reply that is made in a thread of its own, as the event loop reads it: piece by piece, ended when nobody reads.

A model blocks while it computes, so its thread is not the server's. Between the two stands a bounded queue: a reader
that takes nothing makes the model wait, not the memory grow. `stop` ends the reply at its next piece: its iterator is
closed in its own thread, and `ended` says when that is done.

Not covered: a model that computes long between two pieces (a long prompt, a tool at work) goes on until the next one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import closing
from typing import Protocol, cast

from toolwise.core.chat import ChatDelta
from toolwise.core.limits import LIMITS, Limits


class _Closable(Protocol):
    def close(self) -> object: ...


class Replying:
    """One reply. `make` starts it, in a thread of `threads`; `ended` is called on the loop once it is over."""

    def __init__(
        self,
        make: Callable[[], Iterator[ChatDelta]],
        threads: Executor,
        ended: Callable[[], object] = lambda: None,
        limits: Limits = LIMITS,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._ahead = threading.Semaphore(limits.pieces_ahead)
        self._queue: asyncio.Queue[ChatDelta | BaseException | None] = asyncio.Queue()
        self._stopped = False
        self._over = False
        worker = self._loop.run_in_executor(threads, self._work, make)
        worker.add_done_callback(lambda _: ended())

    async def pieces(self) -> list[ChatDelta]:
        """All that is there, at least one piece; nothing where the reply is over. Raises what the model raised."""
        if self._over:
            return []
        found: list[ChatDelta] = []
        item = await self._queue.get()
        while True:
            if item is None or isinstance(item, BaseException):
                if found:  # first what came before it
                    self._queue.put_nowait(item)
                    return found
                self._over = True
                if item is not None:
                    raise item
                return []
            self._ahead.release()
            found.append(item)
            if self._queue.empty():
                return found
            item = self._queue.get_nowait()

    def stop(self) -> None:
        """Nobody reads any more."""
        self._stopped = True
        self._ahead.release()  # it may be waiting for a reader

    def _work(self, make: Callable[[], Iterator[ChatDelta]]) -> None:
        last: BaseException | None = None
        try:
            deltas = make()
            if not hasattr(deltas, "close"):  # a plain iterator
                deltas = (delta for delta in deltas)
            with closing(cast(_Closable, deltas)):
                for delta in deltas:
                    self._ahead.acquire()
                    if self._stopped:
                        break
                    self._tell(delta)
        except BaseException as error:  # noqa: BLE001  whatever a model raises belongs to whoever reads
            last = error
        self._tell(last)

    def _tell(self, item: ChatDelta | BaseException | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, item)
        except RuntimeError:  # the loop has ended, and with it whoever read
            self._stopped = True
