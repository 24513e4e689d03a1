"""The calendar tells the day of the call's context, as far as it is known."""

from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwise.core.errors import ToolFailed
from toolwise.core.types import Effect, Principal, ToolContext
from toolwise.tools import CALENDAR


def told(today: str) -> str:
    return CALENDAR.run(context=ToolContext(Principal("ada"), today, 1.0))


def test_the_tool_reads_takes_no_arguments_and_asks_for_its_context():
    assert (CALENDAR.name, CALENDAR.effect, CALENDAR.bounded) == ("Calendar", Effect.READ, True)
    assert CALENDAR.parameters["properties"] == {}
    assert CALENDAR.context_parameter == "context"


@pytest.mark.parametrize(
    ("today", "sentence"),
    [
        ("2023-01-30", "Today is Monday, January 30, 2023."),
        ("2024-02-29", "Today is Thursday, February 29, 2024."),
        ("1790-01-08", "Today is Friday, January 8, 1790."),
        ("9999-12-31", "Today is Friday, December 31, 9999."),
        ("2023-01", "It is January 2023."),
        ("1790", "The year is 1790."),
        ("0790", "The year is 790."),
        ("--01-30", "Today is January 30."),
        ("--02-29", "Today is February 29."),
    ],
)
def test_a_date_is_told_as_far_as_it_is_known(today, sentence):
    assert told(today) == sentence


@pytest.mark.parametrize(
    "today",
    [
        *("", "today", "20230130", "2023-1-1", "2023-W05", "２０２３", "2023-01-30T00:00", "2023-01-30\n"),
        *("2023-02-30", "2023-13", "2023-00", "2023-01-00", "0000", "--02-30", "--13-01"),
    ],
)
def test_what_is_no_date_fails(today):
    with pytest.raises(ToolFailed):
        told(today)


@given(st.dates())
@settings(max_examples=100, deadline=None)
def test_consecutive_days_have_consecutive_weekdays(day):
    week = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    monday = date(2023, 1, 30)
    assert told(day.isoformat()).split()[2] == week[(day - monday) // timedelta(days=1) % 7] + ","
