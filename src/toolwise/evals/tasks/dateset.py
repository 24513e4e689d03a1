"""DATESET: questions that only the present date answers, made from the paper's rules (appendix D, table 11).

Five hundred days are drawn, each with one in the past and one in the future of it, at most four years away. They fill
seven templates; of everything that a template can ask about them, as many questions are drawn as the paper has. The
same seed makes the same questions. Each example's `today` is its day.

What the paper leaves open: a day of the month that a month does not have (one month before 31 March) is not asked for.
Weeks, months and years between two days are whole ones, and a question whose answer would be 0 is not asked. A holiday
that is today is not asked for how far away it is. A holiday is asked for in any year, also before it was one.
"""

from __future__ import annotations

import calendar
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import MINYEAR, date, timedelta
from types import MappingProxyType

from toolwise.evals.tasks.base import Example, Loaded, Source, Task
from toolwise.evals.tasks.questions import PROMPT, asked
from toolwise.evals.tasks.rules import InFirstWords

SEED = 0
DAYS = 500
_FIRST, _LAST = date(2010, 1, 1), date(2029, 12, 31)
_REACH = 4 * 365 + 1  # days of four years

_PARTS = ("day of the week", "day of the month", "month", "year")
_UNITS = ("days", "weeks", "months", "years")
_NEAR: Mapping[str, int] = MappingProxyType(
    {"the day before yesterday": -2, "yesterday": -1, "today": 0, "tomorrow": 1, "the day after tomorrow": 2}
)
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@dataclass(frozen=True, slots=True)
class Moment:
    """A day on which is asked, and two others."""

    today: date
    past: date
    future: date


@dataclass(frozen=True, slots=True)
class Question:
    """A question that fills a template, and its answers."""

    text: str
    answers: tuple[str, ...]


def moments(seed: int) -> list[Moment]:
    """The days that are asked about, and on which."""
    lot = random.Random(seed)  # noqa: S311 - not for secrets
    found = []
    for _ in range(DAYS):
        today = _FIRST + timedelta(lot.randrange((_LAST - _FIRST).days + 1))
        found.append(
            Moment(today, today - timedelta(lot.randint(1, _REACH)), today + timedelta(lot.randint(1, _REACH)))
        )
    return found


def _how_far(moment: Moment) -> Iterator[Question]:
    for other in (moment.past, moment.future):
        yield _between(moment.today, other, "days", _told(other))


def _what_was(moment: Moment) -> Iterator[Question]:
    for unit in _UNITS:
        count = _apart(moment.past, moment.today, unit)
        day = _earlier(moment.today, count, unit)
        if count and day:
            for part in _PARTS:
                yield Question(f"What {part} was it {_count(count, unit)} ago?", _part(day, part))


def _what_will_be(moment: Moment) -> Iterator[Question]:
    count = (moment.future - moment.today).days
    for part in _PARTS:
        yield Question(f"What {part} will it be in {_count(count, 'days')}?", _part(moment.future, part))


def _weekday(moment: Moment) -> Iterator[Question]:
    for verb, day in (("was", moment.past), ("is", moment.future)):
        yield Question(f"What day of the week {verb} it on {_told(day)}?", _part(day, "day of the week"))


def _near(moment: Moment) -> Iterator[Question]:
    for name, days in _NEAR.items():
        verb = "was" if days < 0 else "is"
        for part in _PARTS:
            yield Question(f"What {part} {verb} it {name}?", _part(moment.today + timedelta(days), part))


def _holiday(moment: Moment) -> Iterator[Question]:
    for name, day in holidays(moment.today.year).items():
        verb = "was" if day < moment.today else "is"
        for part in _PARTS[:3]:
            yield Question(f"What {part} {verb} {name} this year?", _part(day, part))


def _how_far_holiday(moment: Moment) -> Iterator[Question]:
    for name, day in holidays(moment.today.year).items():
        for unit in _UNITS:
            if _apart(moment.today, day, unit):
                yield _between(moment.today, day, unit, f"{name} this year")


