"""The n-th step of the state fails, for every n: one result a call, no effect without an intent, none twice, what is
told is true, and once the fault is gone the gate works again."""

import errno
import itertools
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from children import Stepped
from gate_bench import ANN, Allow, tool
from postgres_server import Server

from toolwise.core.errors import StorageUnavailable
from toolwise.core.types import Call, CallContext, Effect, Result, ToolContext
from toolwise.gate.audit import Line, read_rows
from toolwise.gate.budget import Budgets, Cap
from toolwise.gate.gate import Gate
from toolwise.gate.ledger import Entry
from toolwise.gate.policy import Decision
from toolwise.gate.state import SqliteState, State, open_state
from toolwise.tools.registry import Registry

SECONDS = 1_000_000.0


class Asks(Allow):
    """A person confirms what `wire` does; the rest is allowed."""

    def decide(self, *asked: Any) -> Decision:
        super().decide(*asked)
        return Decision("ask" if asked[1].name == "wire" else "allow", "test")


class Fault:
    """Called at every step; at the one with the number `at`, and with `stays` at every later one, it does `harm`."""

    def __init__(self, harm: Callable[[], None], only: str = "", *, stays: bool = False) -> None:
        self._harm = harm
        self._only = only
        self._stays = stays
        self.steps = self.at = 0

    def __call__(self, name: str) -> None:
        if not self.at or (self._only and name != self._only):
            return
        self.steps += 1
        if self.steps == self.at or (self._stays and self.steps > self.at):
            self._harm()

    def arm(self, at: int) -> None:
        self.steps, self.at = 0, at

    def heal(self) -> bool:
        """Whether it had struck."""
        struck, self.at = self.steps >= self.at, 0
        return struck


class Play:
    """The same calls again and again, each time in a run of their own: some compute or look, some write."""

    NAMES = ("sends", "adds", "looks", "pays", "wire")

    def __init__(self, state: State) -> None:
        self.state = state
        self.effects: list[str] = []
        self.gate = Gate(Registry(self._tools()), Asks(), state, budgets=Budgets(Cap(100, SECONDS), state=state))

    def _tools(self) -> list[Any]:
        def writes(context: ToolContext) -> str:
            self.effects.append(context.key)
            return context.key

        def write(name: str, **declared: Any) -> Any:
            return replace(tool(writes, name, Effect.WRITE, declared=declared), context_parameter="context")

        looks = tool(lambda: "a page", "looks", Effect.READ)
        return [tool(lambda: 2, "adds"), looks, write("sends"), write("pays", keyed=True), write("wire")]

    def call(self, run: CallContext, name: str) -> Result:
        return self.gate.execute(Call(name, name, {}), run)

    def calls(self, run: CallContext) -> dict[str, Result]:
        results = {name: self.call(run, name) for name in self.NAMES}
        if results["wire"].code == "approval_required":
            try:
                self.approve(results["wire"])
            except StorageUnavailable:
                return results
            results["wire"] = self.call(run, "wire")
        return results

    def approve(self, result: Result) -> None:
        asked = self.gate.approvals.get(result.approval)
        if asked.state == "pending":
            self.gate.approvals.decide(asked.id, "approved", "Ann", asked.digest)

    def happened(self, run: CallContext, name: str) -> int:
        """How many effects the call had."""
        return self.effects.count(Entry(run.principal.id, run.run_id, name, name, "").key)

    def lines(self, run: CallContext) -> list[Line]:
        self.gate.audit.flush()
        return [row.line for row in read_rows(self.state, equal={"run": run.run_id})]


