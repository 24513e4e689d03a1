"""The suites that ship with the gate: our own parts pass them, and each promise that is broken is found."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolwise.core.errors import Conflict
from toolwise.core.types import Tool, ToolContext
from toolwise.gate import approval, audit, budget, ledger, rates
from toolwise.gate.approval import Approval, Approvals
from toolwise.gate.audit import Audit, Line
from toolwise.gate.budget import StateCounts
from toolwise.gate.isolate import Runner
from toolwise.gate.ledger import Durable
from toolwise.gate.outcome import Outcome, attempt
from toolwise.gate.parts_check import check_parts
from toolwise.gate.runner_check import _SMALL, check_runner
from toolwise.gate.state import Sql, open_state


def test_the_parts_of_the_gate_keep_their_promises_on_every_engine(where: str) -> None:
    assert len(check_parts(lambda: open_state(where))) == 12


def first_found(self: Approvals, line: Line, bound: Any, now: float, sql: Sql) -> Approval | None:
    rows = sql(approval._OF_CALL, (line.principal, line.run, line.call))
    return Approval(*rows[0]) if rows else None


def apart(self: Audit, line: Line, also: Callable[[Sql], None] | None = None, *, durable: bool = False) -> None:
    failed = None
    with self._state.transaction() as sql:
        try:
            if also is not None:
                also(sql)
        except Conflict as error:
            failed = error
    if failed is not None:
        raise failed
    APPEND(self, line)


APPEND, ENCODED, CHAINED = Audit.append, ledger._encoded, audit.chained


@pytest.mark.parametrize(
    ("promise", "part", "name", "broken"),
    [
        ("a call that began begins nowhere else", Durable, "_answer", lambda *_: None),
        ("a result comes back as it was", ledger, "_encoded", lambda result: ENCODED(replace(result, text="cut"))),
        ("what a process that ended was executing is unknown", Durable, "_abandoned", lambda *_: False),
        ("an approval is used once", Approvals, "use", lambda *_: None),
        ("an approval approves nothing else", Approvals, "_found", first_found),
        ("an approval expires", Approvals, "_now", lambda _: 0.0),
        ("a budget is not overdrawn", budget, "_over", lambda *_: False),
        ("what was not used is given back", StateCounts, "settle", lambda *_: None),
        ("a rate is not passed", rates.StateCounts, "hit", lambda *_: True),
        ("two logs are one chain", audit, "_LAST", "SELECT 0, hash FROM audit LIMIT 1"),
        ("what is written with a line stands or falls with it", Audit, "append", apart),
        ("a change of the log is seen", audit, "chained", lambda hash, line: CHAINED(hash, line._replace(code=""))),
    ],
)
def test_a_part_that_breaks_a_promise_is_found(
    promise: str, part: Any, name: str, broken: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part, name, broken)
    with pytest.raises(AssertionError, match=promise):
        check_parts(lambda: open_state(tmp_path / "state.db"))


# Runners


def test_the_runner_of_the_gate_keeps_its_promises() -> None:
    assert len(check_runner(Runner)) == 11


class Changed(Runner):
    """Runs as ours does, and tells something else."""

    changes: Callable[[Outcome], Outcome]

    def run(self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        return type(self).changes(super().run(tool, arguments, context))


class Here(Runner):
    """Bounds nothing, as a gate without isolation would."""

    def run(self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        return attempt(tool, arguments, context, _SMALL)


def talks(outcome: Outcome) -> Outcome:
    return replace(outcome, text=outcome.text + outcome.detail)


@pytest.mark.parametrize(
    ("changes", "promises"),
    [
        (talks, ["what an exception says stays with the operator"]),
        (lambda outcome: replace(outcome, total_bytes=len(outcome.text)), ["a long answer is cut"]),
        (
            lambda outcome: replace(outcome, answered=True),
            ["a call ends at its deadline", "a tool whose process ends has not answered"],
        ),
        (
            lambda outcome: replace(outcome, text=""),
            ["a tool gets its arguments", "after all of that the next call is answered"],
        ),
    ],
)
def test_a_runner_that_tells_something_else_is_found(changes: Any, promises: list[str]) -> None:
    runner = type("Tells", (Changed,), {"changes": staticmethod(changes)})
    with pytest.raises(AssertionError) as raised:
        check_runner(runner)
    assert all(promise in str(raised.value) for promise in promises)


def test_a_runner_that_bounds_nothing_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError) as raised:
        check_runner(Here)
    assert len(capsys.readouterr().out) > _SMALL.result_bytes
    for promise in (
        "a call ends at its deadline",
        "a tool whose process ends has not answered",
        "a tool that prints without end meets its limit",
        "a tool that takes memory without end meets its limit",
        "what a call started ends with its answer",
        "what a call started ends at its deadline",
        "a call leaves nothing for the next one",
    ):
        assert promise in str(raised.value)
