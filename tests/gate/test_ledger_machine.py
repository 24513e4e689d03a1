"""The ledger under every order of events: claims, effects, ends, crashes, leases, operators, other users."""

import itertools
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import machines
from toolwise.core.clock import FakeClock
from toolwise.core.errors import BadInput, Conflict, InProgress, OutcomeUnknown, ToolwiseError
from toolwise.core.limits import LIMITS
from toolwise.core.types import Result
from toolwise.gate.ledger import Durable, Entry
from toolwise.gate.state import State

SMALL = replace(LIMITS, attempts=2, lease_seconds=100.0)

# Two users, two calls each: `plain` must not run twice, `again` may. Each key is used with two sets of arguments.
CALLS = [(user, call) for user in ("ann", "eve") for call in ("plain", "again")]


class RolledBack(Exception):
    pass


class Process:
    """One process: here its end is seen, far away only its lease runs out."""

    def __init__(self, name: str, machine: Any) -> None:
        self.name = name
        self.ledger = Durable(machine.state, machine.clock, SMALL, self)
        self._machine = machine

    def myself(self) -> str:
        return self.name

    def gone(self, owner: str) -> bool | None:
        return None if owner.startswith("far") else owner in self._machine.ended


@dataclass
class Known:
    """What must be true of one key."""

    fingerprint: str
    owner: Process
    until: float
    attempts: int
    effects: int
    state: str = "running"
    result: Result | None = None


