"""One key, one execution: who may begin a call, who must wait, and who has to ask an operator."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from toolwise.core.clock import FakeClock
from toolwise.core.errors import BadInput, Conflict, Corrupt, InProgress, OutcomeUnknown, ToolwiseError
from toolwise.core.limits import LIMITS
from toolwise.core.types import Confidentiality, Integrity, Labels, Result
from toolwise.gate import owner
from toolwise.gate.ledger import Durable, End, Entry, Memory
from toolwise.gate.state import State

CALL = Entry("ann", "run-1", "c1", "pay", "digest", seconds=10.0)
AGAIN = replace(CALL, call="c2", repeatable=True)
OTHER = Labels(Integrity.UNTRUSTED, Confidentiality.PRIVATE)
RESULT = Result("c1", "ok", "né\0\n" + "x" * 40_000, 0.25, True, 10**12, "f" * 64, OTHER)


class Processes:
    """Stands in for the system: names of processes, and which of them have ended."""

    def __init__(self, me: str = "p1") -> None:
        self.me = me
        self.ended: dict[str, bool | None] = {}

    def myself(self) -> str:
        return self.me

    def gone(self, owner: str) -> bool | None:
        return self.ended.get(owner, False)


class Desk:
    """Ledgers of several processes over one state."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.clock = FakeClock(datetime(2024, 5, 1, tzinfo=UTC))
        self.ended: dict[str, bool | None] = {}

    def ledger(self, process: str = "p1") -> Durable:
        processes = Processes(process)
        processes.ended = self.ended
        return Durable(self.state, self.clock, LIMITS, processes)

    def begin(self, ledger: Durable, entry: Entry) -> None:
        with self.state.transaction() as sql:
            ledger.begin(entry, sql)

    def finish(self, ledger: Durable, entry: Entry, result: Result | None = RESULT, end: End = "done") -> None:
        with self.state.transaction() as sql:
            ledger.finish(entry, result, end, sql)
        ledger.leave(entry)


@pytest.fixture
def desk(state: State) -> Desk:
    return Desk(state)


def refusal(error: type[ToolwiseError], ledger: Durable, entry: Entry) -> None:
    with pytest.raises(error):
        ledger.find(entry)


def test_a_call_begins_runs_and_its_result_comes_back_as_it_was(desk: Desk) -> None:
    ledger = desk.ledger()
    assert ledger.find(CALL) is None
    desk.begin(ledger, CALL)
    refusal(InProgress, ledger, CALL)
    with pytest.raises(InProgress):
        desk.begin(ledger, replace(CALL))
    desk.finish(ledger, CALL)
    for process in ("p1", "p2"):
        assert desk.ledger(process).find(CALL) == RESULT
    refusal(Conflict, ledger, replace(CALL, fingerprint="other"))
    assert ledger.find(replace(CALL, principal="eve")) is None


@pytest.mark.case("E5")
def test_what_a_dead_process_was_executing_is_unknown_and_begins_again_only_if_that_does_no_harm(desk: Desk) -> None:
    first, second = desk.ledger("p1"), desk.ledger("p2")
    for entry in (CALL, AGAIN):
        desk.begin(first, entry)
        refusal(InProgress, second, entry)
    desk.ended["p1"] = True
    refusal(OutcomeUnknown, second, CALL)
    assert second.find(AGAIN) is None
    desk.begin(second, AGAIN)
    refusal(InProgress, desk.ledger("p3"), AGAIN)
    desk.finish(second, AGAIN)
    assert second.find(AGAIN) == RESULT


@pytest.mark.case("E12")
def test_a_call_that_kills_whoever_runs_it_is_set_aside_until_an_operator_has_looked(desk: Desk) -> None:
    for number in range(LIMITS.attempts):
        worker = desk.ledger(f"p{number}")
        assert worker.find(AGAIN) is None
        desk.begin(worker, AGAIN)
        desk.ended[f"p{number}"] = True
    last = desk.ledger("last")
    refusal(OutcomeUnknown, last, AGAIN)
    (record,) = last.records()
    assert (record.state, record.attempts) == ("dead", LIMITS.attempts)
    assert last.find(replace(AGAIN, call="c3")) is None, "others go on"
    with desk.state.transaction() as sql:
        last.resolve(AGAIN.key, "retry", sql)
    assert last.find(AGAIN) is None


def test_a_process_on_another_machine_counts_as_lost_once_its_lease_is_over(desk: Desk) -> None:
    desk.ended["far"] = None
    desk.begin(desk.ledger("far"), AGAIN)
    here = desk.ledger("here")
    desk.clock.advance(LIMITS.lease_seconds + 9)
    refusal(InProgress, here, AGAIN)
    desk.clock.advance(2)
    assert here.find(AGAIN) is None


def test_a_process_that_comes_back_after_its_lease_changes_nothing_that_others_have_begun_or_ended(desk: Desk) -> None:
    desk.ended["far"] = None
    far, here = desk.ledger("far"), desk.ledger("here")
    for entry in (CALL, AGAIN):
        desk.begin(far, entry)
    desk.clock.advance(LIMITS.lease_seconds + 11)
    desk.begin(here, AGAIN)
    desk.finish(far, AGAIN, replace(RESULT, text="late"))
    refusal(InProgress, here, AGAIN)
    desk.finish(here, AGAIN)
    assert far.find(AGAIN) == RESULT
    refusal(OutcomeUnknown, here, CALL)
    desk.finish(far, CALL)
    assert here.find(CALL) == RESULT, "nobody else could begin it, so what it says is known now"


