"""Which passages are tried for a tool.

A rule reads a passage and gives None to try it, or the code of the reason to leave it out: `no_numbers`,
`few_numbers`, `no_arithmetic` (calculator), `no_date` (calendar), `no_foreign` (foreign). Source: Toolformer, section
3.1 and appendix A.

Not covered: what `corpus.numbers` does not take for a number.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from toolwise.core.errors import BadInput
from toolwise.notation.segments import Tokenizer
from toolwise.teach.corpus.languages import Tell, mixes_languages
from toolwise.teach.corpus.numbers import Number, numbers
from toolwise.teach.records import Passage
from toolwise.tools.language import languages

Rule = Callable[[Passage, Tokenizer], str | None]

#: The paper's distance between the numbers of one computation, in tokens.
WINDOW = 100

_ANNOUNCED = re.compile(r"(?:=|\bequals|\bequal to|\btotal of|\baverage of)\s*[$€£¥]?\s*\Z", re.IGNORECASE)


def always(passage: Passage, tokenizer: Tokenizer) -> str | None:
    """Every passage."""
    return None


def calendar(passage: Passage, tokenizer: Tokenizer) -> str | None:
    """Passages of documents with a date."""
    return None if passage.date is not None else "no_date"


def foreign(detect: Tell = languages) -> Rule:
    """Passages in which a piece of another language stands between English text."""

    def rule(passage: Passage, tokenizer: Tokenizer) -> str | None:
        return None if mixes_languages(passage.text, detect) else "no_foreign"

    return rule


def calculator(seed: int = 0, share: float = 0.01) -> Rule:
    """The paper's rule for calculator texts.

    A passage is tried when a number follows "=", "equals", "equal to", "total of" or "average of"; or when of three
    numbers within 100 tokens one results from an operation on the other two; of the other passages with at least
    three numbers a `share`, drawn by `seed` and the passage's id alone.
    """

    def rule(passage: Passage, tokenizer: Tokenizer) -> str | None:
        found = numbers(passage.text)
        if found and numbers(passage.given(len(passage.text))):  # what an earlier call gave can be computed with
            return None
        if not found:
            return "no_numbers"
        if any(_ANNOUNCED.search(passage.text, max(0, number.start - 24), number.start) for number in found):
            return None
        if len(found) < 3:
            return "few_numbers"
        if _holds_a_result(found, _token_positions(passage.text, found, tokenizer)):
            return None
        return None if _drawn(passage.id, seed, share) else "no_arithmetic"

    return rule


def rule_named(name: str, seed: int = 0) -> Rule:
    """The rule `always`, `calculator`, `calendar` or `foreign`. Raises BadInput for another name."""
    rules = {"always": always, "calculator": calculator(seed), "calendar": calendar, "foreign": foreign()}
    if name not in rules:
        raise BadInput(f"there is no rule {name!r}; use one of {', '.join(rules)}")
    return rules[name]


def _token_positions(text: str, found: Sequence[Number], tokenizer: Tokenizer) -> list[int]:
    """How many tokens stand before each number, the text being encoded once, from number to number."""
    positions, tokens, at = [], 0, 0
    for number in found:
        tokens += len(tokenizer.encode(text[at : number.start]))
        at = number.start
        positions.append(tokens)
    return positions


def _holds_a_result(found: Sequence[Number], positions: Sequence[int]) -> bool:
    """Whether one of three numbers within the window is the other two added, subtracted, multiplied or divided.

    `x op y = z` can be turned so that any two of the three are the operands, so exact results are found from the first
    number of a triple on. A number with decimals may also be a rounded result, if it stands behind an operand.
    """
    places = max(number.decimals for number in found)
    unit = 10**places  # whole numbers of the smallest place are much faster than fractions
    values = [int(number.value * unit) for number in found]
    # What a result must be to be this number: itself (step 0), or itself when rounded to a multiple of a step.
    forms = [
        {(0, value)} | ({(10 ** (places - number.decimals), value)} if number.decimals else set())
        for number, value in zip(found, values, strict=True)
    ]
    for i, first in enumerate(values):
        window = range(i + 1, bisect_right(positions, positions[i] + WINDOW))
        known = Counter(form for j in window for form in forms[j])
        steps = {step for step, _ in known if step}
        for j in window:
            for over, under in _operations(first, values[j], unit):
                results = {(step, (2 * over + under * step) // (2 * under * step) * step) for step in steps}
                if over % under == 0:
                    results.add((0, over // under))
                if any(known[form] > (form in forms[j]) for form in results):
                    return True
    return False


def _operations(a: int, b: int, unit: int) -> Iterator[tuple[int, int]]:
    """What the two give, as fractions of whole numbers of units, positive under the line.

    Left out is what computes nothing: adding 0, multiplying by 0 or 1, dividing by 1 or by itself.
    """
    if a and b:
        yield a + b, 1
    if not {a, b} & {0, unit}:
        yield a * b, unit
    for x, y in ((a, b), (b, a)):
        if y and x != y:
            yield x - y, 1
            if x and y != unit:
                yield (x * unit, y) if y > 0 else (-x * unit, -y)


def _drawn(id: str, seed: int, share: float) -> bool:
    digest = hashlib.sha256(f"{seed}:{id}".encode()).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64
