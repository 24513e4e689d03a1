"""Numbers as a text writes them: digits with sign, currency, commas, decimals, an exponent, a fraction.

`1,000.50`, `-$8`, `.5`, `1e3`, `1/2`, `2 1/2` and `2½` are one number each; `10/2` is a division whose first number is
10. Digits behind a Latin letter (`B12`) are a name.

Not covered: a comma for decimals, spaces between thousands, numbers in words.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

_VULGAR = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_START = r"(?<![A-Za-z\d_])(?<!\d[.,])"
_DECIMAL = re.compile(
    _START + r"(?P<whole>\d{1,3}(?:,\d{3})+(?!\d)|\d+|(?=\.\d))(?P<decimals>\.\d+)?(?P<power>[eE][+-]?\d{1,2}(?!\d))?"
)
_FRACTION = re.compile(
    rf"(?:(?P<ones>\d+) ?)?(?P<vulgar>[{_VULGAR}])|(?:(?P<units>\d+) )?(?P<over>\d+)/(?P<under>\d+)(?![\d/])"
)
_FIRST = re.compile(_START + rf"(?:\d|\.\d|[{_VULGAR}])")
_MINUS = re.compile(r"(?<![\w)\]])[$€£¥]?[-\u2212][$€£¥]?$")
#: What all of a number's continuations begin with; a line's end is none of it.
_GOES_ON = re.compile(rf"[\d.,/eE+ {_VULGAR}-]*")


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a text, and where it ends. `places` counts the decimals that were written."""

    value: Fraction
    written: str
    places: int
    start: int
    end: int


def number_in(text: str, start: int, end: int) -> Number | None:
    """The first number that begins and ends there."""
    first = _FIRST.search(text, start, end)
    if first is None:
        return None
    at = first.start()
    negative = _MINUS.search(text, 0, at) is not None
    value, stop, places = _fraction(text, at, end) or _decimal(text, at, end)
    written = ("-" if negative else "") + text[at:stop]
    return Number(-value if negative else value, written, places, at, stop)


def may_go_on(text: str, number: Number) -> bool:
    """Whether more text could make another number of it."""
    return _GOES_ON.fullmatch(text, number.end) is not None


def _fraction(text: str, at: int, end: int) -> tuple[Fraction, int, int] | None:
    match = _FRACTION.match(text, at, end)
    if match is None:
        return None
    if match["vulgar"]:
        part = Fraction(unicodedata.numeric(match["vulgar"])).limit_denominator(10)
        return int(match["ones"] or 0) + part, match.end(), 0
    units, over, under = int(match["units"] or 0), int(match["over"]), int(match["under"])
    if under == 0 or over % under == 0 or (units and over > under):
        return None
    return units + Fraction(over, under), match.end(), 0


def _decimal(text: str, at: int, end: int) -> tuple[Fraction, int, int]:
    match = _DECIMAL.match(text, at, end)
    assert match is not None  # a digit stands there, or a point and a digit
    decimals = match["decimals"] or ""
    plain = (match["whole"].replace(",", "") or "0") + decimals + (match["power"] or "")
    return Fraction(plain), match.end(), max(len(decimals) - 1, 0)
