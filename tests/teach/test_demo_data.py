"""The demo corpus and its prompts: what they say is true, and each part is of use to the tool that it is meant for."""

from __future__ import annotations

import re
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from word_tokenizer import Words

from toolwise.core import jsonio
from toolwise.core.types import Document
from toolwise.documents import read_documents
from toolwise.teach.corpus.rules import calculator
from toolwise.teach.records import Passage
from toolwise.tools.calculator import calculate
from toolwise.tools.calendar import sentence

DATA = Path(str(files("toolwise"))) / "data"
EQUATION = re.compile(r"([0-9(][0-9.,()+x/ -]*) = ([0-9][0-9.]*[0-9])")
DAY = re.compile(r"\w+day, \w+ \d+, \d{4}")


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    return list(read_documents(DATA / "demo.jsonl"))


@pytest.fixture(scope="module")
def prompts() -> list[dict[str, Any]]:
    return [jsonio.loads(line) for line in (DATA / "demo_prompts.jsonl").read_text("utf-8").splitlines()]


def tried(document: Document) -> bool:
    return calculator(share=0)(Passage("p", document.id, 0, document.text), Words()) is None


def test_the_corpus_is_about_half_arithmetic_and_a_fifth_dates(documents: list[Document]) -> None:
    assert len(documents) >= 100
    assert all(40 <= len(document.text.split()) <= 90 for document in documents)
    assert 0.45 < sum(map(tried, documents)) / len(documents) < 0.6
    assert 0.15 < sum(document.date is not None for document in documents) / len(documents) < 0.25


def test_every_equation_in_the_corpus_is_right(documents: list[Document]) -> None:
    found = [(*match.groups(), one.id) for one in documents for match in EQUATION.finditer(one.text)]
    assert len(found) > 20
    for expression, result, id in found:
        assert float(calculate(expression)) == float(result), id


def test_every_dated_document_names_its_own_day_near_its_end(documents: list[Document]) -> None:
    for document in documents:
        if document.date is not None:
            (day,) = DAY.finditer(document.text)
            assert sentence(document.date) == f"Today is {day[0]}."
            assert day.start() > len(document.text) / 2


def test_the_answers_to_the_prompts_are_right_and_not_given_away(prompts: list[dict[str, Any]]) -> None:
    expressions = {
        "hall-chairs": "23 * 18",
        "sheep-fair": "512 - 137",
        "five-parcels": "3.2 + 4.1 + 2.9 + 5.6 + 4.4",
        "taxi-speed": "234 / 3",
        "lamp-sale": "240 * 15%",
        "glasses-of-water": "19 * 4",
        "three-heirs": "1296 / 3",
        "notebooks": "16 * 2.75",
    }
    assert {one["id"] for one in prompts if one["tool"] == "Calculator"} == set(expressions)
    for one in prompts:
        assert one["answer"] not in one["prompt"]
        assert one["prompt"] == one["prompt"].strip()
        if one["tool"] == "Calculator":
            assert calculate(expressions[one["id"]]) == one["answer"]
        if one["tool"] == "Calendar":
            assert sentence(one["date"]) == f"Today is {one['answer']}."
            assert date.fromisoformat(one["date"])
    assert sum(one["tool"] is None for one in prompts) == 2


def test_no_prompt_stands_in_the_corpus(documents: list[Document], prompts: list[dict[str, Any]]) -> None:
    days = {document.date for document in documents}
    for one in prompts:
        assert not any(one["prompt"][:30] in document.text for document in documents)
        assert one.get("date") not in days - {None}
