"""Calls that compute a number of the text: expressions over the numbers before it, which no model has to write.

Where a number follows, the expressions over numbers standing before it that come out at this number are proposed. That
is the paper's own rule for choosing calculator texts (appendix A), used to choose the calls; small models need it,
since they seldom write a right expression from a few examples. Small numbers in words are operands, too: `half as many`
is a division by 2.

Not covered: results rounded to other than two decimals, roots and powers, and numbers that the text names only later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from fractions import Fraction

from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS
from toolwise.core.schema import raw_argument
from toolwise.core.types import Tool
from toolwise.notation.inline import PLAIN, Notation, write_body
from toolwise.teach.corpus.numbers import Number, numbers
from toolwise.teach.prepare import Prepared
from toolwise.teach.propose import new_candidate
from toolwise.teach.records import Candidate


class EnumerateProposer:
    """Expressions over the numbers before a number, tried where they come out at it (to two decimals)."""

    name = "enumerate"

    def __init__(self, tool: Tool, notation: Notation = PLAIN, *, operands: int = 6, most: int = 2) -> None:
        """`operands`: how many distinct numbers before the position are combined; `most`: proposals a position."""
        argument = raw_argument(tool.parameters)
        if argument is None:
            raise BadInput(f"{tool.name} takes no expression; use the proposer `enumerate` for a calculator only.")
        self._tool = tool
        self._argument = argument
        self._notation = notation
        self._operands = operands
        self._most = most

    def propose(self, prepared: Prepared) -> list[Candidate]:
        text, calls = prepared.passage.text, prepared.passage.calls
        given = [(call.offset, number) for call in calls for number in numbers(call.result)]
        found, operands = numbers(text), _operands(text)
        position_at = {offset: i for i, offset in enumerate(prepared.offsets) if offset is not None}
        candidates = []
        for target in found:
            offset = word_start(text, target.start)
            position = position_at.get(offset)
            if position is None or position == 0:
                continue
            before = [number for number in operands if number.end <= target.start]
            if calls:
                expressions = self._standing(before, given, target, offset)
            else:
                expressions = [*_written_before(text[: target.start]), *self._expressions(before, target)]
            for expression in list(dict.fromkeys(expressions))[: self._most]:
                body = write_body(self._tool, {self._argument: expression}, self._notation)
                candidates.append(new_candidate(prepared, self._tool.name, position, body, self.name, None, None))
        return candidates

    def _standing(
        self, before: Sequence[Number], given: Sequence[tuple[int, Number]], target: Number, offset: int
    ) -> list[str]:
        """Expressions over what earlier calls gave; an earlier round has tried those over the text alone."""
        known = [(place, number) for place, number in given if place <= offset]
        together = sorted([*((number.end, number) for number in before), *known], key=lambda one: one[0])
        new = {abs(number.value) for _, number in known} - {abs(number.value) for number in before}
        return self._expressions([number for _, number in together], target, new)

    def _expressions(self, before: Sequence[Number], target: Number, over: Set[Fraction] | None = None) -> list[str]:
        """Expressions that come out at the target as it is written, those over the nearest numbers first.

        `over`: only those with one of these as an operand.
        """
        percent = target.text.endswith("%")
        wanted = round(abs(target.value) * (100 if percent else 1), 2)
        values: dict[Fraction, str] = {}
        for number in reversed(before):
            if round(abs(number.value), 2) != wanted:  # `24 * 1` would say what the text has said before
                values.setdefault(abs(number.value), _plain(number))
            if len(values) == self._operands:
                break
        operands, found = list(values.items()), []
        for i, j in _nearest_pairs(len(operands)):
            (a, a_text), (b, b_text) = operands[i], operands[j]
            if over is not None and not over & {a, b}:
                continue
            for operator, value in _results(a, b, in_order=i >= j):
                if round(value, 2) == wanted:
                    found.append(f"{a_text} {operator} {b_text}")
            if percent and b and round(a / b * 100, 2) == wanted:
                found.append(f"{a_text} / {b_text} * 100")
        if over is None:
            found.extend(_running_sums([number for number in before if not number.in_words], wanted))
        return list(dict.fromkeys(found))


_SMALL = "two three four five six seven eight nine ten eleven twelve"
_IN_WORDS = {
    **{word: number for number, word in enumerate(_SMALL.split(), 2)},
    **{"half": 2, "twice": 2, "double": 2, "doubled": 2, "triple": 3, "tripled": 3, "quarter": 4, "dozen": 12},
}
_WORD = re.compile(rf"\b(?:{'|'.join(_IN_WORDS)})\b", re.IGNORECASE)


def _operands(text: str) -> list[Number]:
    """The numbers of a text and those in words that it may compute with, in order."""
    values = ((word, _IN_WORDS[word[0].lower()]) for word in _WORD.finditer(text))
    in_words = (Number(word.start(), word.end(), Fraction(value), str(value), in_words=True) for word, value in values)
    return sorted([*numbers(text), *in_words], key=lambda number: number.start)


# One search for all of it, from the left, would read a line of numbers once for each of its numbers.
_EXPRESSION_BACKWARDS = re.compile(r"[\d.,%$()+*/x×÷−\s-]*+")
_EXPRESSION_START = re.compile(r"(?<![\w.])[$(\d]")
_OPERATOR = re.compile(r"([+*/x×÷−-])")
_BEFORE_NUMBER = re.compile(r" ?(?:[$€£]|(?<!\w)-)*\Z")
_SIGNS = {"x": "*", "×": "*", "÷": "/", "−": "-"}


def _written_before(text: str) -> list[str]:
    """The expression that the text itself has just written out, `12 * (3 + 4) =`, if it has."""
    tail = text[-LIMITS.expression_chars :]
    tail = (tail[:-1] if tail.endswith(("$", "€", "£")) else tail).rstrip()
    if not tail.endswith("="):
        return []
    tail = tail[:-1].rstrip()
    run = _EXPRESSION_BACKWARDS.match(tail[::-1])
    assert run is not None  # it matches nothing, too
    start = _EXPRESSION_START.search(tail, len(tail) - run.end())
    written = tail[start.start() :] if start else ""
    if len(written) < 2 or not (written[-1].isdecimal() or written[-1] in "%)") or written.strip("$").isdigit():
        return []
    spaced = _OPERATOR.sub(lambda found: f" {_SIGNS.get(found[1], found[1])} ", written.replace("$", ""))
    return [" ".join(spaced.split())]


def word_start(text: str, start: int) -> int:
    """Back from a number over its sign, currency and one space: ` $24` is one word, and the call stands before it.

    The hyphen of `10-20` is no sign.
    """
    before = _BEFORE_NUMBER.search(text, max(0, start - 4), start)
    return before.start() if before else start


def _plain(number: Number) -> str:
    """A number as an operand: no grouping and no sign; a percent sign stays."""
    return number.text.replace(",", "").lstrip("+-−")


def _nearest_pairs(count: int) -> Iterator[tuple[int, int]]:
    """All ordered pairs of 0..count-1, equal ones included (6 * 6), those with small numbers first."""
    for total in range(2 * count - 1):
        for j in range(max(0, total - count + 1), min(total + 1, count)):
            yield total - j, j


def _results(a: Fraction, b: Fraction, *, in_order: bool) -> Iterator[tuple[str, Fraction]]:
    """What a and b make; sums and products only in the order in which they stand in the text."""
    if in_order:
        yield "+", a + b
        yield "*", a * b
    if a != b:  # a - a and a / a compute nothing
        yield "-", a - b
        if b:
            yield "/", a / b


def _running_sums(before: Sequence[Number], wanted: Fraction) -> list[str]:
    """Sums of the last three or more numbers in a row."""
    found = []
    total = Fraction(0)
    for count, term in enumerate(reversed(before), 1):
        total += abs(term.value)
        if total > wanted + 1:  # no term takes away, so no longer sum comes back
            break
        if count >= 3 and round(total, 2) == wanted:
            found.append(" + ".join(map(_plain, before[-count:])))
    return found
