"""How an answer is read from what a model wrote: the paper's rules (section 4.2), pure functions of the text.

    InFirstWords    one of the answers stands in the first n words
    FirstNumber     the first number is the answer; where its sentence holds an equation, the first one behind the "="
    FirstDate       the first date written as MM/DD/YYYY is the answer

The paper says no more; the rest is decided here, on the side of strictness. A word is what white space separates and
holds a letter or digit. Whole words are compared; case, accents, articles and the punctuation around and between
letters do not count, but digits do: 1,000 is not 1, and 1-0 is not 10. A number is one in digits, with its sign,
commas, decimals and fraction; it may be rounded to two decimals or more, since the calculator rounds to two. An
equation behind the first number's sentence is not looked at.

Not covered: another way to say the same (two for 2, NYC for New York City), unless it is among the answers; answers in
scripts without spaces.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from toolwise.evals.tasks.base import Verdict
from toolwise.evals.tasks.numbers import Number, may_go_on, number_in
from toolwise.evals.tasks.words import Written

_WORD = re.compile(r"\S+")
_EQUALS = re.compile(r"(?<![<>!=])={1,2}(?![=>])")
#: A sentence goes on where an equation does: `5 ft. + 3 ft.` and, in the next line, `= 8 ft.`
_SENTENCE_END = re.compile(r"[.!?](?=\s+[^\s=+*/\u00d7\u00f7\u2212-])|\n(?=\s*[^\s=])")
_DATE = re.compile(r"(?<!\d)(\d{1,2})/(\d{1,2})/(\d{4})(?!\d)")


@dataclass(frozen=True, slots=True)
class InFirstWords:
    """One of the answers stands in the first `count` words, as whole words."""

    count: int

    @property
    def said(self) -> str:
        return f"an answer stands in the first {self.count} words"

    def judge(self, answers: Sequence[str], text: str, finished: bool) -> Verdict:
        written, read = Written(answers), list[str]()
        for match in _WORD.finditer(text):
            if match.end() == len(text) and not finished:
                break  # the word may go on
            if not written.add(match[0]):
                continue
            read.append(match[0])
            if written.answered or len(read) == self.count:
                return Verdict(written.answered, " ".join(read), settled=True)
        return Verdict(False, " ".join(read) or None, settled=finished)


@dataclass(frozen=True, slots=True)
class FirstNumber:
    """The first number is the answer, or the first one behind the "=" where its sentence holds an equation."""

    @property
    def said(self) -> str:
        return 'the first number is the answer; in an equation, the first one behind the "="'

    def judge(self, answers: Sequence[str], text: str, finished: bool) -> Verdict:
        found, alone = _answer(text)
        if found is None or (not finished and may_go_on(text, found)):
            return Verdict(False, None, settled=finished)
        right = any(_same(found, Fraction(answer)) for answer in answers)
        return Verdict(right, found.written, settled=alone or finished)


def _answer(text: str) -> tuple[Number | None, bool]:
    """The number that answers, and whether no text behind it can put another in its place."""
    first = number_in(text, 0, len(text))
    if first is None:
        return None, False
    begin = max((end.end() for end in _SENTENCE_END.finditer(text) if end.end() <= first.start), default=0)
    end = _SENTENCE_END.search(text, first.end)
    equals = _EQUALS.search(text, begin, end.start() if end else len(text))
    if equals is None:
        return first, end is not None
    right = len(text) - len(text[equals.end() :].lstrip())
    end = _SENTENCE_END.search(text, right)
    second = number_in(text, right, end.start() if end else len(text))
    return (second, True) if second else (first, end is not None)


def _same(read: Number, answer: Fraction) -> bool:
    """Whether they are equal, or one is the other rounded to the two or more decimals that were written."""
    return read.value == answer or (read.places >= 2 and abs(read.value - answer) * 10**read.places <= Fraction(1, 2))


@dataclass(frozen=True, slots=True)
class FirstDate:
    """The first date written as MM/DD/YYYY is the answer; leading zeros may be left out."""

    @property
    def said(self) -> str:
        return "the first date, written as MM/DD/YYYY, is the answer"

    def judge(self, answers: Sequence[str], text: str, finished: bool) -> Verdict:
        found = _DATE.search(text)
        if found is None or (not finished and found.end() == len(text)):
            return Verdict(False, None, settled=finished)
        read = [int(part) for part in found.groups()]
        right = any(read == [int(part) for part in answer.split("/")] for answer in answers)
        return Verdict(right, found[0], settled=True)