#: A template's name, what it can ask, and how many of that are drawn: the sizes of table 11.
TEMPLATES: Mapping[str, tuple[Callable[[Moment], Iterator[Question]], int]] = MappingProxyType(
    {
        "days to a date": (_how_far, 400),
        "a time ago": (_what_was, 800),
        "in so many days": (_what_will_be, 800),
        "weekday of a date": (_weekday, 400),
        "near days": (_near, 4_000),
        "date of a holiday": (_holiday, 1_800),
        "time to a holiday": (_how_far_holiday, 1_200),
    }
)


def generate(seed: int = SEED) -> list[Example]:
    """All 9,400 examples; no two of one template are the same question on the same day."""
    found: list[Example] = []
    days = moments(seed)
    for number, (template, (fill, size)) in enumerate(TEMPLATES.items(), 1):
        every = {(moment.today, question.text): question for moment in days for question in fill(moment)}
        drawn = random.Random(f"{seed} {template}").sample(sorted(every), size)  # noqa: S311 - not for secrets
        for at, (today, text) in enumerate(drawn, 1):
            answers = every[today, text].answers
            about = {"template": template}
            found.append(Example(f"{number}-{at:04d}", asked(text), answers, about, today=today.isoformat()))
    return found


def holidays(year: int) -> dict[str, date]:
    """The federal holidays of the United States by name, on the days that they commemorate."""
    return {
        "New Year's Day": date(year, 1, 1),
        "Martin Luther King Jr. Day": _nth(year, 1, calendar.MONDAY, 3),
        "Presidents' Day": _nth(year, 2, calendar.MONDAY, 3),
        "Memorial Day": _nth(year, 5, calendar.MONDAY, -1),
        "Juneteenth": date(year, 6, 19),
        "Independence Day": date(year, 7, 4),
        "Labor Day": _nth(year, 9, calendar.MONDAY, 1),
        "Columbus Day": _nth(year, 10, calendar.MONDAY, 2),
        "Veterans Day": date(year, 11, 11),
        "Thanksgiving": _nth(year, 11, calendar.THURSDAY, 4),
        "Christmas": date(year, 12, 25),
    }


def _nth(year: int, month: int, weekday: int, which: int) -> date:
    days = [day for week in calendar.monthcalendar(year, month) if (day := week[weekday])]
    return date(year, month, days[which if which < 0 else which - 1])


def _between(today: date, other: date, unit: str, name: str) -> Question:
    asks = f"How many {unit} ago was {name}?" if other < today else f"How many {unit} are there until {name}?"
    return Question(asks, _number(_apart(today, other, unit)))


def _apart(one: date, other: date, unit: str) -> int:
    """Whole days, weeks, months or years between two days."""
    earlier, later = sorted((one, other))
    if unit in ("days", "weeks"):
        return (later - earlier).days // (7 if unit == "weeks" else 1)
    months = 12 * (later.year - earlier.year) + later.month - earlier.month - (later.day < earlier.day)
    return months // (12 if unit == "years" else 1)


def _earlier(day: date, count: int, unit: str) -> date | None:
    """The day so long before; None where that month has no such day."""
    if unit in ("days", "weeks"):
        return day - timedelta(count * (7 if unit == "weeks" else 1))
    months = 12 * day.year + day.month - 1 - count * (12 if unit == "years" else 1)
    year, month = divmod(months, 12)
    fits = year >= MINYEAR and day.day <= calendar.monthrange(year, month + 1)[1]
    return date(year, month + 1, day.day) if fits else None


def _count(count: int, unit: str) -> str:
    return f"{count} {unit if count > 1 else unit.removesuffix('s')}"


def _told(day: date) -> str:
    return f"{calendar.month_name[day.month]} {day.day}, {day.year}"


def _part(day: date, part: str) -> tuple[str, ...]:
    if part == "day of the week":
        return (calendar.day_name[day.weekday()],)
    if part == "day of the month":
        return (str(day.day), _ordinal(day.day))
    return (calendar.month_name[day.month],) if part == "month" else (str(day.year),)


def _number(count: int) -> tuple[str, ...]:
    return (str(count), _WORDS[count]) if count < len(_WORDS) else (str(count),)


def _ordinal(day: int) -> str:
    last = "th" if day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{last}"


def _load(source: Source) -> Loaded:
    return Loaded(tuple(generate()), {})


TASKS = (
    Task(
        "dateset",
        "Questions that only today's date answers, made by rule",
        True,
        PROMPT,
        InFirstWords(5),
        _load,
        64,
    ),
)
