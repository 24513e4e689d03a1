"""Numbers in running text: `1,234.50`, `-3`, `11.4%`, `$5`. The one place that finds them.

Not covered: numbers written as words, numbers glued to letters (`5km`, `3rd`, scripts without spaces), decimal commas.
What only looks like a number (dates, times, versions, addresses, identifiers) is left out rather than guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from toolwise.core.limits import LIMITS

# Tried in this order at every place, so that what only holds digits is consumed before a number can be seen in it.
_SCAN = re.compile(
    r"""
      \w+://\S+                                             # addresses
    | \w*[^\W\d]\w*(?:-\w+)*                                # words: A4, 3rd, 20kg, covid-19
    | \#[0-9]+                                              # house and item numbers
    | [0-9]{4}([-/])[0-9]{1,2}\1[0-9]{1,2}(?![0-9])         # 2023-01-30
    | (?:19|20)[0-9]{2}-(?:0[1-9]|1[0-2])(?![0-9]|\s*=)     # 2023-01
    | [0-9]{1,2}([-/])[0-9]{1,2}\2[0-9]{4}(?![0-9])         # 30/01/2023
    | [0-9]{1,2}/[0-9]{1,2}/[0-9]{2}(?![0-9]|\s*=)          # 1/30/23
    | (?P<digits>\.?[0-9]+(?:[.,:'’\u00a0\u2009\u202f][0-9]+)*)(?P<percent>%)?(?P<glued>\w)?
    | \w+
    """,
    re.VERBOSE,
)
_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,2}(?:,[0-9]{3})+|[1-9][0-9]*)(?:\.[0-9]+)?|\.[0-9]+")
# A hyphen is a sign only where no other reading is left: behind a space or a bracket, and not behind an operand.
_SIGN = re.compile(r"(?:^|[^\s0-9%)][ \t]+|[(\[]|[=*/×÷+][ \t]*)[-−]\Z")


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a text: `text == whole[start:end]` with its sign and percent sign, without a currency sign.

    `value` is exact; `11.4%` is 0.114. `in_words`: it stands in words there, and `text` is how it is written in digits.
    """

    start: int
    end: int
    value: Fraction
    text: str
    in_words: bool = False

    @property
    def decimals(self) -> int:
        """Places behind the point of `value`, as written: 2 for `0.75` and for `75%`."""
        return len(self.text.rstrip("%").partition(".")[2]) + (2 if self.text.endswith("%") else 0)


def numbers(text: str) -> list[Number]:
    """The numbers of a text, in order: `1,234.50`, `-3`, `11.4%`; `$5` gives 5, `10-20` gives 10 and 20."""
    return list(_numbers(text))


def _numbers(text: str) -> Iterator[Number]:
    for match in _SCAN.finditer(text):
        digits = match["digits"]
        if digits is None or match["glued"] or len(digits) > LIMITS.number_digits or not _NUMBER.fullmatch(digits):
            continue
        start, end = match.start(), match.end()
        if digits[0] == "." and start > 0 and (text[start - 1].isalnum() or text[start - 1] == "."):
            continue  # `no.5`
        value = Fraction(digits.replace(",", "")) / (100 if match["percent"] else 1)
        if _SIGN.search(text[max(0, start - 8) : start]):
            start, value = start - 1, -value
        yield Number(start, end, value, text[start:end])