@pytest.mark.case("D6")
def test_a_process_on_this_machine_is_not_lost_because_the_wall_clock_moved(desk: Desk) -> None:
    desk.begin(desk.ledger("p1"), AGAIN)
    desk.clock.set(datetime(2038, 2, 1, tzinfo=UTC))
    refusal(InProgress, desk.ledger("p2"), AGAIN)


def test_two_ledgers_of_one_process_do_not_take_each_others_calls_for_lost(desk: Desk) -> None:
    first, second = desk.ledger("p1"), desk.ledger("p1")
    desk.begin(first, AGAIN)
    refusal(InProgress, second, AGAIN)
    desk.finish(first, AGAIN)
    assert second.find(AGAIN) == RESULT


def test_a_call_that_was_left_without_a_word_is_unknown_in_its_own_process_too(desk: Desk) -> None:
    ledger = desk.ledger()
    desk.begin(ledger, CALL)
    ledger.leave(CALL)
    refusal(OutcomeUnknown, ledger, CALL)


def test_a_result_that_was_stored_while_its_row_was_read_is_found(desk: Desk) -> None:
    """The owner stores its result and ends between the reading of the row and the look at the owner."""
    first = desk.ledger("p1")
    desk.begin(first, CALL)

    class Ends(Processes):
        def gone(self, owner: str) -> bool | None:
            desk.finish(first, CALL)
            return True

    asks = Durable(desk.state, desk.clock, LIMITS, Ends("p2"))
    assert asks.find(CALL) == RESULT


def test_a_beginning_that_was_rolled_back_never_was(desk: Desk) -> None:
    ledger = desk.ledger()
    with pytest.raises(Conflict), desk.state.transaction() as sql:
        ledger.begin(CALL, sql)
        raise Conflict("no")
    ledger.leave(CALL)
    assert ledger.find(CALL) is None
    assert ledger.records() == []


def test_an_operator_decides_only_about_what_is_unknown(desk: Desk) -> None:
    first, second = desk.ledger("p1"), desk.ledger("p2")
    desk.begin(first, CALL)
    for key in (CALL.key, "0" * 64):
        with pytest.raises(BadInput), desk.state.transaction() as sql:
            second.resolve(key, "done", sql)
    desk.ended["p1"] = True
    with desk.state.transaction() as sql:
        assert second.resolve(CALL.key, "done", sql).state == "unknown"
    found = second.find(CALL)
    assert found is not None
    assert found.ok
    with pytest.raises(BadInput), desk.state.transaction() as sql:
        second.resolve(CALL.key, "retry", sql)


def test_a_stored_result_that_cannot_be_read_is_corrupt(desk: Desk) -> None:
    ledger = desk.ledger()
    desk.begin(ledger, CALL)
    desk.finish(ledger, CALL)
    for broken in ("{", "[]", '{"call_id":"c1"}', "null"):
        with desk.state.transaction() as sql:
            sql("UPDATE ledger SET result = ?", (broken,))
        refusal(Corrupt, ledger, CALL)


def test_this_process_is_known_by_its_own_name(desk: Desk) -> None:
    ledger = Durable(desk.state, desk.clock)
    desk.begin(ledger, CALL)
    (record,) = ledger.records()
    assert record.owner.startswith(owner.myself() + " ")
    refusal(InProgress, Durable(desk.state, desk.clock), CALL)


# In memory


def test_of_calls_without_effect_the_oldest_that_ended_are_forgotten_and_none_that_runs() -> None:
    memory = Memory(replace(LIMITS, replays=2))
    runs, *rest = (replace(CALL, call=f"c{number}") for number in range(6))
    memory.begin(runs)
    for entry in rest:
        memory.begin(entry)
        memory.finish(entry, replace(RESULT, call_id=entry.call))
        memory.leave(entry)
    assert [entry.call for entry in rest if memory.find(entry) is not None] == ["c5"]
    with pytest.raises(InProgress):
        memory.begin(replace(runs))
    memory.leave(replace(runs))
    with pytest.raises(InProgress):
        memory.begin(replace(runs))
    memory.leave(runs)
    memory.begin(replace(runs))


def test_a_refusal_keeps_nothing_of_the_calls_before_it() -> None:
    memory = Memory()
    memory.begin(CALL)
    depths = []
    for _ in range(3):
        with pytest.raises(InProgress) as raised:
            memory.begin(replace(CALL))
        depths.append(len(raised.traceback))
    assert len(set(depths)) == 1


def test_a_key_is_made_of_who_asks_and_of_run_and_call_and_of_nothing_else() -> None:
    assert len({replace(CALL, principal="a", run="bc").key, replace(CALL, principal="ab", run="c").key}) == 2
    assert replace(CALL, tool="other", fingerprint="other").key == CALL.key
