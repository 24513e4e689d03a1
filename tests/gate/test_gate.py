"""Calls through the gate: one result each, one line in the log for each refusal, and nothing runs that must not."""

import asyncio
import hashlib
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from gate_bench import ANN, TEXT, Allow, Bench, tool

from toolwise.core.clock import FakeClock
from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS
from toolwise.core.types import (
    Call,
    Effect,
    Integrity,
    Labels,
    Principal,
    Tool,
    ToolContext,
)
from toolwise.gate.policy import OFFLINE, CedarPolicy, Decision
from toolwise.tools.calculator import CALCULATOR
from toolwise.tools.calendar import CALENDAR

# The way of a call


def test_a_call_of_each_form_runs_once_and_leaves_an_intent_and_a_result() -> None:
    bench = Bench()
    assert bench.call({"to": "bob"}).text == "null"
    assert bench.json('{"name":"probe","arguments":{"to":"eve"}}').ok
    assert bench.inline('probe(to="zoe")').ok
    assert bench.ran == [{"to": "bob"}, {"to": "eve"}, {"to": "zoe"}]
    assert bench.events == [("intent", ""), ("result", "ok")] * 3
    first, second = bench.lines[:2]
    assert (first.tool, first.effect, first.principal, first.run, first.call) == ("probe", "pure", "ann", "run-1", "c1")
    assert (first.arguments, first.policy) == ('{"to":"bob"}', "test")
    assert (second.digest, second.fingerprint) == (hashlib.sha256(b"null").hexdigest(), first.fingerprint)


def test_a_tool_that_closes_over_its_test_runs_in_a_child(tmp_path: Path) -> None:
    table = {"a": 1}
    bench = Bench((tool(lambda key: table[key], bounded=False, key=TEXT),))
    assert bench.call({"key": "a"}).text == "1"


def test_text_is_given_as_it_is_and_any_other_value_as_canonical_json() -> None:
    for value, text in (("né\n", "né\n"), ({"b": [1, None], "a": "né"}, '{"a":"né","b":[1,null]}'), (2.5, "2.5")):
        assert Bench((tool(lambda value=value: value),)).call({}).text == text


def test_arguments_are_copied_before_the_policy_sees_them() -> None:
    given = {"to": "bob"}

    class Late(Allow):
        def decide(self, principal: Principal, tool: Tool, arguments: Mapping[str, Any], labels: Labels) -> Decision:
            given["to"] = "eve"
            return super().decide(principal, tool, arguments, labels)

    bench = Bench(policy=Late())
    bench.call(given)
    assert bench.ran == [{"to": "bob"}]


def test_a_tool_is_told_the_day_of_the_document_or_else_of_the_clock() -> None:
    clock = FakeClock(datetime(2024, 5, 1, 12, tzinfo=UTC))
    bench = Bench((CALENDAR,), settings={"clock": clock})
    assert "2023" in bench.call({}, "Calendar", replace(ANN, today="2023-01-30")).text
    assert "May 1, 2024" in bench.call({}, "Calendar").text


def test_only_a_bounded_pure_tool_gives_a_trusted_result() -> None:
    for effect, bounded, label in (
        (Effect.PURE, True, Integrity.TRUSTED),
        (Effect.PURE, False, Integrity.UNTRUSTED),
        (Effect.READ, True, Integrity.UNTRUSTED),
    ):
        assert Bench((tool(lambda: 1, effect=effect, bounded=bounded),)).call({}).labels.integrity is label


def test_an_id_that_is_none_is_the_callers_mistake() -> None:
    for identity in ("", "x" * (LIMITS.id_chars + 1), "\ud800"):
        with pytest.raises(BadInput):
            Bench().gate.execute(Call(identity, "probe", {}), ANN)


# Parsing and arguments


def probe(arguments: str) -> str:
    return f'{{"name":"probe","arguments":{arguments}}}'


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param(probe('{"to":"bob","to":"eve"}'), "malformed_call", marks=pytest.mark.case("A1")),
        pytest.param('{"name":"probe","arguments":{},"name":"probe"}', "malformed_call", marks=pytest.mark.case("A2")),
        pytest.param(probe('{"amount":NaN}'), "malformed_call", marks=pytest.mark.case("A3")),
        pytest.param(probe('{"amount":Infinity}'), "malformed_call", marks=pytest.mark.case("A3")),
        pytest.param(probe('{"amount":-Infinity}'), "malformed_call", marks=pytest.mark.case("A3")),
        pytest.param(probe('{"amount":1e400}'), "malformed_call", marks=pytest.mark.case("A4")),
        pytest.param(probe('{"amount":-1e400}'), "malformed_call", marks=pytest.mark.case("A4")),
        pytest.param(probe('{"amount":' + "1" * 5000 + "}"), "malformed_call", marks=pytest.mark.case("A5")),
        pytest.param(probe('{"to":' + "[" * 60_000), "malformed_call", marks=pytest.mark.case("A6")),
        pytest.param(probe('{"to":"\\ud800"}'), "invalid_arguments", marks=pytest.mark.case("A7")),
        pytest.param(probe('{"to":"a\\u0000b"}'), "invalid_arguments", marks=pytest.mark.case("A8")),
        pytest.param(probe('{"amount":"5"}'), "invalid_arguments", marks=pytest.mark.case("A14")),
        pytest.param(probe('{"amount":true}'), "invalid_arguments", marks=pytest.mark.case("A14")),
        ('{"name":"probe"}', "malformed_call"),
        ('{"name":"probe","arguments":{},"id":"x"}', "malformed_call"),
        ('{"name":"probe","arguments":"{}"}', "malformed_call"),
        ('{"name":1,"arguments":{}}', "malformed_call"),
        ('["probe",{}]', "malformed_call"),
        ("", "malformed_call"),
        ('{"name":"probe","arguments":{}}{"name":"probe","arguments":{}}', "malformed_call"),
        (" " * (LIMITS.argument_bytes + 1), "truncated_call"),
    ],
)
def test_what_is_not_exactly_one_good_call_is_refused(text: str, code: str) -> None:
    bench = Bench()
    bench.refuses(bench.json(text), code)


