"""Killed with -9 at every step of a call, on both engines: at most one effect a key, and what nobody can know is called
unknown."""

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from children import Child, Fuse, Stepped
from gate_bench import ANN, Allow, tool
from postgres_server import Server

from toolwise.core import jsonio
from toolwise.core.clock import Clock, FakeClock, SystemClock
from toolwise.core.limits import LIMITS
from toolwise.core.types import Call, Effect, Result, ToolContext
from toolwise.gate.gate import Gate
from toolwise.gate.ledger import Entry
from toolwise.gate.policy import Decision
from toolwise.gate.state import open_state
from toolwise.tools.registry import Registry

CALL = Call("c1", "probe", {})
PRODUCTION = {"fsync": "on", "full_page_writes": "on"}


class Asks(Allow):
    def decide(self, *asked: Any) -> Decision:
        return Decision("ask", "a person looks")


class Effects:
    """A file to which a tool adds `<key>`: the effect is there with the first character."""

    def __init__(self, path: Path, fuse: Fuse) -> None:
        self._path = path
        self._fuse = fuse
        path.touch()

    def have(self, context: ToolContext) -> str:
        self._fuse.step("the tool starts")
        self._write(f"<{context.key}")
        self._fuse.step("the effect is half done")
        self._write(">")
        self._fuse.step("the effect is done")
        return f"done: {context.key}"

    def of(self, id: str) -> int:
        """How many effects the call with this id had."""
        return self._path.read_text().count(f"<{Entry('ann', 'run-1', id, 'probe', '').key}")

    def _write(self, text: str) -> None:
        end = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        os.write(end, text.encode())
        os.fsync(end)
        os.close(end)


class World:
    """One write tool over one state, which processes open, use, and die on."""

    clock: Clock = SystemClock()

    def __init__(self, where: str, folder: Path, policy: Any = None, *, bounded: bool = True, **declared: Any) -> None:
        self.fuse = Fuse()
        self.effects = Effects(folder / "effects", self.fuse)
        self._where = where
        self._policy = policy or Allow()
        probe = tool(self.effects.have, effect=Effect.WRITE, bounded=bounded, declared=declared)
        self._tool = replace(probe, context_parameter="context")

    def gate(self) -> Gate:
        state = Stepped(open_state(self._where), self.fuse.step)
        limits = replace(LIMITS, warm_children=1)
        return Gate(Registry([self._tool]), self._policy, state, limits=limits, clock=self.clock)

    def call(self, gate: Gate, id: str) -> Result:
        """The call; where a person must confirm it, it is confirmed and made again."""
        result = gate.execute(Call(id, "probe", {}), ANN)
        if not result.approval:
            return result
        asked = gate.approvals.get(result.approval)
        gate.approvals.decide(asked.id, "approved", "Ann", asked.digest)
        return gate.execute(Call(id, "probe", {}), ANN)

    def dies(self, id: str, at: int | str) -> dict[str, Any] | None:
        """The call in a process that dies at that step; the result if it came to its end before."""

        def work() -> dict[str, Any]:
            gate = self.gate()
            self.fuse.light(at)
            result = self.call(gate, id)
            gate.close()
            return asdict(result)

        answer: dict[str, Any] | None = Child(work).answer()
        self.fuse.out()
        return answer


def crashes(world: World, seen: Callable[[Gate, str], tuple[Any, ...]] = lambda gate, id: ()) -> list[tuple[Any, ...]]:
    """A crash at every step, each of another call, and then the same call again by somebody else: what `seen` says of
    the state, effects before, code, effects after. Each kind once, in the order in which they come."""
    told: list[tuple[Any, ...]] = []
    gate, other = world.gate(), world.gate()
    for at in itertools.count(1):
        id = f"c{at}"
        ended = world.dies(id, at)
        state, before = seen(gate, id), world.effects.of(id)
        result = world.call(gate, id)
        kind = (*state, before, result.code, world.effects.of(id))
        told += [kind] if kind not in told else []
        assert world.call(gate, id).code == result.code
        if result.ok:
            assert jsonio.dumps(asdict(world.call(other, id))) == jsonio.dumps(asdict(result))
        if ended is not None:
            assert ended == jsonio.loads(jsonio.dumps(asdict(result)))
            assert gate.audit.verify() is not None
            return told
    raise AssertionError


