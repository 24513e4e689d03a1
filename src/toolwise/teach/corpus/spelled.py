"""Numbers that a text has in another spelling than `numbers` reads: `forty-two`, `3 million`, `1e3`, `20kg`, `20th`.

For comparing what two texts speak of, where a number too many does less harm than one too few; not for computing.

Not covered: numbers below ten in words alone (`one` is hardly ever one), fractions (`two thirds`), ordinals and years
in words, other languages than English.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from fractions import Fraction

from toolwise.core.limits import LIMITS

_WORDS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty thirty forty fifty sixty seventy eighty ninety
"""
_ADDED = dict(zip(_WORDS.split(), [*range(20), *range(20, 100, 10)], strict=True))
_TIMES = {"hundred": 100, "dozen": 12}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_ALONE = 10  # from where a number in words counts

_MOST = f"{{1,{LIMITS.number_digits}}}"  # whole numbers of thousands of digits are none that Python reads
_DIGITS = rf"[0-9]{_MOST}(?:,[0-9]{{3}}){{0,9}}(?:\.[0-9]{_MOST})?"
_SCALE = "|".join((*_TIMES, *_SCALES))
_IN_WORDS = "|".join(sorted((*_ADDED, *_TIMES, *_SCALES), key=len, reverse=True))  # the longest first: sixty, six
_SPELLED = re.compile(
    rf"""
    (?<![\w.,-])
    (?: (?P<power> {_DIGITS}e[+-]?[0-9]{{1,2}})
      | (?P<glued> {_DIGITS}) [^\W\d_]{{1,3}}
      | (?P<words> (?:{_DIGITS}[ -](?={_SCALE}))? (?:{_IN_WORDS}) (?:(?:-|\s(?:and\s)?)(?:{_IN_WORDS}))*)
    )
    (?!\w)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SPLIT = re.compile(r"(?:-|\s)(?:and\s)?")
_GROUPING = re.compile(r"(?<=[0-9])['’\u00a0\u2009\u202f](?=[0-9]{3}(?![0-9]))")


def plain(text: str) -> str:
    """The text without what does not change its words: accents, widths of letters, marks that nobody sees."""
    if text.isascii():
        return _GROUPING.sub(",", text)
    composed = unicodedata.normalize("NFKC", _GROUPING.sub(",", text))
    return "".join(c for c in unicodedata.normalize("NFD", composed) if unicodedata.category(c) not in ("Mn", "Cf"))


def spelled(text: str) -> Iterator[tuple[int, Fraction]]:
    """Where each such number of a `plain` text ends, and what it is."""
    for match in _SPELLED.finditer(text):
        if words := match["words"]:
            value = _said(words.lower())
            if value >= _ALONE:
                yield match.end(), value
        else:
            yield match.end(), Fraction((match["power"] or match["glued"]).replace(",", ""))


def _said(words: str) -> Fraction:
    whole = part = Fraction()
    for word in _SPLIT.split(words):
        if word in _SCALES:
            whole, part = whole + (part or 1) * _SCALES[word], Fraction()
        elif word in _TIMES:
            part = (part or Fraction(1)) * _TIMES[word]
        else:
            part += _ADDED[word] if word in _ADDED else Fraction(word.replace(",", ""))
    return whole + part
