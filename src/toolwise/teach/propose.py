"""Where a call could stand, and what it could say. Whoever proposes, the same filter decides.

`LMProposer` is the paper's (section 2, sampling): positions where the open marker is likely, then samples from there.
`EnumerateProposer` needs no language model: where a number follows, it names the expressions over numbers standing
before it that come out at this number. That is the paper's own rule for choosing calculator texts, used to choose the
calls; small models need it, since they seldom write a right expression from a few examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Protocol

from toolwise.core.errors import BadInput, InvalidArguments, MalformedCall
from toolwise.core.limits import LIMITS
from toolwise.core.types import Tool
from toolwise.models.base import Branch, Context, LanguageModel, Sampling, marker_id
from toolwise.notation.inline import PLAIN, Notation, read_arguments, read_body, scan, write_body
from toolwise.teach.config import Settings, ToolSettings
from toolwise.teach.corpus.rules import Number, numbers
from toolwise.teach.prepare import Prepared
from toolwise.teach.prompts import Prompt
from toolwise.teach.records import Candidate


class Proposer(Protocol):
    """Proposes candidates for one passage; those that are no calls at all come back with their reason."""

    @property
    def name(self) -> str: ...

    def propose(self, prepared: Prepared) -> list[Candidate]: ...


class LMProposer:
    """The paper's sampling, for one tool. With `sampled` False the model only says where to call.

    That is enough for a tool without arguments: there is one call to write, and a small model would seldom write it.
    """

    def __init__(
        self,
        model: LanguageModel,
        tool: Tool,
        prompt: Prompt,
        settings: Settings,
        notation: Notation = PLAIN,
        *,
        sampled: bool = True,
    ) -> None:
        if not sampled and tool.parameters.get("properties"):
            raise BadInput(f"{tool.name} takes arguments, so its calls must be sampled; use the proposer `lm`.")
        self.name = "lm" if sampled else "lm_positions"
        self._sampled = sampled
        self._model = model
        self._tool = tool
        self._prompt = prompt
        self._settings = settings
        self._own: ToolSettings = settings.tools[tool.name]
        self._notation = notation
        self._marker = marker_id(model.tokenizer, notation)
        self._sampling = Sampling(
            self._own.m,
            (self._marker,),
            stop=lambda text: scan(text, notation) is not None,
            max_tokens=settings.call_tokens,
            temperature=settings.temperature,
            seed=settings.seed,
        )
        self._head = model.tokenizer.begin + model.tokenizer.encode(prompt.head())

    def propose(self, prepared: Prepared) -> list[Candidate]:
        shown = self._model.tokenizer.encode(self._prompt.body(prepared.passage.text))
        context = Context(self._head, shown, prepared.ids)
        probs = self._model.marker_probs([context], self._marker)[0]
        chosen, candidates = [], []
        for position in self._positions(prepared, probs.tolist()):
            if self._settings.early_bounds and prepared.loss_none[position] < self._own.floor:
                # gain <= loss_none, since losses are never negative: nothing written here could be kept
                candidates.append(self._candidate(prepared, position, "", probs[position], "bound"))
            else:
                chosen.append(position)
        if not self._sampled:
            body = write_body(self._tool, {}, self._notation)
            return candidates + [self._candidate(prepared, i, body, float(probs[i]), None) for i in chosen]
        for position, row in zip(chosen, self._model.branch(context, chosen, self._sampling), strict=True):
            candidates.extend(self._read(prepared, position, branch, float(probs[position])) for branch in row)
        return candidates

    def _positions(self, prepared: Prepared, probs: Sequence[float]) -> list[int]:
        """At most k positions whose marker probability is above tau_s, likeliest first; ties to the earlier one."""
        first = 0 if self._model.tokenizer.begin else 1  # without a BOS the first token has no loss to lower
        possible = [
            i for i in range(first, len(prepared.ids)) if prepared.offsets[i] is not None and probs[i] > self._own.tau_s
        ]
        return sorted(sorted(possible, key=lambda i: -probs[i])[: self._own.k])

    def _read(self, prepared: Prepared, position: int, branch: Branch, prob: float) -> Candidate:
        end = scan(branch.text, self._notation) if branch.stopped else None
        if end is None or end.kind == "newline":
            return self._candidate(prepared, position, branch.text, prob, "unclosed")
        written = branch.text[: end.at].strip()
        try:
            name, raw = read_body(written, self._notation)
            if name != self._tool.name:
                return self._candidate(prepared, position, written, prob, "unknown_tool")
            body = write_body(self._tool, read_arguments(raw, self._tool, self._notation), self._notation)
        except (MalformedCall, InvalidArguments):
            return self._candidate(prepared, position, written, prob, "unparsable")
        return self._candidate(prepared, position, body, prob, None)

    def _candidate(self, prepared: Prepared, position: int, body: str, prob: float, reason: str | None) -> Candidate:
        return new_candidate(prepared, self._tool.name, position, body, self.name, float(prob), reason)


class EnumerateProposer:
    """Expressions over the numbers before a number, tried where they come out at it (to two decimals)."""

    name = "enumerate"

    def __init__(self, tool: Tool, *, operands: int = 6, most: int = 2) -> None:
        """`operands`: how many distinct numbers before the position are combined; `most`: proposals a position."""
        self._tool = tool
        self._operands = operands
        self._most = most

    def propose(self, prepared: Prepared) -> list[Candidate]:
        text = prepared.passage.text
        found = numbers(text)
        position_at = {offset: i for i, offset in enumerate(prepared.offsets) if offset is not None}
        candidates = []
        for index, target in enumerate(found):
            offset = word_start(text, target.start)
            position = position_at.get(offset)
            if position is None or position == 0:
                continue
            written = _written_before(text[: target.start])
            expressions = [*written, *self._expressions(found[:index], target)]
            for expression in list(dict.fromkeys(expressions))[: self._most]:
                body = write_body(self._tool, {"expression": expression})
                candidates.append(new_candidate(prepared, self._tool.name, position, body, self.name, None, None))
        return candidates

    def _expressions(self, before: Sequence[Number], target: Number) -> list[str]:
        """Expressions that come out at the target as it is written, those over the nearest numbers first."""
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
            for operator, value in _results(a, b, in_order=i >= j):
                if round(value, 2) == wanted:
                    found.append(f"{a_text} {operator} {b_text}")
            if percent and b and round(a / b * 100, 2) == wanted:
                found.append(f"{a_text} / {b_text} * 100")
        found.extend(_running_sums(before, wanted))
        return list(dict.fromkeys(found))


# One search for all of it, from the left, would read a line of numbers once for each of its numbers.
_EXPRESSION_BACKWARDS = re.compile(r"[\d.,%$()+*/x×÷−\s-]*+")
_EXPRESSION_START = re.compile(r"(?<![\w.])[$(\d]")
_OPERATOR = re.compile(r"([+*/x×÷−-])")
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


def new_candidate(
    prepared: Prepared, tool: str, position: int, body: str, proposer: str, prob: float | None, reason: str | None
) -> Candidate:
    offset = prepared.offsets[position]
    assert offset is not None
    return Candidate(prepared.passage.id, tool, position, offset, body, proposer, prob, reason=reason)


def word_start(text: str, start: int) -> int:
    """Back from a number over its currency sign and one space: ` $24` is one word, and the call stands before it."""
    while start > 0 and text[start - 1] in "$€£-":
        start -= 1
    return start - 1 if start > 0 and text[start - 1] == " " else start


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
