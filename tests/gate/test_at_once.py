"""Sixteen processes at the same moment, on both engines: one key, one approval, one question, one budget, one rate."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from children import at_once
from gate_bench import ANN, Allow, count, counter, tool

from toolwise.core.types import Call, Effect, Result, Tool
from toolwise.gate.budget import Budgets, Cap
from toolwise.gate.gate import Gate
from toolwise.gate.policy import Decision
from toolwise.gate.rates import Rates
from toolwise.gate.state import open_state
from toolwise.tools.registry import Registry

SIXTEEN = 16


class Asks(Allow):
    def decide(self, *asked: Any) -> Decision:
        return Decision("ask", "a person looks")


def probe(folder: Path, effect: Effect = Effect.WRITE, **declared: Any) -> Tool:
    return tool(counter(folder / "effects"), effect=effect, declared=declared)


def everybody(gate: Callable[[], Gate], ids: Callable[[int], list[str]]) -> list[list[Any]]:
    """What sixteen processes were told, each with a gate of its own that it makes before all of them start."""

    def process(number: int) -> Callable[[], list[Any]]:
        own = gate()

        def act() -> list[Any]:
            results: list[Result] = [own.execute(Call(id, "probe", {}), ANN) for id in ids(number)]
            return [[result.code, result.text, result.approval] for result in results]

        return act

    answers = at_once([lambda number=number: process(number) for number in range(SIXTEEN)])
    return [told for answer in answers for told in answer]


@pytest.mark.case("E1")
@pytest.mark.parametrize("declared", [{}, {"keyed": True}])
def test_one_key_has_one_effect_and_everybody_else_waits_or_gets_the_same_result(
    where: str, tmp_path: Path, declared: dict[str, bool]
) -> None:
    told = everybody(
        lambda: Gate(Registry([probe(tmp_path, **declared)]), Allow(), open_state(where)), lambda number: ["same"]
    )
    codes = Counter(code for code, *_ in told)
    assert codes["ok"] >= 1
    assert codes["ok"] + codes["in_progress"] == SIXTEEN
    assert {text for code, text, _ in told if code == "ok"} == {"null"}
    assert count(tmp_path / "effects") == 1
    gate = Gate(Registry([probe(tmp_path)]), Allow(), open_state(where))
    events = Counter(row.line.event for row in gate.audit.rows())
    assert (events["intent"], events["result"]) == (1, 1)
    assert gate.audit.verify() is not None


@pytest.mark.case("E1")
@pytest.mark.parametrize("effect", [Effect.WRITE, Effect.READ])
def test_one_approval_is_used_once(where: str, tmp_path: Path, effect: Effect) -> None:
    def gate() -> Gate:
        return Gate(Registry([probe(tmp_path, effect)]), Asks(), open_state(where))

    desk = gate()
    asked = desk.approvals.get(desk.execute(Call("same", "probe", {}), ANN).approval)
    desk.approvals.decide(asked.id, "approved", "Ann", asked.digest)
    told = everybody(gate, lambda number: ["same"])
    codes = Counter(code for code, *_ in told)
    assert count(tmp_path / "effects") == 1
    assert desk.approvals.get(asked.id).state == "used"
    if effect is Effect.WRITE:
        assert codes["ok"] >= 1
        assert set(codes) <= {"ok", "in_progress"}
    else:  # each process remembers its own looks only
        assert codes["ok"] == 1
        assert set(codes) <= {"ok", "approval_expired", "approval_required"}


def test_one_call_is_one_question(where: str, tmp_path: Path) -> None:
    def gate() -> Gate:
        return Gate(Registry([probe(tmp_path)]), Asks(), open_state(where))

    told = everybody(gate, lambda number: ["same"])
    assert {code for code, *_ in told} == {"approval_required"}
    assert {approval for *_, approval in told} == {asked.id for asked in gate().approvals.pending()}
    assert len(gate().approvals.pending()) == 1
    assert count(tmp_path / "effects") == 0


@pytest.mark.case("E11")
def test_one_stored_budget_lets_as_many_run_as_it_has(where: str, tmp_path: Path) -> None:
    def gate() -> Gate:
        state = open_state(where)
        return Gate(Registry([probe(tmp_path)]), Allow(), state, budgets=Budgets(Cap(calls=10), state=state))

    told = everybody(gate, lambda number: [f"c{number}-{again}" for again in range(2)])
    assert Counter(code for code, *_ in told) == {"ok": 10, "budget_exceeded": 2 * SIXTEEN - 10}
    assert count(tmp_path / "effects") == 10
    assert open_state(where).read("SELECT used FROM budgets") == [(10,)]


def test_one_stored_rate_lets_as_many_run_as_it_says(where: str, tmp_path: Path) -> None:
    def gate() -> Gate:
        state = open_state(where)
        return Gate(Registry([probe(tmp_path)]), Allow(), state, rates=Rates({"probe": "10/hour"}, state=state))

    told = everybody(gate, lambda number: [f"c{number}-{again}" for again in range(2)])
    assert Counter(code for code, *_ in told) == {"ok": 10, "limit": 2 * SIXTEEN - 10}
    assert count(tmp_path / "effects") == 10
    assert open_state(where).read("SELECT COUNT(*) FROM rates") == [(10,)]
