"""Every candidate goes through the gate, identical calls run once, and what failed is no answer for another text."""

from toolwise.core.errors import ToolFailed
from toolwise.core.types import Effect
from toolwise.gate.offline import offline_gate
from toolwise.teach.execute import Executor
from toolwise.teach.records import Candidate, Passage
from toolwise.tools.calendar import CALENDAR
from toolwise.tools.registry import Registry, tool

FIRST, SECOND = (Passage(f"p{i}", f"d{i}", 0, "text", date=date) for i, date in enumerate(["1998-03-04", None]))


def counting(effect, *, failures=0):
    """A tool that answers with how often it ran, after so many failures."""
    ran = []

    @tool(name="count", effect=effect, bounded=True)
    def count(what: str) -> str:
        """Count."""
        ran.append(what)
        if len(ran) <= failures:
            raise ToolFailed("not yet")
        return str(len(ran))

    return count, ran


def executor(*tools):
    registry = Registry(tools)
    return Executor(offline_gate(registry), registry, "run")


def candidates(passage, *calls, tool="count"):
    return [Candidate(passage.id, tool, position, position, body, "lm") for position, body in calls]


def results(rows):
    return [row.result for row in rows]


def test_a_pure_call_runs_once_for_all_passages():
    count, ran = counting(Effect.PURE)
    run = executor(count)
    assert results(run.execute(FIRST, candidates(FIRST, (1, "count(a)"), (5, "count(a)"), (5, "count(b)")))) == [
        *("1", "1", "2")
    ]
    assert results(run.execute(SECOND, candidates(SECOND, (1, "count(b)")))) == ["2"]
    assert ran == ["a", "b"]


def test_a_call_that_looks_at_the_world_runs_once_for_each_passage():
    count, ran = counting(Effect.READ)
    run = executor(count)
    assert results(run.execute(FIRST, candidates(FIRST, (1, "count(a)"), (5, "count(a)")))) == ["1", "1"]
    assert results(run.execute(SECOND, candidates(SECOND, (1, "count(a)")))) == ["2"]
    assert ran == ["a", "a"]


def test_the_same_call_at_the_same_position_is_a_duplicate():
    count, _ = counting(Effect.PURE)
    rows = executor(count).execute(FIRST, candidates(FIRST, (1, "count(a)"), (1, "count(a)"), (2, "count(a)")))
    assert [row.reason for row in rows] == [None, "duplicate", None]


def test_a_failure_is_dropped_with_its_text_and_not_remembered_for_other_passages():
    """What failed for want of a moment must not decide, worker by worker, what is kept."""
    count, _ = counting(Effect.PURE, failures=1)
    run = executor(count)
    (failed,) = run.execute(FIRST, candidates(FIRST, (1, "count(a)")))
    assert (failed.reason, failed.result) == ("tool_error", "Error (tool_failed): not yet")
    (again,) = run.execute(SECOND, candidates(SECOND, (1, "count(a)")))
    assert (again.reason, again.result) == (None, "2")


def test_the_day_is_the_documents_and_never_that_of_the_run():
    run = executor(CALENDAR)
    (dated,) = run.execute(FIRST, candidates(FIRST, (1, "Calendar()"), tool="Calendar"))
    (undated,) = run.execute(SECOND, candidates(SECOND, (1, "Calendar()"), tool="Calendar"))
    assert dated.result == "Today is Wednesday, March 4, 1998."
    assert undated.reason == "tool_error"


def test_what_was_dropped_before_is_not_executed():
    count, ran = counting(Effect.PURE)
    (row,) = executor(count).execute(FIRST, [Candidate(FIRST.id, "count", 1, 1, "count(a", "lm", reason="unclosed")])
    assert (row.reason, row.result, ran) == ("unclosed", None, [])