class LedgerMachine(RuleBasedStateMachine):
    state: State
    places = st.integers(0, 2)  # two processes here and one far away; whoever crashes is followed by another one
    calls = st.sampled_from(CALLS)

    @initialize()
    def start(self) -> None:
        self.clock = FakeClock(datetime(2024, 5, 1, tzinfo=UTC))
        self.numbers = itertools.count()
        self.ended: set[str] = set()
        self.known: dict[tuple[str, str], Known] = {}
        self.told: dict[tuple[str, str], Result] = {}
        self.live = [self.process(place) for place in range(3)]
        with self.state.transaction() as sql:
            sql("DELETE FROM ledger")
        self.executing: dict[tuple[int, tuple[str, str]], Entry] = {}
        self.effective: set[tuple[int, tuple[str, str]]] = set()

    def process(self, place: int) -> Process:
        return Process(f"{'far' if place == 2 else 'here'}-{next(self.numbers)}", self)

    def entry(self, call: tuple[str, str], fingerprint: str) -> Entry:
        user, name = call
        return Entry(user, "run", name, "pay", fingerprint, repeatable=name == "again")

    def seen(self, call: tuple[str, str], viewer: Process) -> str:
        """The state of a key that has begun, as this process sees it."""
        known = self.known[call]
        lost = known.state == "unknown"
        if known.state == "running":
            if known.owner is viewer:
                lost = (self.live.index(viewer), call) not in self.executing
            elif known.owner.name.startswith("far"):
                lost = known.until < self.clock.now().timestamp()
            else:
                lost = known.owner.name in self.ended
        if not lost:
            return known.state
        return "dead" if known.attempts >= SMALL.attempts else "unknown"

    def expected(self, call: tuple[str, str], viewer: Process, entry: Entry) -> type[ToolwiseError] | Result | None:
        """What `find` must say: raise this, give this, or None."""
        known = self.known.get(call)
        if known is None:
            return None
        if known.fingerprint != entry.fingerprint:
            return Conflict
        match self.seen(call, viewer):
            case "running":
                return InProgress
            case "dead":
                return OutcomeUnknown
            case "unknown":
                return None if entry.repeatable else OutcomeUnknown
        return known.result

    @rule(place=places, call=calls, fingerprint=st.sampled_from("aaab"), commits=st.sampled_from([True, True, False]))
    def come(self, place: int, call: tuple[str, str], fingerprint: str, commits: bool) -> None:
        self.claim(place, call, fingerprint, commits)

    def claim(self, place: int, call: tuple[str, str], fingerprint: str, commits: bool) -> None:
        process, entry = self.live[place], self.entry(call, fingerprint)
        expected = self.expected(call, process, entry)
        if isinstance(expected, type):
            with pytest.raises(expected):
                process.ledger.find(entry)
            return
        found = process.ledger.find(entry)
        assert found == expected
        if found is not None:
            assert self.told.setdefault(call, found) == found, "what was told once never changes"
            assert found.text.startswith((call[0], "Done")), "nobody sees what another user got"
            return
        if not self.write(lambda sql: process.ledger.begin(entry, sql), commits):
            process.ledger.leave(entry)
            return
        known = self.known.get(call)
        attempts, effects = (known.attempts + 1, known.effects) if known else (1, 0)
        until = self.clock.now().timestamp() + SMALL.lease_seconds
        self.known[call] = Known(fingerprint, process, until, attempts, effects)
        self.executing[place, call] = entry

    def write(self, act: Any, commits: bool = True) -> bool:
        """Whether it was committed."""
        try:
            with self.state.transaction() as sql:
                act(sql)
                if not commits:
                    raise RolledBack
        except RolledBack:
            return False
        return True

    @precondition(lambda self: self.executing)
    @rule(data=st.data())
    def have_an_effect(self, data: st.DataObject) -> None:
        place, call = data.draw(st.sampled_from(sorted(self.executing)))
        if (place, call) not in self.effective:
            self.effective.add((place, call))
            self.known[call].effects += 1

    @precondition(lambda self: self.executing)
    @rule(
        data=st.data(), end=st.sampled_from(["done", "unknown", "late"]), commits=st.sampled_from([True, True, False])
    )
    def finish(self, data: st.DataObject, end: Any, commits: bool) -> None:
        self.end(*data.draw(st.sampled_from(sorted(self.executing))), end, commits)

    def end(self, place: int, call: tuple[str, str], end: Any, commits: bool) -> None:
        process, entry = self.live[place], self.executing[place, call]
        result = None if end == "unknown" else Result(call[1], "ok", f"{call[0]} got {next(self.numbers)}")
        done = self.write(lambda sql: process.ledger.finish(entry, result, end, sql), commits)
        process.ledger.leave(entry)
        self.forget(place, call)
        known = self.known[call]
        if done and known.owner is process and known.state == "running":
            known.state, known.result = end, result

    def forget(self, place: int, call: tuple[str, str]) -> None:
        self.executing.pop((place, call), None)
        self.effective.discard((place, call))

    @precondition(lambda self: self.executing)
    @rule(place=places)
    def die(self, place: int) -> None:
        self.crash(place)

    def crash(self, place: int) -> None:
        self.ended.add(self.live[place].name)
        for call in CALLS:
            self.forget(place, call)
        self.live[place] = self.process(place)

    @precondition(lambda self: self.executing)
    @rule(data=st.data(), other=places, dies=st.booleans())
    def take_over(self, data: st.DataObject, other: int, dies: bool) -> None:
        """Somebody dies, or stays away for too long, in the middle of a call, and another one comes for it."""
        place, call = data.draw(st.sampled_from(sorted(self.executing)))
        entry = self.executing[place, call]
        if dies:
            self.crash(place)
        self.clock.advance(200)
        self.claim(other, call, entry.fingerprint, True)
        if (place, call) in self.executing and place != other:
            self.end(place, call, "done", True)  # it was not dead

    @precondition(lambda self: self.executing)
    @rule(seconds=st.sampled_from([1, 60, 200]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @precondition(lambda self: self.known)
    @rule(call=calls, end=st.sampled_from(["retry", "retry", "done"]))
    def resolve(self, call: tuple[str, str], end: Any) -> None:
        """An operator says what became of a call, and knows that nobody executes it any more."""
        known, operator = self.known.get(call), self.process(0)
        open = known is not None and self.seen(call, operator) in ("unknown", "dead")
        key = self.entry(call, "").key
        if not open:
            with pytest.raises(BadInput):
                self.write(lambda sql: operator.ledger.resolve(key, end, sql))
            return
        assert known is not None
        for place in range(3):
            if (place, call) in self.executing:
                self.live[place].ledger.leave(self.executing[place, call])
            self.forget(place, call)
        self.write(lambda sql: operator.ledger.resolve(key, end, sql))
        if end == "retry":
            del self.known[call]
        else:
            known.state = "done"
            known.result = Result(call[1], "ok", "Done, as an operator confirmed.")
            self.told[call] = replace(known.result)

    @invariant()
    def every_call_is_in_the_one_state_that_it_must_be_in(self) -> None:
        viewer = self.live[0]
        records = {(each.principal, each.call): each for each in viewer.ledger.records()}
        assert records.keys() == self.known.keys()
        for call, known in self.known.items():
            assert (records[call].state, records[call].attempts) == (self.seen(call, viewer), known.attempts)
            assert known.attempts <= SMALL.attempts
            assert known.effects <= 1 or call[1] == "again", "a plain write had two effects"


def test_no_order_of_events_breaks_the_ledger(state: State) -> None:
    machines.run(LedgerMachine, state=state)
