"""Places for replies: so many are made at one time, so many wait in line, and whoever comes later is told when to.

All of it happens on the event loop's thread, so nothing here is locked. A place belongs to whoever took it until
`free`, also when the client that it was taken for has gone: a model that still works has its place.
"""

from __future__ import annotations

import asyncio
import math

from toolwise.core.errors import Overloaded
from toolwise.core.limits import LIMITS, Limits


class Places:
    """`most` places of one server; those who wait are served in the order in which they came."""

    def __init__(self, most: int | None = None, limits: Limits = LIMITS) -> None:
        self.most = limits.replies if most is None else most
        self._limits = limits
        self._semaphore = asyncio.Semaphore(self.most)
        self.taken = 0
        self.waiting = 0

    async def take(self) -> None:
        """Wait for a place. Raises Overloaded where the line is full, or where it takes too long."""
        if self._semaphore.locked() and self.waiting >= self._limits.waiting_replies:
            raise Overloaded("Too many requests wait here already: come back later.")
        self.waiting += 1
        try:
            async with asyncio.timeout(self._limits.waiting_seconds):
                await self._semaphore.acquire()
        except TimeoutError:
            raise Overloaded("No place became free in time: come back later.") from None
        finally:
            self.waiting -= 1
        self.taken += 1

    def free(self) -> None:
        """Give a place back."""
        self.taken -= 1
        self._semaphore.release()

    @property
    def retry_after(self) -> int:
        """Seconds after which to come back: less than anybody waits, more the longer the line is."""
        share = self.waiting / max(1, self._limits.waiting_replies)
        return max(1, math.ceil(share * self._limits.waiting_seconds))
