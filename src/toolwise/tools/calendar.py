"""The calendar of the paper: `Calendar()` is `Today is Monday, January 30, 2023.`

The day comes from the call's context, never from arguments: the document's own while teaching, the present one at run
time. A date that is known only in part is told in part. Proleptic Gregorian, in English whatever the locale.
"""

from __future__ import annotations

import re
from datetime import date

from toolwise.core.errors import ToolFailed
from toolwise.core.types import Effect, ToolContext
from toolwise.tools.registry import tool

_PARTIAL = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
_YEARLESS = re.compile(r"--([0-9]{2})-([0-9]{2})")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def sentence(today: str) -> str:
    """What the calendar says of an ISO date that may be partial: `2023-01-30`, `2023-01`, `2023`, `--01-30`.

    Raises ToolFailed where it is no date.
    """
    if yearless := _YEARLESS.fullmatch(today):
        known = _day("2000", *yearless.groups())  # a leap year
        return f"Today is {_MONTHS[known.month - 1]} {known.day}."
    match = _PARTIAL.fullmatch(today)
    if match is None:
        raise ToolFailed("the date is not known: give it as 2023-01-30, 2023-01 or 2023")
    year, month, day = match.groups()
    known = _day(year, month, day)
    name = _MONTHS[known.month - 1]
    if day is not None:
        return f"Today is {_WEEKDAYS[known.weekday()]}, {name} {known.day}, {known.year}."
    if month is not None:
        return f"It is {name} {known.year}."
    return f"The year is {known.year}."


def _day(year: str, month: str | None, day: str | None) -> date:
    try:
        return date(int(year), int(month or 1), int(day or 1))
    except ValueError:
        raise ToolFailed("the date is not in the calendar") from None


def tell(context: ToolContext) -> str:
    """Tell today's date."""
    return sentence(context.today)


CALENDAR = tool(name="Calendar", effect=Effect.READ, bounded=True)(tell)