@pytest.mark.case("A11")
@pytest.mark.parametrize("form", ["inline", "json"])
def test_a_call_that_was_not_closed_is_never_closed_for_the_model(form: str) -> None:
    bench = Bench()
    bench.refuses(getattr(bench, form)('{"name":"probe","arguments":{"to":"b', complete=False), "truncated_call")
    bench = Bench()
    bench.refuses(getattr(bench, form)('{"name":"probe","arguments":{}}', complete=False), "truncated_call")


@pytest.mark.case("A22")
@pytest.mark.parametrize("complete", [True, False])
def test_a_call_without_end_counts_as_never_closed(complete: bool) -> None:
    bench = Bench()
    bench.refuses(bench.inline("probe(1+1" + "x" * 1_000_000, complete=complete), "truncated_call")
    assert len(bench.lines[0].arguments) <= LIMITS.audit_chars


@pytest.mark.case("A15")
def test_wrong_arguments_are_named_but_only_three_of_them() -> None:
    bench = Bench((tool(lambda **given: bench.ran.append(given), required=("to", "subject"), to=TEXT, subject=TEXT),))
    bench.refuses(result := bench.call({"one": 1}), "invalid_arguments")
    assert all(name in result.text for name in ("one", "to", "subject"))
    for arguments in ({f"n{i}": i for i in range(5)}, {f"n{i}": i for i in range(10_000)}):
        assert Bench().call(arguments).code == "invalid_arguments"


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object(), "\ud800", b"x", 10**400])
def test_arguments_from_python_that_are_no_json_are_refused(value: Any) -> None:
    bench = Bench()
    bench.refuses(bench.call({"to": value}), "invalid_arguments")


@pytest.mark.case("A17")
@pytest.mark.parametrize("name", ["probe\n", "PROBE", " probe", "prоbe", "ｐｒｏｂｅ", "", "\ud800", "x" * 100_000])
def test_a_name_is_compared_byte_for_byte(name: str) -> None:
    bench = Bench()
    bench.refuses(bench.call({}, name), "unknown_tool")


@pytest.mark.case("A21")
def test_a_call_inside_a_call_is_text() -> None:
    bench = Bench((tool(lambda text: text, "A", required=("text",), text=TEXT), tool(lambda: 1 // 0, "B")))
    assert bench.inline("A([B(1)])").text == "[B(1)]"
    assert [line.tool for line in bench.lines] == ["A", "A"]


@pytest.mark.case("B7")
def test_the_calculator_gives_the_same_on_every_thread() -> None:
    bench = Bench((CALCULATOR,))
    results: list[str] = []

    def call() -> None:
        results.append(bench.inline("Calculator(18 / 24)").text)

    async def task() -> None:
        call()

    call()
    asyncio.run(task())
    worker = threading.Thread(target=call)
    worker.start()
    worker.join(10)
    assert results == ["0.75"] * 3


# Who may


class Raises:
    def decide(self, *_: Any) -> Decision:
        raise RuntimeError("policy store is down")


class Panics:
    def decide(self, *_: Any) -> Decision:
        class PanicException(BaseException):
            """What an engine written in Rust raises."""

        raise PanicException("called `Option::unwrap()` on a `None` value")


class Nonsense:
    def decide(self, *_: Any) -> Any:
        return True


@pytest.mark.case("G4")
@pytest.mark.parametrize(
    "policy", [None, CedarPolicy.from_text(""), CedarPolicy.from_text("permit!"), Raises(), Panics(), Nonsense()]
)
def test_without_a_policy_that_allows_it_nothing_runs(policy: Any) -> None:
    bench = Bench(policy=policy)
    bench.refuses(bench.call({}), "denied")
    assert bench.lines[0].policy


def test_a_call_that_a_person_must_confirm_does_not_run() -> None:
    bench = Bench(policy=CedarPolicy.from_text('permit (principal, action == Action::"ask", resource);'))
    bench.refuses(bench.call({}), "approval_required")


@pytest.mark.case("G11")
@pytest.mark.parametrize("name", ["user", "principal", "context"])
def test_who_asks_comes_from_the_session_and_never_from_arguments(name: str) -> None:
    told: list[ToolContext] = []
    takes = replace(tool(lambda context: told.append(context)), context_parameter="context")
    bench = Bench((takes,))
    bench.refuses(bench.call({name: "root"}), "invalid_arguments")
    assert told == []
    open_ended = replace(takes, parameters={"type": "object"}, run=lambda context, **rest: told.append(context))
    bench = Bench((open_ended,))
    assert bench.call({name: "root"}).ok
    assert [context.principal.id for context in told] == ["ann"]
    assert [principal.id for principal, *_ in bench.policy.asked] == ["ann"]


@pytest.mark.case("K7")
def test_offline_a_tool_with_an_effect_is_denied() -> None:
    bench = Bench(policy=CedarPolicy.from_text(OFFLINE))
    assert bench.call({}).ok
    writes = tool(lambda **given: bench.ran.append(given), effect=Effect.WRITE)
    bench = Bench((writes,), policy=CedarPolicy.from_text(OFFLINE))
    bench.refuses(bench.call({}), "denied")
