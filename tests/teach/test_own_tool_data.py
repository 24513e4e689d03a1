"""The texts that come with the tutorial name a sum, a rate and a time, and then the interest that these make."""

from fractions import Fraction
from itertools import permutations
from pathlib import Path

import pytest

from toolwise.documents import read_documents
from toolwise.models.toolbox import toolbox
from toolwise.teach.corpus.numbers import numbers

FOLDER = Path(__file__).parents[2] / "examples" / "own_tool"
TEXTS = {document.id: document.text for document in read_documents(FOLDER / "loans.jsonl")}


def test_there_are_enough_texts_of_which_few_hold_nothing_to_work_out() -> None:
    assert len(TEXTS) == 43
    assert sum("%" not in text for text in TEXTS.values()) == 3


@pytest.mark.parametrize("name", [name for name, text in TEXTS.items() if "%" in text])
def test_the_interest_of_a_text_is_right_and_named_last(name: str) -> None:
    interest = toolbox([str(FOLDER / "mine.py")]).registry["Interest"].run
    found = [(abs(n.value) * (100 if n.text.endswith("%") else 1), n.text.endswith("%")) for n in numbers(TEXTS[name])]
    right = [
        said
        for index, (said, _) in enumerate(found)
        for (principal, _), (rate, percent), (years, _) in permutations(found[:index], 3)
        if percent and Fraction(interest(principal=principal, rate=rate, years=years)) == said
    ]
    assert right, "no number results from three that stand before it"


@pytest.mark.parametrize("prompt", (FOLDER / "prompts.txt").read_text("utf-8").splitlines())
def test_no_prompt_is_in_the_texts(prompt: str) -> None:
    known = [{number.value for number in numbers(text)} for text in TEXTS.values()]
    own = {number.value for number in numbers(prompt)}
    assert not own or not any(own <= values for values in known)
