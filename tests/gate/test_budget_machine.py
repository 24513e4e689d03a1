"""Budgets under every order of reservations, attempts, ends and crashes: no count ever leaves what it may be."""

import itertools
from dataclasses import dataclass, field
from typing import Any

import pytest
from gate_bench import tool
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import machines
from toolwise.core.errors import BudgetExceeded
from toolwise.core.types import CallContext, Principal
from toolwise.gate.budget import Amount, Budgets, Cap, Counts, Draw, MemoryCounts, Reservation
from toolwise.gate.state import State, open_state

RUNS = itertools.count()
TOOLS = {name: tool(lambda: 1, name) for name in ("one", "two")}
CAPS = {"run": Cap(calls=6, seconds=10), "principal": Cap(calls=9, bytes=50), "one": Cap(cost=4.0, seconds=12)}
UNITS = Amount._fields


@dataclass
class Held:
    reservation: Reservation
    scopes: list[str]
    amount: list[float] = field(default_factory=lambda: [0.0] * 4)
    used: list[float] = field(default_factory=lambda: [0.0] * 4)


class BudgetMachine(RuleBasedStateMachine):
    """Quarters of every unit, so that sums are exact."""

    state: State | None
    amounts = st.tuples(*(st.integers(0, most).map(lambda n: n / 4) for most in (8, 16, 80, 8)))

    @initialize()
    def start(self) -> None:
        self.name = f"user-{next(RUNS)}"
        run, principal = CAPS["run"], CAPS["principal"]
        self.budgets = [Budgets(run, principal, {"one": CAPS["one"]}, state=self.state) for _ in range(2)]
        if self.state is None:
            self.budgets = self.budgets[:1] * 2
        else:
            with self.state.transaction() as sql:
                sql("DELETE FROM budgets")
        self.used: dict[tuple[str, str], float] = {}
        self.held: list[Held] = []

    def cap(self, scope: str, unit: str) -> float | None:
        cap: float | None = getattr(CAPS.get(scope.partition(" ")[0], Cap()), unit)
        return cap

    def capped(self, scopes: list[str], amounts: Any) -> dict[tuple[str, str], float]:
        return {
            (scope, unit): amount
            for scope in scopes
            for unit, amount in zip(UNITS, amounts, strict=True)
            if self.cap(scope, unit) is not None
        }

    def fits(self, draws: dict[tuple[str, str], float]) -> bool:
        return all(
            amount == 0 or self.used.get(place, 0.0) + amount <= (self.cap(*place) or 0.0)
            for place, amount in draws.items()
        )

    def take(self, held: Held, amounts: tuple[float, ...], act: Any) -> bool:
        """Whether `act`, which must succeed exactly if there is enough of everything, did."""
        draws = self.capped(held.scopes, amounts)
        if not self.fits(draws):
            with pytest.raises(BudgetExceeded):
                act()
            return False
        act()
        for place, amount in draws.items():
            self.used[place] = self.used.get(place, 0.0) + amount
        held.amount = [a + b for a, b in zip(held.amount, amounts, strict=True)]
        return True

    @rule(gate=st.integers(0, 1), run=st.integers(0, 1), name=st.sampled_from(sorted(TOOLS)), most=amounts)
    def reserve(self, gate: int, run: int, name: str, most: tuple[float, ...]) -> None:
        context = CallContext(Principal(self.name), f"r{run}")
        held = Held(None, [f"run {run}", "principal", name])  # type: ignore[arg-type]

        def act() -> None:
            held.reservation = self.budgets[gate].reserve(context, TOOLS[name], Amount(*most))

        if self.take(held, most, act):
            self.held.append(held)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), most=amounts)
    def another_attempt(self, data: st.DataObject, most: tuple[float, ...]) -> None:
        held = data.draw(st.sampled_from(self.held))
        self.take(held, most, lambda: held.reservation.take(Amount(*most)))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), ends=st.sampled_from(["never started", "crashed", "failed", "ended"]), took=amounts)
    def leave(self, data: st.DataObject, ends: str, took: tuple[float, ...]) -> None:
        held = data.draw(st.sampled_from(self.held))
        self.held.remove(held)
        if ends == "crashed":
            return  # all that it held stays used
        with held.reservation as reservation:
            if ends != "never started":
                reservation.start()
                held.used = list(held.amount)
            if ends == "ended":
                reservation.end(took[1], took[2])
                held.used[1:3] = took[1:3]
        changes = [used - amount for used, amount in zip(held.used, held.amount, strict=True)]
        for place, change in self.capped(held.scopes, changes).items():
            if change:
                self.used[place] = min(max(self.used.get(place, 0.0) + change, 0.0), self.cap(*place) or 0.0)

    @invariant()
    def every_count_is_what_it_must_be(self) -> None:
        counts: Any = self.budgets[0]._counts
        if self.state is None:
            stored = {place: used for place, used in counts._used.items() if used}
        else:
            rows = self.state.read("SELECT scope, unit, used FROM budgets WHERE used <> 0")
            stored = {(scope, unit): used for scope, unit, used in rows}
        found = {(self.short(scope), unit): used for (scope, unit), used in stored.items()}
        assert found == {place: used for place, used in self.used.items() if used}
        assert all(0 <= used <= (self.cap(*place) or 0.0) for place, used in found.items())

    def short(self, scope: str) -> str:
        kind, _, rest = scope.partition(" ")
        return {"run": f"run {rest[-1]}", "principal": "principal", "tool": rest}[kind]


def test_no_order_of_events_overdraws_a_budget_in_memory() -> None:
    machines.run(BudgetMachine, state=None)


def test_no_order_of_events_overdraws_a_stored_budget_of_two_gates(state: State) -> None:
    machines.run(BudgetMachine, state=state)


def test_amounts_that_do_not_add_up_exactly_leave_no_rest_below_nothing(state: State) -> None:
    counts: tuple[Counts, ...] = (
        MemoryCounts(),
        Budgets(state=state)._counts,
        Budgets(state=open_state(":memory:"))._counts,
    )
    for each in counts:
        for amount in (0.1, 0.2, 0.3):
            assert each.reserve([Draw("run", "cost", amount, 0.7)]) is None
        assert each.reserve([Draw("run", "calls", 1, 1), Draw("run", "cost", 0.2, 0.7)]) is not None
        each.settle([Draw("run", "cost", -0.3, 0.7), Draw("run", "cost", -0.2, 0.7), Draw("run", "cost", -0.1001, 0.7)])
        assert each.reserve([Draw("run", "calls", 1, 1), Draw("run", "cost", 0.7, 0.7)]) is None
        each.settle([Draw("run", "cost", 5.0, 0.7)])
        over = each.reserve([Draw("run", "cost", 0.001, 0.7)])
        assert over is not None
        assert over.cap == 0.7
