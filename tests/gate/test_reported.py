"""What users of other runtimes reported, as calls through this gate."""

import os
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from gate_bench import ANN, QUICK, TEXT, Bench, count, counter, tool

from toolwise.core.clock import FakeClock
from toolwise.core.errors import BadInput
from toolwise.core.types import Call, Effect
from toolwise.gate.budget import Budgets, Cap
from toolwise.gate.policy import CedarPolicy
from toolwise.gate.turn import execute_all

GATED = CedarPolicy.from_text("""
permit (principal, action == Action::"call", resource == Tool::"open");
permit (principal, action == Action::"ask", resource == Tool::"gated");
""")


@pytest.mark.case("R36")
def test_an_error_is_an_error_in_the_flag_the_text_the_log_and_the_replay() -> None:
    def fails() -> None:
        raise ValueError("no")

    bench = Bench((tool(fails, effect=Effect.WRITE),))
    results = [bench.gate.execute(Call("c", "probe", {}), ANN) for _ in range(2)]
    for result in results:
        assert not result.ok
        assert result.code == "tool_failed"
        assert result.text.startswith("Error (tool_failed): ")
    assert bench.events == [("intent", ""), ("result", "tool_failed"), ("replayed", "tool_failed")]


@pytest.mark.case("R37")
@pytest.mark.parametrize("bounded", [True, False])
def test_whatever_a_tool_raises_every_call_of_the_turn_has_its_one_result(bounded: bool) -> None:
    class Odd(BaseException):
        pass

    def raises(what: str) -> None:
        raise {"odd": Odd, "exit": SystemExit, "stop": StopIteration, "value": ValueError}[what]("text")

    bench = Bench((tool(raises, bounded=bounded, what=TEXT),))
    names = ["odd", "exit", "stop", "value"]
    results = execute_all(bench.gate, [Call(name, "probe", {"what": name}) for name in names], ANN)
    assert [(result.call_id, result.code) for result in results] == [(name, "tool_failed") for name in names]


@pytest.mark.case("R38")
@pytest.mark.parametrize("bounded", [True, False])
def test_what_an_exception_says_stays_with_the_operator(bounded: bool) -> None:
    def fails() -> None:
        raise RuntimeError("cannot connect to postgres://u:p@h/db from /srv/app")

    bench = Bench((tool(fails, bounded=bounded),))
    result = bench.call({})
    assert not any(part in result.text for part in ("postgres", "u:p", "/srv"))
    assert "postgres://u:p@h/db" in bench.lines[-1].detail


@pytest.mark.case("R39")
def test_no_write_lands_after_its_timeout_and_it_is_not_tried_again(tmp_path: Path) -> None:
    started, landed = tmp_path / "started", tmp_path / "landed"
    begin, land = counter(started), counter(landed)

    def slow() -> None:
        begin()
        threading.Event().wait(QUICK.call_seconds + 0.3)
        land()

    bench = Bench((tool(slow, effect=Effect.WRITE, bounded=False),), settings={"limits": QUICK})
    assert bench.gate.execute(Call("c", "probe", {}), ANN).code == "outcome_unknown"
    threading.Event().wait(0.6)
    assert (count(started), count(landed)) == (1, 0)
    assert bench.gate.execute(Call("c", "probe", {}), ANN).code == "outcome_unknown"
    assert count(started) == 1


@pytest.mark.case("R43")
def test_an_effect_that_then_raises_is_not_repeated_by_asking_again(tmp_path: Path) -> None:
    effect = counter(tmp_path / "effects")

    def acts() -> None:
        effect()
        raise ConnectionError("lost")

    bench = Bench((tool(acts, effect=Effect.WRITE),))
    codes = [bench.gate.execute(Call("c", "probe", {}), ANN).code for _ in range(3)]
    assert codes == ["outcome_unknown"] * 3
    assert count(tmp_path / "effects") == 1


