"""Budgets, rates, places and attempts: each bounds what may run, and says so."""

import itertools
import math
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from gate_bench import ANN, QUICK, TEXT, Bench, tool

from toolwise.core.clock import FakeClock
from toolwise.core.errors import BadInput, ToolFailed, ToolUnavailable
from toolwise.core.limits import LIMITS
from toolwise.core.types import Call, CallContext, Effect, Principal, Result, ToolContext
from toolwise.gate.budget import Amount, Budgets, Cap
from toolwise.gate.rates import Rates
from toolwise.gate.state import State, open_state
from toolwise.gate.turn import execute_all
from toolwise.tools.registry import Registry

EVE = replace(ANN, principal=Principal("eve"))


def clock() -> FakeClock:
    return FakeClock(datetime(2024, 5, 1, tzinfo=UTC))


# Budgets


def test_a_budget_of_a_run_a_user_or_a_tool_is_spent_by_whoever_counts_against_it() -> None:
    other = replace(ANN, run_id="run-2")
    for budgets, codes in (
        (Budgets(Cap(calls=1)), ["ok", "budget_exceeded", "ok", "ok"]),
        (Budgets(Cap(), Cap(calls=1)), ["ok", "budget_exceeded", "budget_exceeded", "ok"]),
        (Budgets(Cap(), tools={"probe": Cap(calls=1)}), ["ok"] + ["budget_exceeded"] * 3),
        (Budgets(Cap(), tools={"other": Cap(calls=1)}), ["ok"] * 4),
    ):
        tools = (tool(lambda: 1), tool(lambda: 2, "other"))
        bench = Bench(tools, settings={"budgets": budgets})
        assert [bench.call({}, context=context).code for context in (ANN, ANN, other, EVE)] == codes


def test_cost_seconds_and_bytes_are_reserved_at_their_worst_and_settled_at_what_was_used() -> None:
    paid = tool(lambda: "x" * 10, declared={"cost": 0.4})
    for cap, number in (
        (Cap(cost=1.0), 2),
        (Cap(bytes=LIMITS.result_bytes + 25), 3),
        (Cap(seconds=LIMITS.call_seconds), 10),
    ):
        bench = Bench((paid,), settings={"budgets": Budgets(cap), "clock": clock()})
        codes = [bench.call({}).code for _ in range(10)]
        assert codes == ["ok"] * number + ["budget_exceeded"] * (10 - number)


@pytest.mark.parametrize("amount", [math.nan, math.inf, -1.0])
def test_no_declared_cost_and_no_cap_can_undo_a_budget(amount: float) -> None:
    with pytest.raises(BadInput, match="cost"):
        Registry([tool(lambda: "x", declared={"cost": amount})])
    if amount != math.inf:
        with pytest.raises(BadInput, match="run"):
            Budgets(Cap(cost=amount))
        with pytest.raises(BadInput, match="probe"):
            Budgets(tools={"probe": Cap(calls=amount)})


def test_a_call_that_never_began_costs_nothing() -> None:
    bench = Bench(settings={"budgets": Budgets(Cap(calls=1)), "rates": Rates({"probe": "1/hour"})})
    assert [bench.call({}, context=context).code for context in (EVE, EVE)] == ["ok", "budget_exceeded"]
    again = replace(EVE, run_id="run-2")
    assert bench.call({}, context=again).code == "limit"
    assert bench.gate._budgets.reserve(again, bench.gate.registry["probe"], Amount()) is not None


def test_a_failed_attempt_counts() -> None:
    def fails() -> None:
        raise ToolFailed("no")

    bench = Bench((tool(fails),), settings={"budgets": Budgets(Cap(calls=1))})
    assert [bench.call({}).code for _ in range(2)] == ["tool_failed", "budget_exceeded"]


def test_a_stored_budget_is_shared_and_outlives_its_processes(tmp_path: Path) -> None:
    def bench() -> Bench:
        return Bench(settings={"budgets": Budgets(Cap(calls=2), state=open_state(tmp_path / "state.db"))})

    assert [bench().call({}).code for _ in range(3)] == ["ok", "ok", "budget_exceeded"]


