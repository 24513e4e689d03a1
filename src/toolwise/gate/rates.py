"""How often a tool may be called: `Rates({"search": "10/minute"})`.

A rate is one that the package `limits` reads (`5/second`, `100/hour;10/minute`), counted for every principal in a
moving window. They are counted in memory, for one process; with `storage="redis://host:port"` by a server of that
package's for several machines (`pip install 'toolwise[redis]'`); with a `state` in the gate's own database, for all
that use it. What has left its window is deleted from there.

Not covered: waiting for a free place; a call over the rate is refused and says so. Whoever counts and does not answer
refuses every call that it counts. Machines that share counts have to agree on what time it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import limits
from limits.storage import storage_from_string
from limits.strategies import MovingWindowRateLimiter

from toolwise.core.clock import Clock, SystemClock
from toolwise.core.errors import BadInput, LimitExceeded, StorageUnavailable
from toolwise.core.types import Principal, Tool
from toolwise.gate.state import State

_CLOCK = SystemClock()
_EVERY = "*"


class Counts(Protocol):
    """Where calls are counted; the limiters of `limits` do."""

    def hit(self, rate: limits.RateLimitItem, *whose: str) -> bool:
        """Count one call, unless as many as the rate allows are counted in its window: then False."""


class Rates:
    """Rates for tools by name; `"*"` is for every tool that has none of its own. Raises BadInput."""

    def __init__(
        self,
        rates: Mapping[str, str] | None = None,
        *,
        storage: str | None = None,
        state: State | None = None,
        clock: Clock = _CLOCK,
    ) -> None:
        self._rates: dict[str, list[limits.RateLimitItem]] = {}
        if not rates:
            return
        if storage is not None and state is not None:
            raise BadInput("Rates are counted in one place: give them a storage or a state.")
        try:
            self._rates = {name: limits.parse_many(rate) for name, rate in rates.items()}
            self._counts: Counts = (
                StateCounts(state, clock)
                if state is not None
                else MovingWindowRateLimiter(storage_from_string(storage or "memory://"))
            )
        except (ValueError, limits.errors.ConfigurationError) as error:
            raise BadInput(
                'Give a rate as "10/minute" and its storage as memory:// or redis://host:port; '
                "Redis needs an extra: pip install 'toolwise[redis]'."
            ) from error

    @property
    def tools(self) -> frozenset[str]:
        """The tools that have a rate of their own."""
        return frozenset(self._rates.keys() - {_EVERY})

    def hit(self, principal: Principal, tool: Tool) -> None:
        """Count one call. Raises LimitExceeded when it comes too soon, StorageUnavailable when nobody can count it."""
        for rate in self._rates.get(tool.name, self._rates.get(_EVERY, [])):
            try:
                free = self._counts.hit(rate, principal.id, tool.name)
            except Exception as error:
                raise StorageUnavailable(
                    "Rates cannot be counted now; the server or the state that counts them has to be repaired."
                ) from error
            if not free:
                raise LimitExceeded(f"This tool may be called {rate}: wait, or do without it.")


_TABLES = (
    "CREATE TABLE IF NOT EXISTS rates (key TEXT NOT NULL, until DOUBLE PRECISION NOT NULL)",
    "CREATE INDEX IF NOT EXISTS rates_key ON rates (key)",
    "CREATE INDEX IF NOT EXISTS rates_until ON rates (until)",
)


class StateCounts:
    """In a state that several processes share: a row for each call that is still in its window.

    A call reads all rows of its window: 50 microseconds for 1,000 of them, 250 for 10,000, in an SQLite file.
    """

    def __init__(self, state: State, clock: Clock = _CLOCK) -> None:
        self._state = state
        self._clock = clock
        with state.transaction() as sql:
            for statement in _TABLES:
                sql(statement)

    def hit(self, rate: limits.RateLimitItem, *whose: str) -> bool:
        key = rate.key_for(*whose)
        with self._state.transaction(durable=False) as sql:
            now = self._clock.now().timestamp()  # read behind whoever wrote before
            sql("DELETE FROM rates WHERE until <= ?", (now,))
            ((counted,),) = sql("SELECT COUNT(*) FROM rates WHERE key = ?", (key,))
            if counted >= rate.amount:
                return False
            sql("INSERT INTO rates (key, until) VALUES (?, ?)", (key, now + rate.get_expiry()))
        return True