@pytest.mark.case("R44")
def test_an_approval_is_found_by_its_call_and_never_by_its_place() -> None:
    sent: list[str] = []
    gated = tool(lambda to: sent.append(to), "gated", Effect.WRITE, to=TEXT)
    bench = Bench((gated,), GATED)
    first = bench.gate.execute(Call("c1", "gated", {"to": "reviewed-value"}), ANN)
    asked = bench.gate.approvals.get(first.approval)
    bench.gate.approvals.decide(asked.id, "approved", "Ann", asked.digest)
    assert bench.gate.execute(Call("c1", "gated", {"to": "changed-value"}), ANN).code == "approval_required"
    assert bench.gate.execute(Call("c2", "gated", {"to": "reviewed-value"}), ANN).code == "approval_required"
    assert sent == []


@pytest.mark.case("R45")
def test_of_a_turn_with_one_call_that_waits_the_others_are_kept_and_it_resumes_once() -> None:
    ran: list[str] = []

    def act(to: str) -> str:
        ran.append(to)
        return to

    tools = (tool(act, "open", Effect.WRITE, to=TEXT), tool(act, "gated", Effect.WRITE, to=TEXT))
    bench = Bench(tools, GATED)
    calls = [Call("1", "open", {"to": "a"}), Call("2", "gated", {"to": "b"}), Call("3", "open", {"to": "c"})]
    first = execute_all(bench.gate, calls, ANN)
    assert [result.code for result in first] == ["ok", "approval_required", "ok"]
    asked = bench.gate.approvals.get(first[1].approval)
    bench.gate.approvals.decide(asked.id, "approved", "Ann", asked.digest)
    for _ in range(2):
        resumed = execute_all(bench.gate, calls, ANN)
        assert [result.text for result in resumed] == ["a", "b", "c"]
    assert sorted(ran) == ["a", "b", "c"]


@pytest.mark.case("R50")
def test_a_limit_is_taken_before_the_calls_of_a_turn_start_and_not_after_them() -> None:
    bench = Bench(settings={"budgets": Budgets(Cap(calls=6), tools={"probe": Cap(calls=100)})})
    results = execute_all(bench.gate, [Call(str(n), "probe", {}) for n in range(8)], ANN)
    assert sorted(result.code for result in results) == ["budget_exceeded"] * 2 + ["ok"] * 6
    assert len(bench.ran) == 6


@pytest.mark.case("E15")
@pytest.mark.parametrize("id", ["", "x" * 1_000_000, "a\nb", "a\0b", "\ud800", "\u202e"])
def test_an_id_of_odd_shape_is_refused_before_anything_is_done(id: str) -> None:
    bench = Bench()
    for call, context in (
        (Call(id, "probe", {}), ANN),
        (Call("c", "probe", {}), replace(ANN, run_id=id)),
        (Call("c", "probe", {}), replace(ANN, principal=replace(ANN.principal, id=id))),
    ):
        with pytest.raises(BadInput):
            bench.gate.execute(call, context)
    assert (bench.ran, bench.lines) == ([], [])


@pytest.mark.case("E15")
def test_a_key_in_the_arguments_is_only_an_argument() -> None:
    keys: list[str] = []
    keyed = tool(
        lambda context, key="": keys.append(context.key),
        effect=Effect.WRITE,
        declared={"context_parameter": "context", "keyed": True},
        key=TEXT,
    )
    bench = Bench((keyed,))
    for id, key in (("c1", "mine"), ("c2", "mine"), ("c3", "other")):
        assert bench.gate.execute(Call(id, "probe", {"key": key}), ANN).ok
    assert len(set(keys)) == 3
    assert not {"mine", "other"} & set(keys)


def test_the_clock_on_the_wall_orders_nothing(tmp_path: Path) -> None:
    clock = FakeClock(datetime(2024, 5, 1, tzinfo=UTC))
    bench = Bench(settings={"clock": clock})
    for year in (2024, 1970, 2039):
        clock.set(datetime(year, 1, 1, tzinfo=UTC))
        assert bench.call({}).ok
    assert [line.call for line in bench.lines if line.event == "intent"] == ["c1", "c2", "c3"]


def test_a_gate_works_the_same_for_threads_that_come_and_go() -> None:
    bench = Bench((tool(lambda: os.getpid(), bounded=False),))
    texts: list[Any] = []
    for _ in range(3):
        worker = threading.Thread(
            target=lambda: texts.append(bench.gate.execute(Call(str(len(texts)), "probe", {}), ANN))
        )
        worker.start()
        worker.join(30)
    assert [result.code for result in texts] == ["ok"] * 3