def test_a_flood_of_new_runs_gives_no_user_and_no_tool_a_budget_back() -> None:
    settings = {"budgets": Budgets(Cap(calls=1), Cap(calls=3), limits=replace(LIMITS, runs=2))}
    bench = Bench(settings=settings)
    codes = [bench.call({}, context=replace(ANN, run_id=f"run-{number}")).code for number in range(10)]
    assert codes == ["ok"] * 3 + ["budget_exceeded"] * 7


def test_a_budget_that_cannot_be_given_back_takes_nothing_from_the_result(tmp_path: Path) -> None:
    counts = open_state(tmp_path / "budgets.db")
    bench = Bench((tool(counts.close),), settings={"budgets": Budgets(Cap(calls=9, seconds=99), state=counts)})
    assert bench.call({}).ok
    assert bench.events[-1] == ("result", "ok")
    assert bench.call({}).code == "storage_unavailable"


@pytest.mark.case("E11")
@pytest.mark.parametrize("stored", [False, True])
def test_calls_at_once_never_overdraw_a_budget_together(stored: bool, tmp_path: Path) -> None:
    state = open_state(tmp_path / "state.db") if stored else None
    bench = Bench(settings={"budgets": Budgets(Cap(), Cap(calls=10), state=state)})
    codes: list[str] = []

    def call(number: int) -> None:
        codes.append(bench.gate.execute(Call(f"c{number}", "probe", {}), replace(ANN, run_id=f"r{number % 7}")).code)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(codes) == ["budget_exceeded"] * 90 + ["ok"] * 10


# Rates


def test_a_rate_is_counted_for_every_user_and_every_tool() -> None:
    rates = Rates({"probe": "2/hour", "*": "1/hour"})
    bench = Bench((tool(lambda: 1), tool(lambda: 2, "free")), settings={"rates": rates})
    assert [bench.call({}).code for _ in range(3)] == ["ok", "ok", "limit"]
    assert [bench.call({}, "free").code for _ in range(2)] == ["ok", "limit"]
    assert bench.call({}, context=EVE).ok
    assert "2 per 1 hour" in bench.gate.execute(Call("last", "probe", {}), ANN).text


@pytest.mark.parametrize(("rate", "storage"), [("often", "memory://"), ("1/hour", "nowhere://")])
def test_a_rate_that_is_none_is_refused_at_once(rate: str, storage: str) -> None:
    with pytest.raises(BadInput):
        Rates({"probe": rate}, storage=storage)


def test_rates_are_counted_in_one_place() -> None:
    with pytest.raises(BadInput, match="one place"):
        Rates({"probe": "1/hour"}, storage="memory://", state=open_state(":memory:"))


def test_a_stored_rate_is_shared_and_its_window_moves_with_the_clock(state: State) -> None:
    moved = clock()
    one, other = (Bench(settings={"rates": Rates({"*": "2/minute"}, state=state, clock=moved)}) for _ in range(2))

    def at(second: int, bench: Bench, context: CallContext = ANN) -> str:
        moved.set(datetime(2024, 5, 1, 0, 0, tzinfo=UTC) + timedelta(seconds=second))
        return bench.call({}, context=context).code

    codes = [at(0, one), at(30, other), at(30, one), at(59, other), at(60, other), at(60, one), at(90, one)]
    assert codes == ["ok", "ok", "limit", "limit", "ok", "limit", "ok"]
    assert at(90, one, EVE) == "ok"
    assert state.read("SELECT COUNT(*) FROM rates") == [(3,)]
    assert at(10_000, one, EVE) == "ok"
    assert state.read("SELECT COUNT(*) FROM rates") == [(1,)]


def test_when_nobody_can_count_nothing_runs() -> None:
    bench = Bench(settings={"rates": Rates({"probe": "1/hour"}, storage="redis://127.0.0.1:1")})
    bench.refuses(bench.call({}), "storage_unavailable")
    counts = open_state(":memory:")
    bench = Bench(settings={"rates": Rates({"probe": "1/hour"}, state=counts)})
    counts.close()
    bench.refuses(bench.call({}), "storage_unavailable")


