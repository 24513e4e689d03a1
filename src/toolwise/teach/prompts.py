"""What a model is shown so that it proposes calls, one prompt a tool: an instruction and a few worked examples.

The layout is the paper's (appendix A.2): the text once as input, then again as output with calls in it. Wording and
examples are ours. `call_wording` and `result_wording` say in plain words what a call and its result say in the
notation: a model that has never seen the notation finds them easier to use (`wording = "plain"`).

`draft.py` makes the prompt of a tool that has none here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolwise.notation.inline import strip


@dataclass(frozen=True, slots=True)
class Prompt:
    """`examples` are texts with calls (without results) written into them.

    In `call_wording` and `result_wording`, `{input}` is the one argument of the call, or all of them as written, and
    `{result}` its result.
    """

    tool: str
    instruction: str
    examples: tuple[str, ...]
    call_wording: str
    result_wording: str

    def head(self) -> str:
        """The part that all texts share."""
        shown = "".join(f"Input:\n{strip(called)}\nOutput:\n{called}\n\n" for called in self.examples)
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
        "The hall has 24 rows of 18 seats, which makes [Calculator(24 * 18)] 432 places in all.",
        "Of the 650 letters that were sent out, 91 were answered, a rate of [Calculator(91 / 650 * 100)] 14%.",
        "She paid $12.50 for the book and $3.20 for the pen, so she spent [Calculator(12.50 + 3.20)] $15.70 "
        "that morning.",
        "The bridge was opened in 1931 and closed in 1978 after [Calculator(1978 - 1931)] 47 years of service.",
        "Three loaves took 1,350 grams of flour. Each of them took 1350/3 = [Calculator(1350 / 3)] 450 grams.",
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
        "The shop has been open since 2011, for [Calendar()] twelve years now.",
        "The committee meets again tomorrow, [Calendar()] Tuesday the 14th of March.",
        "During the present year, [Calendar()] 1884, the revenue was larger than ever.",
        "Only [Calendar()] nine days are left until Christmas.",
    ),
    call_wording="What is the date today?",
    result_wording="{result}",
)

SEARCH = Prompt(
    tool="Search",
    instruction=(
        "Add searches in an encyclopedia to a piece of text where what is found there helps to go on. "
        'A search is written "[Search(words to look for)]" and stands right before what it finds out. '
        "It names what it is about in a few words that the text has used before. Here are some examples."
    ),
    examples=(
        "The Danube rises in [Search(Danube source)] the Black Forest and flows through ten countries.",
        "Marie Curie, born in [Search(Marie Curie birthplace)] Warsaw, moved to Paris in 1891.",
        "Photosynthesis takes place in [Search(photosynthesis in plant cells)] the chloroplasts of a leaf.",
        "The second largest city of Norway is [Search(largest cities of Norway)] Bergen, on the west coast.",
        "Don Quixote was written by [Search(Don Quixote author)] Miguel de Cervantes.",
    ),
    call_wording="",
    result_wording="{result}",
)

QA = Prompt(
    tool="QA",
    instruction=(
        "Add questions to a piece of text where their answer helps to go on. "
        'A question is written "[QA(question)]" and stands right before the words that answer it. '
        "It can be understood without the text: it names what it asks about. Here are some examples."
    ),
    examples=(
        "The Danube rises in [QA(Where does the Danube rise?)] the Black Forest and flows through ten countries.",
        "Marie Curie, born in [QA(In which city was Marie Curie born?)] Warsaw, moved to Paris in 1891.",
        "Saturn has rings that are made of [QA(What are the rings of Saturn made of?)] ice and rock.",
        "The second largest city of Norway is [QA(What is the second largest city of Norway?)] Bergen.",
        "Don Quixote was written by [QA(Who wrote Don Quixote?)] Miguel de Cervantes in 1605.",
    ),
    call_wording="{input}",
    result_wording="{input} {result}",
)

TRANSLATE = Prompt(
    tool="Translate",
    instruction=(
        "Add translations into English to a piece of text where some words are in another language. "
        'A call is written "[Translate(words)]", stands right behind these words, and repeats them exactly. '
        "Here are some examples."
    ),
    examples=(
        "Over the door stood «La maison est ouverte» [Translate(La maison est ouverte)], the house is open.",
        "Her motto was poco a poco se va lejos, [Translate(poco a poco se va lejos)] little by little one goes far.",
        "The song is called Die Gedanken sind frei [Translate(Die Gedanken sind frei)] (Thoughts are free).",
        "El perro duerme en el jardín. [Translate(El perro duerme en el jardín.)] The dog sleeps in the garden.",
    ),
    call_wording="{input}",
    result_wording="{input} means {result}",
)

PROMPTS: Mapping[str, Prompt] = {p.tool: p for p in (CALCULATOR, CALENDAR, SEARCH, QA, TRANSLATE)}
