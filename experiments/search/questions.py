"""The questions of four data sets, and whether one of their answers stands in a passage."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

SETS = ("webquestions", "nq_open", "triviaqa", "lama_squad")
_SIGN = re.compile(r"[^\w\s]")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


@dataclass(frozen=True)
class Question:
    text: str
    answers: tuple[str, ...]  # normalised, each with a space on both sides


def questions(data: Path, name: str) -> list[Question]:
    """All questions of a set."""
    lines = (data / "eval" / f"{name}.jsonl").read_text("utf-8").splitlines()
    found = [Question(text, tuple(padded(answer) for answer in answers)) for text, answers in _pairs(name, lines)]
    return [Question(one.text, tuple(a for a in one.answers if a.strip())) for one in found]


def _pairs(name: str, lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    for row in map(json.loads, lines):
        match name:
            case "webquestions":
                yield row["qText"], row["answers"]
            case "nq_open":
                yield row["question"], row["answer"]
            case "triviaqa":
                yield (
                    row["context"].removeprefix("Question: ").removesuffix("\nAnswer:"),
                    [row["answer"], *row["aliases"]],
                )
            case "lama_squad":
                yield row["masked_sentences"][0].replace("[MASK]", " "), [row["obj_label"]]


def padded(text: str) -> str:
    """SQuAD's normalisation (no case, signs, articles), without accents, between spaces: whole words are compared."""
    plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(c))
    return f" {' '.join(_ARTICLE.sub(' ', _SIGN.sub(' ', plain)).split())} "


def standing(texts: Iterable[str], answers: set[str]) -> set[str]:
    """The answers that stand in one of the texts, all of them padded."""
    sizes = {len(answer.split()) for answer in answers}
    found: set[str] = set()
    for words in map(str.split, texts):
        for size in sizes:
            runs = (f" {' '.join(words[at : at + size])} " for at in range(len(words) - size + 1))
            found.update(run for run in runs if run in answers)
    return found