@pytest.mark.parametrize(
    "settings",
    [
        {"budgets": Budgets(tools={"Probe": Cap(calls=1)})},
        {"rates": Rates({"*": "1/hour", "prode": "1/hour"})},
    ],
)
def test_a_bound_of_a_tool_that_is_not_there_is_refused_when_the_gate_is_made(settings: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r'no tool is named "[^"]+"; the nearest are "probe"'):
        Bench(settings=settings)


# Attempts


class Flaky:
    """Fails so many times in a way that may pass; what it was told is kept."""

    def __init__(self, failures: int, error: Exception | None = None) -> None:
        self.left = failures
        self.error = error or ToolUnavailable("Busy.")
        self.told: list[ToolContext] = []

    def __call__(self, context: ToolContext) -> str:
        self.told.append(context)
        if len(self.told) <= self.left:
            raise self.error
        return "at last"


def flaky(calls: Flaky, effect: Effect, **declared: Any) -> Bench:
    probe = tool(lambda context: calls(context), effect=effect, declared={"context_parameter": "context"} | declared)
    return Bench((probe,), settings={"clock": clock()})


@pytest.mark.case("E9")
@pytest.mark.parametrize(
    ("effect", "declared"),
    [
        (Effect.PURE, {}),
        (Effect.READ, {}),
        (Effect.WRITE, {"idempotent": True}),
        (Effect.WRITE, {"keyed": True}),
    ],
)
def test_what_may_be_repeated_is_tried_again_a_bounded_number_of_times_with_one_key(
    effect: Effect, declared: dict[str, bool]
) -> None:
    calls = Flaky(failures=2)
    bench = flaky(calls, effect, **declared)
    assert bench.call({}).text == "at last"
    assert len({told.key for told in calls.told}) == 1
    assert len(calls.told[0].key) == 64
    assert [event for event, _ in bench.events] == ["intent", "retried", "retried", "result"]
    left = [told.seconds for told in calls.told]
    assert left == sorted(left, reverse=True)
    assert left[0] == LIMITS.call_seconds
    assert left[-1] < left[0]

    calls = Flaky(failures=99)
    assert flaky(calls, effect, **declared).call({}).code == "tool_unavailable"
    assert len(calls.told) == LIMITS.attempts


@pytest.mark.case("E9")
def test_a_plain_write_is_never_tried_again() -> None:
    calls = Flaky(failures=1)
    assert flaky(calls, Effect.WRITE).call({}).code == "tool_unavailable"
    assert len(calls.told) == 1


@pytest.mark.case("E9")
@pytest.mark.parametrize("error", [ConnectionResetError("lost"), TimeoutError("no answer")])
@pytest.mark.parametrize("bounded", [True, False])
def test_a_plain_write_that_lost_its_connection_is_not_said_to_be_worth_another_try(
    error: Exception, bounded: bool
) -> None:
    calls = Flaky(failures=1, error=error)
    bench = Bench((tool(lambda: calls(None), effect=Effect.WRITE, bounded=bounded),))  # type: ignore[arg-type]
    results = [bench.gate.execute(Call("c", "probe", {}), ANN) for _ in range(2)]
    assert [result.code for result in results] == ["outcome_unknown"] * 2
    assert [record.state for record in bench.gate.ledger.records()] == ["unknown"]
    assert bench.events == [("intent", ""), ("result", "outcome_unknown"), ("refused", "outcome_unknown")]


@pytest.mark.case("E8")
def test_a_failure_that_will_not_pass_is_not_tried_again() -> None:
    for error in (ToolFailed("no"), ValueError("no"), PermissionError("no")):
        calls = Flaky(failures=1, error=error)
        assert flaky(calls, Effect.READ).call({}).code == "tool_failed"
        assert len(calls.told) == 1
    for error in (ConnectionResetError(), TimeoutError()):
        assert flaky(Flaky(failures=1, error=error), Effect.READ).call({}).text == "at last"


