"""One id runs once, a run has a budget, and only so many tools run at a time."""

import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from gate_bench import ANN, TEXT, Bench, count, counter, tool

from toolwise.core.clock import FakeClock
from toolwise.core.limits import LIMITS
from toolwise.core.types import (
    Call,
    Effect,
    Principal,
    Result,
)
from toolwise.gate.budget import Budgets, Cap
from toolwise.gate.outcome import Outcome
from toolwise.gate.policy import Decision


class Changing:
    version = "1"
    verdict: Any = "allow"

    def decide(self, *asked: Any) -> Decision:
        return Decision(self.verdict, "test")


@pytest.mark.case("E2")
def test_one_id_runs_once_gets_its_result_again_and_cannot_be_used_for_another_call() -> None:
    bench = Bench()
    first = bench.gate.execute(Call("c", "probe", {"to": "bob", "amount": 1}), ANN)
    again = bench.gate.execute(Call("c", "probe", {"amount": 1, "to": "bob"}), ANN)
    other = bench.gate.execute(Call("c", "probe", {"to": "eve"}), ANN)
    assert again == first
    assert other.code == "conflict"
    assert len(bench.ran) == 1
    assert bench.events == [("intent", ""), ("result", "ok"), ("replayed", "ok"), ("refused", "conflict")]


@pytest.mark.parametrize("effect", Effect)
def test_a_call_that_ran_is_not_said_to_be_denied_when_the_policy_has_changed(effect: Effect) -> None:
    bench = Bench((tool(lambda: "done", effect=effect),), policy := Changing())
    first = bench.gate.execute(Call("c", "probe", {}), ANN)
    policy.verdict = "deny"
    assert bench.gate.execute(Call("c", "probe", {}), ANN) == first
    assert bench.gate.execute(Call("d", "probe", {}), ANN).code == "denied"


@pytest.mark.case("E3")
def test_the_same_id_of_another_principal_or_run_is_another_call() -> None:
    bench = Bench()
    for context in (ANN, replace(ANN, principal=Principal("bob")), replace(ANN, run_id="run-2")):
        bench.gate.execute(Call("c", "probe", {}), context)
    assert len(bench.ran) == 3


@pytest.mark.case("E8")
def test_a_refusal_is_not_kept_under_the_id() -> None:
    bench = Bench()
    assert bench.gate.execute(Call("c", "probe", {"amount": "x"}), ANN).code == "invalid_arguments"
    assert bench.gate.execute(Call("c", "probe", {"amount": 1}), ANN).ok


def test_the_same_call_at_the_same_time_runs_once() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def wait() -> str:
        inside.set()
        assert go_on.wait(10)
        return "done"

    bench = Bench((tool(wait),))
    results: list[Result] = []
    worker = threading.Thread(target=lambda: results.append(bench.gate.execute(Call("c", "probe", {}), ANN)))
    worker.start()
    assert inside.wait(10)
    assert bench.gate.execute(Call("c", "probe", {}), ANN).code == "in_progress"
    go_on.set()
    worker.join(10)
    assert bench.gate.execute(Call("c", "probe", {}), ANN) == results[0]


def test_a_write_is_never_forgotten() -> None:
    ran: list[str] = []
    writes = tool(lambda to: ran.append(to), effect=Effect.WRITE, required=("to",), to=TEXT)
    bench = Bench((writes,), settings={"limits": replace(LIMITS, replays=2)})
    results = [bench.gate.execute(Call(to, "probe", {"to": to}), ANN) for to in "abcd"]
    assert [bench.gate.execute(Call(to, "probe", {"to": to}), ANN) for to in "abcd"] == results
    assert ran == ["a", "b", "c", "d"]


class LateRunner:
    """A tool that answered, but behind its deadline."""

    def __init__(self) -> None:
        self.ran = 0

    def run(self, *asked: object) -> Outcome:
        self.ran += 1
        return Outcome("timeout", "Ended at its deadline.", answered=False, late=Outcome("ok", "sent", 4))


@pytest.mark.case("D7")
@pytest.mark.parametrize(("effect", "told"), [(Effect.WRITE, "outcome_unknown"), (Effect.READ, "timeout")])
def test_what_is_said_too_late_is_recorded_never_delivered_and_given_to_whoever_asks_again(
    effect: Effect, told: str
) -> None:
    bench, late = Bench((tool(lambda: "sent", effect=effect),)), LateRunner()
    bench.gate._runner = late  # type: ignore[assignment]
    first = bench.gate.execute(Call("c", "probe", {}), ANN)
    assert (first.code, "sent" in first.text) == (told, False)
    again = bench.gate.execute(Call("c", "probe", {}), ANN)
    assert (again.code, again.text, late.ran) == ("ok", "sent", 1)
    assert bench.events == [("intent", ""), ("result", told), ("late", "ok"), ("replayed", "ok")]


@pytest.mark.case("E11")
def test_of_a_hundred_calls_at_once_a_budget_of_ten_lets_ten_run() -> None:
    bench = Bench(settings={"budgets": Budgets(Cap(calls=10))})
    results: list[Result] = []

    def call(number: int) -> None:
        results.append(bench.gate.execute(Call(f"c{number}", "probe", {}), ANN))

    threads = [threading.Thread(target=call, args=(number,)) for number in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(result.code for result in results) == ["budget_exceeded"] * 90 + ["ok"] * 10
    assert len(bench.ran) == 10
    assert bench.call({}, context=replace(ANN, run_id="run-2")).ok


def test_a_budget_of_none_is_unlimited() -> None:
    bench = Bench(settings={"budgets": Budgets(Cap())})
    assert all(bench.call({}).ok for _ in range(LIMITS.calls_per_run + 1))


def test_a_call_that_finds_no_free_place_is_refused(tmp_path: Path) -> None:
    inside, ran = tmp_path / "inside", tmp_path / "ran"

    def wait() -> None:
        inside.touch()
        while True:
            pass

    clock = FakeClock(datetime(2024, 1, 1, tzinfo=UTC))  # stands still, so that the first call holds its place
    settings = {"limits": replace(LIMITS, children=1, call_seconds=0.2), "clock": clock}
    bench = Bench((tool(wait, "slow", bounded=False), tool(counter(ran), bounded=False)), settings=settings)
    results: list[Result] = []
    worker = threading.Thread(target=lambda: results.append(bench.call({}, "slow")), daemon=True)
    worker.start()
    for _ in range(1000):
        worker.join(0.01)
        if inside.exists():
            break
    assert bench.call({}).code == "limit"
    for _ in range(100):
        clock.advance(1)
        worker.join(0.1)
    assert ([result.code for result in results], count(ran)) == (["timeout"], 0)
    assert bench.call({}).ok
