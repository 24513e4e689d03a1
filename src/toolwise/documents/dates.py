"""The day a document is from: partial ISO dates (`2023-01-30`, `2023-01`, `2023`) from fields and addresses.

Not covered: dates in words and dates whose order depends on the country (`3/4/2023`); they give None, never a guess.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Any

_DATE = re.compile(r"([0-9]{4})(?:([-/])([0-9]{1,2})(?:\2([0-9]{1,2})(?:[T ].*)?)?)?", re.DOTALL)
_DAY_IN_URL = re.compile(r"(?<![0-9])((?:19|20)[0-9]{2})([-/])([0-9]{1,2})\2([0-9]{1,2})(?![0-9])")
_MONTH_IN_URL = re.compile(r"/((?:19|20)[0-9]{2})/([0-9]{1,2})(?:/|$)")


def partial_date(value: Any) -> str | None:
    """A `date` field as a partial ISO date, a time of day being left out; None when it does not name a date.

    Takes text (`2023-01-30`, `2023/1/5`, `2023-01-30T08:00Z`), a year as a number, and Python's dates.
    """
    if isinstance(value, date):
        return value.isoformat()[:10]
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    match = _DATE.fullmatch(str(value).strip())
    return None if match is None else _iso(match[1], match[3], match[4])


def date_in_url(url: str) -> str | None:
    """The first date in an address, `/2023/01/30/` or `2023-01-30`, or else its first `/2023/01/`; None without one."""
    days = (_iso(match[1], match[3], match[4]) for match in _DAY_IN_URL.finditer(url))
    months = (_iso(match[1], match[2], None) for match in _MONTH_IN_URL.finditer(url))
    return next((found for dates in (days, months) for found in dates if found is not None), None)


def _iso(year: str, month: str | None, day: str | None) -> str | None:
    try:
        whole = date(int(year), int(month or 1), int(day or 1)).isoformat()
    except ValueError:
        return None
    return whole[: 10 if day else 7 if month else 4]
