"""How much a run, a principal and a tool may use: calls, seconds, bytes, cost.

What a call may use at most is reserved before it starts, from every budget that it counts against and in one step, so
that calls at the same time cannot overdraw one together; what it did not use is given back when it has ended. An
attempt counts even if it fails. A crash gives nothing back: what was reserved stays used.

`Budgets` counts in memory, for one gate; with a `state` the counts are shared by all that use it, and outlive them.
In memory, budgets that were not used for longest are forgotten when there are more than `limits.runs`; forgetting gives
a run its whole budget again, so a run id must not be used again for other work.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple, Protocol

from toolwise.core.errors import BudgetExceeded, StorageUnavailable
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import CallContext, Tool
from toolwise.gate.state import State


class Amount(NamedTuple):
    """What a call uses, or may use."""

    calls: float = 1
    seconds: float = 0.0
    bytes: float = 0
    cost: float = 0.0


class Cap(NamedTuple):
    """The most that may be used; None: any amount."""

    calls: float | None = None
    seconds: float | None = None
    bytes: float | None = None
    cost: float | None = None


_NOTHING = Amount(calls=0)
Draw = tuple[str, str, float, float]  # whose budget, unit, amount, cap


class Counts(Protocol):
    """Where it is counted what was used."""

    def add(self, draws: Iterable[Draw]) -> Draw | None:
        """Add every amount, or none of them: then the first that would be over its cap is given back."""


class Budgets:
    """Caps for every run, every principal, and each of some tools (of all their callers together)."""

    def __init__(
        self,
        run: Cap | None = None,
        principal: Cap | None = None,
        tools: Mapping[str, Cap] | None = None,
        *,
        state: State | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        self._run = Cap(calls=limits.calls_per_run) if run is None else run
        self._principal = principal or Cap()
        self._tools = dict(tools or {})
        self._counts: Counts = Counted(limits) if state is None else Stored(state)

    def reserve(self, context: CallContext, tool: Tool, most: Amount) -> Reservation:
        """Take the most that one attempt may use. Raises BudgetExceeded, and then takes nothing."""
        user = context.principal.id
        scopes = (
            (f"run {len(user)}:{user} {context.run_id}", "This run", self._run),
            (f"principal {user}", "This user", self._principal),
            (f"tool {tool.name}", "This tool", self._tools.get(tool.name, Cap())),
        )
        reservation = Reservation(self._counts, scopes)
        reservation.take(most)
        return reservation


class Reservation:
    """What one call holds of its budgets, until the end of a `with` block; then what it did not use is given back."""

    def __init__(self, counts: Counts, scopes: Iterable[tuple[str, str, Cap]]) -> None:
        self._counts = counts
        self._caps = [
            (scope, name, unit, cap)
            for scope, name, caps in scopes
            for unit, cap in zip(Cap._fields, caps, strict=True)
            if cap is not None
        ]
        self._held = self._used = _NOTHING

    def take(self, most: Amount) -> None:
        """Take so much more, for another attempt. Raises BudgetExceeded, and then takes nothing."""
        over = self._counts.add(self._draws(most))
        if over is not None:
            named = next(name for scope, name, unit, _ in self._caps if (scope, unit) == over[:2])
            raise BudgetExceeded(f"{named} has used its {over[3]:g} {over[1]}; answer without another call.")
        self._held = _sum(self._held, most, 1)

    def start(self) -> None:
        """The call starts: whatever becomes of it, all that is held counts as used until `end` says less."""
        self._used = self._held

    def end(self, seconds: float, bytes: float) -> None:
        """The call has ended after so many seconds, with so many bytes."""
        self._used = self._held._replace(seconds=seconds, bytes=bytes)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(StorageUnavailable):  # what cannot be given back stays used; the call has ended all the same
            self._counts.add(self._draws(_sum(self._used, self._held, -1)))

    def _draws(self, amount: Amount) -> list[Draw]:
        return [(scope, unit, change, cap) for scope, _, unit, cap in self._caps if (change := getattr(amount, unit))]


def _sum(a: Amount, b: Amount, sign: int) -> Amount:
    return Amount(*(x + sign * y for x, y in zip(a, b, strict=True)))


class Counted:
    """In memory."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._most = limits.runs
        self._used: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, draws: Iterable[Draw]) -> Draw | None:
        draws = list(draws)
        with self._lock:
            for draw in draws:
                scope, unit, amount, cap = draw
                if amount > 0 and self._used.get((scope, unit), 0) + amount > cap:
                    return draw
            for scope, unit, amount, _ in draws:
                self._used[scope, unit] = max(0, self._used.get((scope, unit), 0) + amount)
                self._used.move_to_end((scope, unit))
            while len(self._used) > self._most:
                self._used.popitem(last=False)
        return None


_TABLE = """CREATE TABLE IF NOT EXISTS budgets
    (scope TEXT NOT NULL, unit TEXT NOT NULL, used DOUBLE PRECISION NOT NULL, PRIMARY KEY (scope, unit))"""
_ADD = """INSERT INTO budgets (scope, unit, used) VALUES (?, ?, ?)
    ON CONFLICT (scope, unit) DO UPDATE SET used = budgets.used + excluded.used"""


class Stored:
    """In a state that several processes share."""

    def __init__(self, state: State) -> None:
        self._state = state
        with state.transaction() as sql:
            sql(_TABLE)

    def add(self, draws: Iterable[Draw]) -> Draw | None:
        draws = list(draws)
        if not draws:
            return None
        with self._state.transaction(durable=False) as sql:
            for draw in draws:
                scope, unit, amount, cap = draw
                found = sql("SELECT used FROM budgets WHERE scope = ? AND unit = ?", (scope, unit))
                if amount > 0 and (found[0][0] if found else 0) + amount > cap:
                    return draw
            for scope, unit, amount, _ in draws:
                sql(_ADD, (scope, unit, amount))
        return None