@pytest.mark.case("E9")
def test_every_attempt_is_charged_and_none_is_made_that_the_budget_forbids() -> None:
    calls = Flaky(failures=99)
    bench = flaky(calls, Effect.READ)
    bench.gate._budgets = Budgets(Cap(calls=2))
    assert bench.call({}).code == "tool_unavailable"
    assert len(calls.told) == 2
    assert bench.call({}).code == "budget_exceeded"


@pytest.mark.case("E9")
def test_attempts_share_one_deadline() -> None:
    slow = clock()

    def busy() -> None:
        slow.advance(0.3)
        raise ToolUnavailable("Busy.")

    bench = Bench((tool(busy, effect=Effect.READ),), settings={"clock": slow, "limits": replace(QUICK, attempts=100)})
    assert bench.call({}).code == "tool_unavailable"
    assert bench.lines[-1].seconds <= QUICK.call_seconds + 0.3


# Deadlines


def test_a_deadline_that_nobody_could_enforce_is_refused_at_registration() -> None:
    for seconds, bounded in ((1.0, True), (0.0, False), (-1.0, False), (float("nan"), False), (float("inf"), False)):
        with pytest.raises(BadInput):
            Registry([tool(lambda: 1, bounded=bounded, declared={"seconds": seconds})])
    Registry([tool(lambda: 1, bounded=False, declared={"seconds": 1.0})])


def test_a_tools_own_deadline_goes_before_the_common_one() -> None:
    def forever() -> None:
        for _ in itertools.count():
            pass

    bench = Bench((tool(forever, bounded=False, declared={"seconds": 0.2}),))
    result = bench.call({})
    assert result.code == "timeout"
    assert result.seconds < 3


# Turns


@pytest.mark.case("A19")
def test_of_ten_thousand_calls_in_one_turn_the_first_are_handled_and_every_one_is_answered() -> None:
    bench = Bench()
    calls = [Call(f"c{number}", "probe", {}) for number in range(10_000)]
    results = execute_all(bench.gate, calls, ANN)
    assert [result.call_id for result in results] == [call.id for call in calls]
    assert [result.code for result in results] == ["ok"] * 16 + ["budget_exceeded"] * 9_984
    assert len(bench.ran) == 16


@pytest.mark.case("D9")
def test_a_call_that_hangs_takes_nothing_from_its_neighbours_and_the_order_stays() -> None:
    def forever() -> None:
        while True:
            pass

    tools = (tool(forever, "hangs", bounded=False), tool(lambda to: to, bounded=False, to=TEXT))
    bench = Bench(tools, settings={"limits": QUICK})
    calls = [Call("1", "probe", {"to": "a"}), Call("2", "hangs", {}), Call("3", "probe", {"to": "b"})]
    results = execute_all(bench.gate, calls, ANN)
    assert [result.text if result.ok else result.code for result in results] == ["a", "timeout", "b"]


def test_calls_that_conflict_keep_their_order_and_others_run_together() -> None:
    order: list[str] = []
    together = threading.Barrier(2, timeout=10)

    def write(q: str) -> str:
        order.append(q)
        return q

    def meet(q: str) -> str:
        together.wait()
        return q

    tools = (
        tool(write, "set", Effect.WRITE, q=TEXT, declared={"resource": "disk"}),
        tool(write, "get", Effect.READ, q=TEXT, declared={"resource": "disk"}),
        tool(meet, "meet", Effect.READ, q=TEXT),
    )
    bench = Bench(tools)
    names = ["set", "get", "set", "meet", "meet", "set"]
    calls = [Call(str(number), name, {"q": str(number)}) for number, name in enumerate(names)]
    results: list[Result] = execute_all(bench.gate, calls, ANN)
    assert [result.text for result in results] == list("012345")
    assert order == ["0", "1", "2", "5"]


def test_a_call_that_names_no_tool_is_answered_in_its_place() -> None:
    results = execute_all(Bench().gate, [Call("1", "nobody", {}), Call("2", "probe", {})], ANN)
    assert [result.code for result in results] == ["unknown_tool", "ok"]
    assert execute_all(Bench().gate, [], ANN) == []
