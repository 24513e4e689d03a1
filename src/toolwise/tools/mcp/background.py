"""One event loop in a thread of its own, for all sessions of this process: the gate calls tools from threads.

A process that was forked has no such thread any more and gets one of its own when it first asks.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Background:
    pid: int
    loop: asyncio.AbstractEventLoop


_lock = threading.Lock()
_made: list[_Background] = []


def background() -> asyncio.AbstractEventLoop:
    """The loop of this process."""
    with _lock:
        if not _made or _made[0].pid != os.getpid():
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, daemon=True, name="toolwise-mcp").start()
            _made[:] = [_Background(os.getpid(), loop)]
        return _made[0].loop


def begin(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Begin it there."""
    return asyncio.run_coroutine_threadsafe(work, background())


def _renew() -> None:
    global _lock
    _lock = threading.Lock()  # whoever held it when the process was forked is not here


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
