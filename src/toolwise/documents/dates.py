"""The day a document is from: partial ISO dates (`2023-01-30`, `2023-01`, `2023`, `--01-30` without its year).

They come from fields, addresses, titles and the heads of texts: a first line, or the dateline of a report. A date
further down is what a text speaks of, and not its own.

Not covered: words of other languages than English, and dates whose order depends on the country (`3/4/2023`); they
give None, never a guess.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Any

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<{0}>Jan(?:uary|\.)?|Feb(?:ruary|\.)?|Mar(?:ch|\.)?|Apr(?:il|\.)?|May|June?|July?|Aug(?:ust|\.)?"
    r"|Sept?(?:ember|\.)?|Oct(?:ober|\.)?|Nov(?:ember|\.)?|Dec(?:ember|\.)?)"
)
_DAY = r"(?P<{0}>[0-9]{{1,2}})(?:st|nd|rd|th)?"
_IN_WORDS = re.compile(
    r"(?<![\w-])(?:"
    + _MONTH.format("m1") + r" " + _DAY.format("d1") + r"(?:,? (?P<y1>[0-9]{4}))?"  # January 30, 2023
    + r"|" + _DAY.format("d2") + r"(?: of)? " + _MONTH.format("m2") + r",?(?: (?P<y2>[0-9]{4}))?"  # 30 January 2023
    + r"|" + _MONTH.format("m3") + r",? (?P<y3>[0-9]{4})"  # January 2023
    + r"|(?P<iso>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    + r")(?![\w-])"
)  # fmt: skip
#: `LONDON, Jan. 30, 2023 (Reuters) - `: what may stand before and behind the date of a report.
_DATELINE = re.compile(
    r"\s*(?:[A-Z][\w.' ]{0,40}, ?|[(\[])?(?P<date>.{6,24}?)[)\]]?(?: ?\([\w /]{2,20}\))? ?(?:--?|[–—:])\s"
)
_DASH = re.compile(r" (?:--?|[–—|]) |: ")
_HEAD_CHARS = 100  # a first line that is longer is a sentence of the text

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


def date_in_title(title: str) -> str | None:
    """The date that a title consists of, or begins or ends with beside a dash: `October 10 - births` gives `--10-10`.

    `September 11 attacks` gives none: there the date is the subject.
    """
    parts = _DASH.split(title.strip())
    found = {match for part in (parts[0], parts[-1]) if (match := _IN_WORDS.fullmatch(part.strip(" .()")))}
    dates = {date for match in found if (date := _said(match)) is not None}
    return dates.pop() if len(dates) == 1 else None


def date_in_head(text: str) -> str | None:
    """The date in a first line that stands for itself, or in the dateline of a report; only one with its year."""
    first, newline, _ = text.lstrip()[: _HEAD_CHARS + 1].partition("\n")
    found = date_in_title(first) if newline else None
    if found is None and (line := _DATELINE.match(text[:_HEAD_CHARS])):
        whole = _IN_WORDS.fullmatch(line["date"].strip())
        found = None if whole is None else _said(whole)
    return None if found is None or found.startswith("--") else found


def _said(match: re.Match[str]) -> str | None:
    if match["iso"]:
        return _iso(*match["iso"].split("-"))
    month, day, year = (match[f"{kind}1"] or match[f"{kind}2"] for kind in "mdy")
    if match["m3"]:
        month, day, year = match["m3"], None, match["y3"]
    number = str(_MONTHS.index(month[:3].lower()) + 1)
    if year:
        return _iso(year, number, day)
    known = _iso("2000", number, day)  # a leap year, so that it has a 29th of February
    return None if known is None else f"-{known[4:]}"


def _iso(year: str, month: str | None, day: str | None) -> str | None:
    try:
        whole = date(int(year), int(month or 1), int(day or 1)).isoformat()
    except ValueError:
        return None
    return whole[: 10 if day else 7 if month else 4]
