"""How much a run, a principal and a tool may use: calls, seconds, bytes, cost.

What a call may use at most is reserved before it starts, from every budget that it counts against and in one step, so
that calls at the same time cannot overdraw one together; what it did not use is given back when it has ended. An
attempt counts even if it fails. A crash gives nothing back: what was reserved stays used. A call that used more than
it had reserved (a bounded tool has no deadline) uses its budgets up: no count leaves the range from nothing to its cap.

`Budgets` counts in memory, for one gate; with a `state` the counts are shared by all that use it, and outlive them.
In memory, the counts of runs that were not used for longest are forgotten when there are more than `limits.runs`;
forgetting gives a run its whole budget again, so a run id must not be used again for other work. Those of principals
and tools are kept: there are as many as there are accounts and tools.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from operator import add, sub
from typing import NamedTuple, Protocol

from toolwise.core.errors import BadInput, BudgetExceeded, StorageUnavailable
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import CallContext, Tool
from toolwise.gate.state import Sql, State

_RUN = "run "  # how the scope of a run begins


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
_ANY = Cap()


class Draw(NamedTuple):
    """One amount of one unit from one budget."""

    scope: str
    unit: str
    amount: float
    cap: float

    @property
    def place(self) -> tuple[str, str]:
        return self.scope, self.unit


class Counts(Protocol):
    """Where it is counted what was used."""

    def reserve(self, draws: Sequence[Draw]) -> Draw | None:
        """Add every amount, or none of them: then the first that would be over its cap is given back."""

    def settle(self, draws: Sequence[Draw]) -> None:
        """Add every amount, negative ones too, but none beyond its cap or below nothing."""


class Budgets:
    """Caps for every run, every principal, and each of some tools (of all their callers together).

    Raises BadInput for a cap that is negative or no number.
    """

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
        for name, caps in {"a run": self._run, "a principal": self._principal, **self._tools}.items():
            if not all(cap is None or cap >= 0 for cap in caps):
                raise BadInput(f"The caps of {name} have to be numbers that are not negative.")
        self._counts: Counts = MemoryCounts(limits) if state is None else StateCounts(state)

    @property
    def tools(self) -> frozenset[str]:
        """The tools that have a budget of their own."""
        return frozenset(self._tools)

    def reserve(self, context: CallContext, tool: Tool, most: Amount) -> Reservation:
        """Take the most that one attempt may use. Raises BudgetExceeded, and then takes nothing."""
        scopes = (
            (f"{_RUN}{context.run_key}", "This run", self._run),
            (f"principal {context.principal.id}", "This user", self._principal),
            (f"tool {tool.name}", "This tool", self._tools.get(tool.name, _ANY)),
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
            if caps != _ANY
            for unit, cap in zip(Cap._fields, caps, strict=True)
            if cap is not None
        ]
        self._held = self._used = _NOTHING

    def take(self, most: Amount) -> None:
        """Take so much more, for another attempt. Raises BudgetExceeded, and then takes nothing."""
        over = self._counts.reserve(self._draws(most))
        if over is not None:
            named = next(name for scope, name, unit, _ in self._caps if (scope, unit) == over.place)
            raise BudgetExceeded(f"{named} has used its {over.cap:g} {over.unit}; answer without another call.")
        self._held = Amount(*map(add, self._held, most))

    def start(self) -> None:
        """The call starts: whatever becomes of it, all that is held counts as used until `end` says less."""
        self._used = self._held

    def end(self, seconds: float, bytes: float) -> None:
        """The call has ended after so many seconds, with so many bytes."""
        self._used = Amount(self._held.calls, seconds, bytes, self._held.cost)

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(StorageUnavailable):  # what cannot be given back stays used; the call has ended all the same
            self._counts.settle(self._draws(Amount(*map(sub, self._used, self._held))))

    def _draws(self, amount: Amount) -> list[Draw]:
        return [
            Draw(scope, unit, change, cap) for scope, _, unit, cap in self._caps if (change := getattr(amount, unit))
        ]


def _over(draw: Draw, used: float) -> bool:
    return draw.amount > 0 and used + draw.amount > draw.cap


def _settled(draw: Draw, used: float) -> float:
    return min(max(used + draw.amount, 0.0), max(used, draw.cap))


class MemoryCounts:
    """In memory."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._most = limits.runs
        self._used: dict[tuple[str, str], float] = {}
        self._runs: OrderedDict[tuple[str, str], None] = OrderedDict()  # those that may be forgotten
        self._lock = threading.Lock()

    def reserve(self, draws: Sequence[Draw]) -> Draw | None:
        with self._lock:
            for draw in draws:
                if _over(draw, self._used.get(draw.place, 0.0)):
                    return draw
            self._settle(draws)
        return None

    def settle(self, draws: Sequence[Draw]) -> None:
        with self._lock:
            self._settle(draws)

    def _settle(self, draws: Sequence[Draw]) -> None:
        for draw in draws:
            place = draw.place
            self._used[place] = _settled(draw, self._used.get(place, 0.0))
            if draw.scope.startswith(_RUN):
                self._runs[place] = None
                self._runs.move_to_end(place)
        while len(self._runs) > self._most:
            del self._used[self._runs.popitem(last=False)[0]]


_TABLE = """CREATE TABLE IF NOT EXISTS budgets
    (scope TEXT NOT NULL, unit TEXT NOT NULL, used DOUBLE PRECISION NOT NULL, PRIMARY KEY (scope, unit))"""
_USED = "SELECT used FROM budgets WHERE scope = ? AND unit = ?"
_PUT = """INSERT INTO budgets (scope, unit, used) VALUES (?, ?, ?)
    ON CONFLICT (scope, unit) DO UPDATE SET used = excluded.used"""


class StateCounts:
    """In a state that several processes share."""

    def __init__(self, state: State) -> None:
        self._state = state
        with state.transaction() as sql:
            sql(_TABLE)

    def reserve(self, draws: Sequence[Draw]) -> Draw | None:
        if not draws:
            return None
        with self._state.transaction(durable=False) as sql:
            for draw in draws:
                if _over(draw, _used(sql, draw)):
                    return draw
            _settle(sql, draws)
        return None

    def settle(self, draws: Sequence[Draw]) -> None:
        if draws:
            with self._state.transaction(durable=False) as sql:
                _settle(sql, draws)


def _used(sql: Sql, draw: Draw) -> float:
    return sum((used for (used,) in sql(_USED, draw.place)), 0.0)


def _settle(sql: Sql, draws: Sequence[Draw]) -> None:
    for draw in draws:
        sql(_PUT, (*draw.place, _settled(draw, _used(sql, draw))))
