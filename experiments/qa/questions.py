"""The questions of five data sets with the answers that count, and whether one stands in a text."""

from __future__ import annotations

import gzip
import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

OPEN = ("webquestions", "nq_open", "triviaqa", "lama_squad")
READING = "xquad_en"
_SIGN = re.compile(r"[^\w\s]")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


@dataclass(frozen=True)
class Question:
    name: str
    number: int
    text: str
    answers: tuple[str, ...]  # aliases count

    def answered_by(self, text: str) -> bool:
        """Whether one of the answers stands in the text."""
        return any(answer.strip() and answer in padded(text) for answer in map(padded, self.answers))


def sample(data: Path, name: str, count: int, seed: int) -> list[Question]:
    """`count` questions of a set, or all there are, in an order of their own."""
    every = [Question(name, number, text, tuple(answers)) for number, (text, answers) in enumerate(_pairs(data, name))]
    order = np.random.default_rng([seed, *name.encode()]).permutation(len(every))
    return [every[number] for number in order[:count]]


def paragraphs(data: Path) -> list[str]:
    """The texts that the questions of `xquad_en` were asked about."""
    return list(dict.fromkeys(row["context"] for row in _rows(data, READING)))


def _rows(data: Path, name: str) -> Iterator[dict]:
    path = data / "eval" / f"{name}.jsonl"
    with gzip.open(f"{path}.gz", "rt", encoding="utf-8") if name == READING else path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _pairs(data: Path, name: str) -> Iterator[tuple[str, list[str]]]:
    for row in _rows(data, name):
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
            case "lama_squad":  # "Newton played as [MASK]." is asked as "Newton played as what?"
                yield re.sub(r"\s*\.$", "?", row["masked_sentences"][0].replace("[MASK]", "what")), [row["obj_label"]]
            case "xquad_en":
                yield row["question"], row["answers"]


def padded(text: str) -> str:
    """SQuAD's normalisation (case, signs, articles go), accents too, between two spaces: whole words are compared."""
    plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(c))
    return f" {' '.join(_ARTICLE.sub(' ', _SIGN.sub(' ', plain)).split())} "
