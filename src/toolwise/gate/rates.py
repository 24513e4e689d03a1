"""How often a tool may be called, on the package `limits`: `Rates({"search": "10/minute"})`.

A rate is one that `limits` reads (`5/second`, `100/hour;10/minute`), counted for every principal in a moving window.
`storage` is an address of that package: `memory://` for one process, `redis://host:port` for several machines
(`pip install 'toolwise[redis]'`).

Not covered: waiting for a free place; a call over the rate is refused and says so. A server of counts that does not
answer refuses every call that it counts.
"""

from __future__ import annotations

from collections.abc import Mapping

import limits
from limits.storage import storage_from_string
from limits.strategies import MovingWindowRateLimiter

from toolwise.core.errors import BadInput, LimitExceeded, StorageUnavailable
from toolwise.core.types import Principal, Tool


class Rates:
    """Rates for tools by name; `"*"` is for every tool that has none of its own."""

    def __init__(self, rates: Mapping[str, str] | None = None, *, storage: str = "memory://") -> None:
        self._rates: dict[str, list[limits.RateLimitItem]] = {}
        if not rates:
            return
        try:
            self._rates = {name: limits.parse_many(rate) for name, rate in rates.items()}
            self._counts = MovingWindowRateLimiter(storage_from_string(storage))
        except (ValueError, limits.errors.ConfigurationError) as error:
            raise BadInput(
                'Give a rate as "10/minute" and its storage as memory:// or redis://host:port; '
                "Redis needs an extra: pip install 'toolwise[redis]'."
            ) from error

    def hit(self, principal: Principal, tool: Tool) -> None:
        """Count one call. Raises LimitExceeded when it comes too soon, StorageUnavailable when nobody can count it."""
        for rate in self._rates.get(tool.name, self._rates.get("*", [])):
            try:
                free = self._counts.hit(rate, principal.id, tool.name)
            except Exception as error:
                raise StorageUnavailable(
                    "Rates cannot be counted now; the server of counts has to be repaired."
                ) from error
            if not free:
                raise LimitExceeded(f"This tool may be called {rate}: wait, or do without it.")
