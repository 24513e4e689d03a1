"""The clock seam: the only place where time is read or waited for.

Deadlines and backoff use `monotonic`, which no change of the wall clock can move; `now` is for people and for the
calendar, and orders nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

from toolwise.core.errors import BadInput


class Clock(Protocol):
    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never goes back."""

    def now(self) -> datetime:
        """Wall-clock time with its zone."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


def cpu_seconds() -> float:
    """Processor seconds that this process has used, all its threads together."""
    return time.process_time()


def today_in(zone: str, clock: Clock) -> str:
    """The day that it is now in a time zone (`Europe/Oslo`), as an ISO date. Raises BadInput for an unknown zone."""
    try:
        return clock.now().astimezone(ZoneInfo(zone)).date().isoformat()
    except (KeyError, ValueError, OSError) as error:  # ZoneInfoNotFoundError is a KeyError
        raise BadInput(
            f"There is no time zone {zone!r} here; use a name such as Europe/Oslo, or pip install tzdata."
        ) from error


class SystemClock:
    """The machine's own clock."""

    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> datetime:
        return datetime.now(UTC).astimezone()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass
class FakeClock:
    """A clock that moves only when told: `advance` moves both hands, `set` only the wall clock's."""

    wall: datetime
    elapsed: float = 0.0

    def monotonic(self) -> float:
        return self.elapsed

    def now(self) -> datetime:
        return self.wall

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self.elapsed += seconds
        self.wall += timedelta(seconds=seconds)

    def set(self, wall: datetime) -> None:
        self.wall = wall
