"""Work spread over processes that belong to this one: they end when it ends, however it ends, and Ctrl-C is its alone.

Not covered: what a process that is ended has begun; whoever gives out work makes its results whole or not at all.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, connection, get_context, parent_process
from threading import Thread
from typing import TypeVar

from toolwise.core.errors import LimitExceeded

T = TypeVar("T")
R = TypeVar("R")


def spread(work: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[R]:
    """The results of `work`, in the order in which they come; it, the items and the results are pickled.

    Raises what `work` raises, and LimitExceeded when a process died. No process is left when this ends, and an early
    end (an error, Ctrl-C, a consumer that stops) does not wait for what is being worked on.
    """
    others = set(active_children())
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _end_with_owner)
    done = False
    try:
        with _interrupts_held():
            waiting = [pool.submit(work, item) for item in items]
        for future in as_completed(waiting):
            yield future.result()
        done = True
    except BrokenProcessPool as error:
        raise LimitExceeded(
            "A worker process died, most likely for want of memory; run the same command again to go on, "
            "with fewer workers."
        ) from error
    finally:
        if not done:
            for child in set(active_children()) - others:
                child.terminate()
        pool.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Processes that are started inside inherit that they never see Ctrl-C: it would end each in its own words."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_owner() -> None:
    """A pool's process would otherwise wait for work for ever when its owner was killed."""
    owner = parent_process()
    assert owner is not None

    def watch() -> None:
        connection.wait([owner.sentinel])
        os._exit(1)

    Thread(target=watch, daemon=True).start()