def judge(play: Play, run: CallContext, told: dict[str, Result], n: int) -> None:
    """What was told while the state failed was true, and goes on being true once it works."""
    happened = {name: play.happened(run, name) for name in told}
    play.calls(run)  # the first of them writes down what had to wait
    again = play.calls(run)
    lines = play.lines(run)
    for name, first in told.items():
        where = (n, name, first.code, again[name].code)
        if name in ("adds", "looks"):
            assert first.code in ("ok", "storage_unavailable"), where
            assert again[name].ok, where
            continue
        assert first.code in ("ok", "storage_unavailable", "outcome_unknown", "approval_required"), where
        assert happened[name] == 1 if first.ok else happened[name] == 0 or first.code == "outcome_unknown", where
        assert again[name] == first if first.ok else again[name].code in ("ok", "outcome_unknown"), where
        events = [line.event for line in lines if line.call == name]
        assert events.count("intent") >= events.count("result") == play.happened(run, name) <= 1, where
        assert play.happened(run, name) == again[name].ok, where
    assert play.gate.execute(Call("new", "sends", {}), run).ok
    counts = play.state.read("SELECT unit, used FROM budgets WHERE scope LIKE ?", (f"%{run.run_id}",))
    used = dict(counts)
    assert 5 <= used["calls"] <= 20
    assert 0 <= used["seconds"] <= SECONDS


def every_step_fails(play: Play, fault: Fault, stride: int = 1) -> int:
    """Until the calls end without meeting the fault; the number of the last step that they met it at."""
    for n in itertools.count(1, stride):
        run = replace(ANN, run_id=f"run-{n}")
        fault.arm(n)
        told = play.calls(run)
        if not fault.heal():
            assert all(result.ok for result in told.values())
            assert play.gate.audit.verify() is not None
            return n - stride
        judge(play, run, told, n)
    raise AssertionError


def fails() -> None:
    raise StorageUnavailable("The disk failed.")


@pytest.mark.case("F9")
@pytest.mark.parametrize("stays", [False, True])
@pytest.mark.parametrize("only", ["", "committed"])
def test_whichever_step_fails_the_promises_hold(stays: bool, only: str) -> None:
    fault = Fault(fails, only, stays=stays)
    assert every_step_fails(Play(Stepped(open_state(":memory:"), fault)), fault) > 10


class Sick:
    """An SQLite connection that calls `step` before every statement, those that the state makes by itself included."""

    def __init__(self, connection: sqlite3.Connection, step: Callable[[str], None]) -> None:
        self._connection = connection
        self._step = step

    def execute(self, statement: str, *values: Any) -> Any:
        self._step(statement.split()[0])
        return self._connection.execute(statement, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@pytest.mark.case("F9")
@pytest.mark.parametrize(
    ("error", "stays"),
    [
        (sqlite3.OperationalError("disk I/O error"), False),
        (OSError(errno.EIO, "Input/output error"), False),
        (OSError(errno.ENOSPC, "No space left on device"), True),
    ],
)
def test_whichever_statement_of_sqlite_fails_the_promises_hold(error: Exception, stays: bool) -> None:
    def harm() -> None:
        raise error

    fault = Fault(harm, stays=stays)
    state = SqliteState(":memory:")
    state.connection = Sick(state.connection, fault)  # type: ignore[assignment]
    assert every_step_fails(Play(state), fault) > 100


@pytest.mark.case("F2")
@pytest.mark.case("F9")
def test_whenever_the_disk_fills_up_the_promises_hold(tmp_path: Path) -> None:
    state = SqliteState(tmp_path / "state.db")

    def pages(most: int) -> None:
        state.connection.execute(f"PRAGMA max_page_count = {most}")

    class Filled(Fault):
        def heal(self) -> bool:
            pages(1_000_000)
            return super().heal()

    fault = Filled(lambda: pages(1))  # no page more than there are
    assert every_step_fails(Play(Stepped(state, fault)), fault, stride=7) > 10


@pytest.mark.case("F9")
@pytest.mark.parametrize(("only", "stride"), [("commit", 1), ("committed", 3), ("", 11)])
def test_whenever_a_server_loses_its_connections_the_promises_hold(server: Server, only: str, stride: int) -> None:
    fault = Fault(fails if only == "committed" else server.drop_connections, only)
    state = open_state(server.address())
    assert every_step_fails(Play(Stepped(state, fault)), fault, stride) > 10
    state.close()