@pytest.mark.case("E4")
@pytest.mark.case("E5")
@pytest.mark.case("E6")
@pytest.mark.case("E7")
@pytest.mark.parametrize("bounded", [True, False])
def test_a_plain_write_that_crashed_at_any_step_has_at_most_one_effect(
    where: str, tmp_path: Path, bounded: bool
) -> None:
    assert crashes(World(where, tmp_path, bounded=bounded)) == [
        (0, "ok", 1),  # before the claim: nothing had happened
        (0, "outcome_unknown", 0),  # behind the claim: nobody can know
        (1, "outcome_unknown", 1),  # behind the effect
        (1, "ok", 1),  # behind the record: it is given again
    ]


@pytest.mark.case("E6")
@pytest.mark.parametrize("declared", ["idempotent", "keyed"])
def test_a_write_that_may_be_repeated_runs_again_under_the_same_key_until_it_is_recorded(
    where: str, tmp_path: Path, declared: str
) -> None:
    """The system behind the tool sees one key, however often it is asked."""
    assert crashes(World(where, tmp_path, **{declared: True})) == [(0, "ok", 1), (1, "ok", 2), (1, "ok", 1)]


@pytest.mark.case("G5")
def test_an_approval_survives_a_crash_at_any_step_and_is_used_once(where: str, tmp_path: Path) -> None:
    def approvals(gate: Gate, id: str) -> tuple[str, ...]:
        rows = gate.approvals._state.read("SELECT state FROM approvals WHERE call = ?", (id,))
        return (",".join(state for (state,) in rows),)

    world = World(where, tmp_path, Asks())
    assert crashes(world, approvals) == [
        ("", 0, "ok", 1),
        ("pending", 0, "ok", 1),  # the same question still waits
        ("approved", 0, "ok", 1),
        ("used", 0, "outcome_unknown", 0),
        ("used", 1, "outcome_unknown", 1),
        ("used", 1, "ok", 1),
    ]


@pytest.mark.case("D11")
def test_an_approval_that_expired_while_nobody_was_there_approves_nothing(where: str, tmp_path: Path) -> None:
    world = World(where, tmp_path, Asks())
    world.clock = FakeClock(datetime(2024, 5, 1, tzinfo=UTC))

    def asks_decides_and_dies() -> None:
        gate = world.gate()
        asked = gate.approvals.get(gate.execute(CALL, ANN).approval)
        gate.approvals.decide(asked.id, "approved", "Ann", asked.digest)
        os.kill(os.getpid(), signal.SIGKILL)

    assert Child(asks_decides_and_dies).answer() is None
    world.clock.advance(LIMITS.approval_seconds + 1)
    gate = world.gate()
    assert [gate.execute(CALL, ANN).code for _ in range(2)] == ["approval_expired", "approval_required"]
    assert world.effects.of("c1") == 0
    assert world.call(gate, "c1").ok


@pytest.mark.case("E12")
def test_a_call_that_kills_every_process_is_set_aside_while_others_go_on(where: str, tmp_path: Path) -> None:
    world = World(where, tmp_path, keyed=True)
    for number in range(1, LIMITS.attempts + 1):
        assert world.dies("deadly", "the effect is half done") is None
        assert world.effects.of("deadly") == number
        assert world.call(world.gate(), f"other-{number}").ok
    gate = world.gate()
    assert [world.call(gate, "deadly").code for _ in range(3)] == ["outcome_unknown"] * 3
    assert world.effects.of("deadly") == LIMITS.attempts
    assert [record.state for record in gate.ledger.records() if record.call == "deadly"] == ["dead"]


@pytest.fixture
def production(server: Server) -> Iterator[Server]:
    """The server with the settings that PostgreSQL has by itself: a commit waits for the disk."""
    server.crash()
    server.start(**PRODUCTION)
    yield server
    server.crash()
    server.start()


def test_what_a_server_acknowledged_survives_its_crash(production: Server, tmp_path: Path) -> None:
    world = World(production.address(), tmp_path)
    gate = world.gate()
    done = world.call(gate, "before")
    production.crash()
    assert world.call(gate, "during").code == "storage_unavailable"
    production.start(**PRODUCTION)
    assert [world.call(gate, id).ok for id in ("during", "after")] == [True, True]
    assert world.call(world.gate(), "before") == done
    assert [world.effects.of(id) for id in ("before", "during", "after")] == [1, 1, 1]
    assert gate.audit.verify() is not None
