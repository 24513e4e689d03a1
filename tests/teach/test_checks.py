"""Checks of truth: what may be kept is asked once more, asked elsewhere, or compared with the day of its text."""

from __future__ import annotations

from itertools import count

import pytest

from toolwise import Effect, Registry, tool
from toolwise.core.errors import BadInput
from toolwise.gate.offline import offline_gate
from toolwise.teach.checks import check_named
from toolwise.teach.config import ToolSettings
from toolwise.teach.execute import Executor
from toolwise.teach.records import Candidate, Passage

TURN = count()


@tool(effect=Effect.READ, bounded=True)
def Steady(question: str) -> str:
    """Always says the same."""
    return "Warsaw, in 1867"


@tool(effect=Effect.READ, bounded=True)
def Fickle(question: str) -> str:
    """Never says the same."""
    return f"answer {next(TURN)}"


@tool(effect=Effect.READ, bounded=True)
def Elsewhere(words: str, page: int = 1) -> str:
    """Knows one person."""
    return "Marie Curie was born in Warsaw in 1867." if words == "Curie" else "Nothing was found."


@tool(effect=Effect.READ, bounded=True)
def Pair(a: int, b: int) -> str:
    """Takes no text."""
    return "2"


REGISTRY = Registry([Steady, Fickle, Elsewhere, Pair])


def verdict(check: str, candidate: Candidate, date: str | None = None, **settings: str) -> str | None:
    passage = Passage("d#0", "d", 0, "A text.", date)
    with offline_gate(REGISTRY) as gate:
        found = check_named(check, candidate.tool, ToolSettings(**settings), REGISTRY)
        return found(passage, candidate, Executor(gate, REGISTRY, "run"))


def call(body: str, result: str) -> Candidate:
    return Candidate("d#0", body.partition("(")[0], 1, 1, body, "lm", result=result, gain=1.0)


def test_a_call_that_gives_another_result_the_second_time_is_dropped():
    assert verdict("repeat", call("Steady(Curie)", "Warsaw, in 1867")) is None
    assert verdict("repeat", call("Fickle(Curie)", "another answer")) == "not_repeatable"


@pytest.mark.parametrize(
    ("body", "result", "reason"),
    [
        ("Steady(Curie)", "Warsaw, in 1867", None),
        ("Steady(Curie)", "Warsaw, in 1868", "no_agreement"),  # a number that the other does not have
        ("Steady(Curie)", "Paris and Lyon", "no_agreement"),
        ("Steady(Kahlo)", "Warsaw, in 1867", "no_agreement"),  # the other found nothing
    ],
)
def test_a_second_source_has_to_say_so_too(body, result, reason):
    assert verdict("second_source", call(body, result), second_source="Elsewhere") == reason


def test_a_second_source_is_asked_for_a_number_as_for_a_text():
    assert verdict("second_source", call("Pair(a=1867, b=1)", "1867"), second_source="Steady") is None


def test_a_tool_is_not_its_own_second_source():
    with pytest.raises(BadInput, match="Steady cannot be its own second source"):
        verdict("second_source", call("Steady(Curie)", "Warsaw"), second_source="Steady")


@pytest.mark.parametrize("other", ["", "Nowhere", "Pair"])
def test_a_second_source_has_to_be_there_and_to_take_a_text(other):
    with pytest.raises(BadInput, match=r"second.source"):
        verdict("second_source", call("Steady(Curie)", "Warsaw"), second_source=other)


@pytest.mark.parametrize(
    ("result", "date", "reason"),
    [
        ("In 2019 it had 300 members.", "2023-01-30", "outdated"),
        ("In 2019 it had 300 members, in 2024 twice that.", "2023", None),
        ("It has 2,019 members and 2019% more.", "2023", None),  # no year is named
        ("In 2019 it had 300 members.", None, None),
        ("In 2019 it had 300 members.", "2019-12", None),
    ],
)
def test_a_result_must_not_be_older_than_its_text(result, date, reason):
    assert verdict("not_older", call("Steady(x)", result), date) == reason


def test_a_check_that_nobody_knows_is_refused():
    with pytest.raises(BadInput, match="no check"):
        check_named("oracle", "Steady", ToolSettings(), REGISTRY)
