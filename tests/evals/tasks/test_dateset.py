"""DATESET's questions, each answered a second time by counting days one by one; holidays as calendars have them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from functools import cache

import pytest

from toolwise.core.types import CallContext, Principal, WrittenCall
from toolwise.evals.tasks import TASKS, Example
from toolwise.evals.tasks.dateset import TEMPLATES, generate, holidays
from toolwise.gate.offline import offline_gate
from toolwise.tools.calendar import CALENDAR
from toolwise.tools.registry import Registry

DAY = timedelta(1)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November")
MONTHS += ("December",)
DATE = rf"(?P<month>{'|'.join(MONTHS)}) (?P<day>\d+), (?P<year>\d+)"


@cache
def examples() -> list[Example]:
    return generate()


def steps(start: date, end: date) -> Iterator[date]:
    """The days behind `start` up to `end`, one by one, to either side."""
    step = DAY if end > start else -DAY
    while start != end:
        start += step
        yield start


def weekday(day: date) -> str:
    """By Zeller's congruence, which knows no calendar of Python's."""
    month, year = (day.month, day.year) if day.month > 2 else (day.month + 12, day.year - 1)
    century, rest = divmod(year, 100)
    number = (day.day + 13 * (month + 1) // 5 + rest + rest // 4 + century // 4 + 5 * century) % 7
    return ("Saturday", "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday")[number]


def part(day: date, name: str) -> str:
    return {
        "day of the week": weekday(day),
        "day of the month": str(day.day),
        "month": MONTHS[day.month - 1],
        "year": str(day.year),
    }[name]


def apart(today: date, other: date, unit: str) -> int:
    """Whole units between two days. A month is over on the same day of the next one, or where that has no such day, on
    the first of the one behind."""
    first, last = min(today, other), max(today, other)
    days = list(steps(first, last))
    if unit in ("days", "weeks"):
        return len(days) // (7 if unit == "weeks" else 1)
    months = sum(day.day == first.day or (day.day == 1 and (day - DAY).day < first.day) for day in days)
    return months // (12 if unit == "years" else 1)


def before(today: date, count: int, unit: str) -> date:
    """The day so many units ago: months and years by looking for the same day of the month."""
    if unit in ("day", "days", "week", "weeks"):
        return today - count * (7 if unit.startswith("week") else 1) * DAY
    wanted = count * (12 if unit.startswith("year") else 1)
    day, months = today, 0
    while months < wanted or day.day != today.day:
        day -= DAY
        months += (day + DAY).month != day.month
    return day


def holiday(name: str, year: int) -> date:
    return holidays(year)[name]


def answer(today: date, question: str) -> str:
    """The answer, worked out from the question alone."""
    if found := re.fullmatch(rf"How many days (?:ago was|are there until) {DATE}\?", question):
        other = date(int(found["year"]), MONTHS.index(found["month"]) + 1, int(found["day"]))
        assert ("ago" in question) == (other < today)
        return str(apart(today, other, "days"))
    if found := re.fullmatch(r"What (.+) was it (\d+) (\w+) ago\?", question):
        return part(before(today, int(found[2]), found[3]), found[1])
    if found := re.fullmatch(r"What (.+) will it be in (\d+) days?\?", question):
        return part(today + int(found[2]) * DAY, found[1])
    if found := re.fullmatch(rf"What day of the week (is|was) it on {DATE}\?", question):
        other = date(int(found["year"]), MONTHS.index(found["month"]) + 1, int(found["day"]))
        assert (found[1] == "was") == (other < today)
        return weekday(other)
    near = {"the day before yesterday": -2, "yesterday": -1, "today": 0, "tomorrow": 1, "the day after tomorrow": 2}
    if found := re.fullmatch(rf"What (.+) (is|was) it ({'|'.join(near)})\?", question):
        assert (found[2] == "was") == (near[found[3]] < 0)
        return part(today + near[found[3]] * DAY, found[1])
    if found := re.fullmatch(r"What (.+) (is|was) (.+) this year\?", question):
        assert (found[2] == "was") == (holiday(found[3], today.year) < today)
        return part(holiday(found[3], today.year), found[1])
    found = re.fullmatch(r"How many (\w+) (ago was|are there until) (.+) this year\?", question)
    assert found
    other = holiday(found[3], today.year)
    assert (found[2] == "ago was") == (other < today)
    return str(apart(today, other, found[1]))


def test_every_question_has_the_answer_that_counting_days_gives() -> None:
    for example in examples():
        assert example.today
        question = example.prompt.removeprefix("Answer the following question: ")
        assert example.answers[0] == answer(date.fromisoformat(example.today), question), (example.today, question)


def test_there_are_as_many_of_each_template_as_in_the_paper() -> None:
    found = Counter(example.about["template"] for example in examples())
    assert list(found.values()) == [400, 800, 800, 400, 4_000, 1_800, 1_200]
    assert list(found) == list(TEMPLATES)
    assert sum(found.values()) == 9_400


def test_it_asks_on_five_hundred_days_about_days_at_most_four_years_away() -> None:
    assert 480 <= len({example.today for example in examples()}) <= 500  # a few were drawn twice
    for example in examples():
        if example.about["template"] in ("days to a date", "in so many days"):
            days = re.search(r"in (\d+) day", example.prompt)
            assert 1 <= int(days[1] if days else example.answers[0]) <= 1_461


def test_the_same_seed_makes_the_same_questions_and_another_others() -> None:
    assert generate() == examples()
    assert generate(1)[:5] != examples()[:5]


def test_no_question_is_asked_twice_on_one_day() -> None:
    assert len({(example.today, example.prompt) for example in examples()}) == len(examples())


def test_a_question_that_has_no_one_answer_is_not_asked() -> None:
    assert not [example for example in examples() if "0" in example.answers]


@pytest.mark.parametrize(
    ("name", "days"),
    [
        ("New Year's Day", "2020-01-01 2024-01-01"),
        ("Martin Luther King Jr. Day", "2017-01-16 2020-01-20 2023-01-16 2024-01-15"),
        ("Presidents' Day", "2019-02-18 2020-02-17 2023-02-20 2024-02-19"),
        ("Memorial Day", "2020-05-25 2021-05-31 2023-05-29 2024-05-27"),
        ("Juneteenth", "2021-06-19"),
        ("Independence Day", "2022-07-04"),
        ("Labor Day", "2020-09-07 2022-09-05 2023-09-04 2025-09-01"),
        ("Columbus Day", "2019-10-14 2022-10-10 2023-10-09"),
        ("Veterans Day", "2018-11-11"),
        ("Thanksgiving", "2018-11-22 2020-11-26 2022-11-24 2023-11-23 2024-11-28"),
        ("Christmas", "2021-12-25"),
    ],
)
def test_holidays_are_on_the_days_that_they_were(name: str, days: str) -> None:
    for day in map(date.fromisoformat, days.split()):
        assert holidays(day.year)[name] == day


def test_the_calendar_tells_an_examples_day() -> None:
    example = examples()[0]
    context = CallContext(Principal("evaluation"), example.id, today=example.today)
    said = offline_gate(Registry([CALENDAR])).execute(WrittenCall("1", "Calendar()", complete=True), context).text
    assert example.today
    day = date.fromisoformat(example.today)
    assert said == f"Today is {weekday(day)}, {MONTHS[day.month - 1]} {day.day}, {day.year}."


@pytest.mark.parametrize(
    ("asks", "text"),
    [
        ("What day of the month is it today?", " It is the {}, a Monday"),
        ("How many weeks", " {} weeks, and a day"),
        ("What day of the week", " {}."),
    ],
)
def test_an_answer_may_be_said_in_more_than_one_way(asks: str, text: str) -> None:
    example = next(one for one in examples() if asks in one.prompt and one.about["template"] != "days to a date")
    for answer in example.answers:
        assert TASKS["dateset"].judge(example, text.format(answer), finished=True).right
