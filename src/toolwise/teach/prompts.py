"""What a model is shown so that it proposes calls, one prompt a tool: an instruction and a few worked examples.

The layout is the paper's (appendix A.2): the text once as input, then again as output with calls in it. Wording and
examples are ours. `call_wording` and `result_wording` say in plain words what a call and its result say in the
notation: a model that has never seen the notation finds them easier to use (`wording = "plain"`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prompt:
    """`examples` pairs a plain text with the same text with calls (without results) written into it.

    In `call_wording` and `result_wording`, `{input}` is the raw argument text of the call and `{result}` its result.
    """

    tool: str
    instruction: str
    examples: tuple[tuple[str, str], ...]
    call_wording: str
    result_wording: str

    def head(self) -> str:
        """The part that all texts share."""
        shown = "".join(f"Input:\n{plain}\nOutput:\n{called}\n\n" for plain, called in self.examples)
        return f"{self.instruction}\n\n{shown}"

    def body(self, text: str) -> str:
        """The part that belongs to one text; the text itself follows once more, as far as the position."""
        return f"Input:\n{text}\nOutput:\n"

    def described(self) -> list[str]:
        """All that a model can be shown of it: part of a run's fingerprint."""
        return [self.head(), self.body(""), self.call_wording, self.result_wording]


CALCULATOR = Prompt(
    tool="Calculator",
    instruction=(
        "Add calls to a calculator to a piece of text where a result has to be worked out. "
        'A call is written "[Calculator(expression)]" and stands right before the number that it computes. '
        "The expression uses numbers that the text has named before. Here are some examples."
    ),
    examples=(
        (
            "The hall has 24 rows of 18 seats, which makes 432 places in all.",
            "The hall has 24 rows of 18 seats, which makes [Calculator(24 * 18)] 432 places in all.",
        ),
        (
            "Of the 650 letters that were sent out, 91 were answered, a rate of 14%.",
            "Of the 650 letters that were sent out, 91 were answered, a rate of [Calculator(91 / 650 * 100)] 14%.",
        ),
        (
            "She paid $12.50 for the book and $3.20 for the pen, so she spent $15.70 that morning.",
            "She paid $12.50 for the book and $3.20 for the pen, so she spent [Calculator(12.50 + 3.20)] $15.70 "
            "that morning.",
        ),
        (
            "The bridge was opened in 1931 and closed in 1978 after 47 years of service.",
            "The bridge was opened in 1931 and closed in 1978 after [Calculator(1978 - 1931)] 47 years of service.",
        ),
        (
            "Three loaves took 1,350 grams of flour. Each of them took 1350/3 = 450 grams.",
            "Three loaves took 1,350 grams of flour. Each of them took 1350/3 = [Calculator(1350 / 3)] 450 grams.",
        ),
    ),
    call_wording="{input}.",
    result_wording="{input} = {result}.",
)

CALENDAR = Prompt(
    tool="Calendar",
    instruction=(
        "Add calls to a calendar to a piece of text where knowing today's date helps to go on. "
        'A call is written "[Calendar()]", takes nothing, and returns the date on which the text was written. '
        "Here are some examples."
    ),
    examples=(
        (
            "The shop has been open since 2011, for twelve years now.",
            "The shop has been open since 2011, for [Calendar()] twelve years now.",
        ),
        (
            "The committee meets again tomorrow, Tuesday the 14th of March.",
            "The committee meets again tomorrow, [Calendar()] Tuesday the 14th of March.",
        ),
        (
            "During the present year, 1884, the revenue was larger than ever.",
            "During the present year, [Calendar()] 1884, the revenue was larger than ever.",
        ),
        (
            "Only nine days are left until Christmas.",
            "Only [Calendar()] nine days are left until Christmas.",
        ),
    ),
    call_wording="What is the date today?",
    result_wording="{result}",
)

PROMPTS: Mapping[str, Prompt] = {prompt.tool: prompt for prompt in (CALCULATOR, CALENDAR)}
