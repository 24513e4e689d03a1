"""A million passages out of the real ones: repeated, with a fifth of their words exchanged, some for new ones.

So no two passages are equal, frequent words stay frequent, and the vocabulary grows with the corpus, as in real text.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path

CORPORA = ("wiki_vital_en", "days_in_history_en", "factbook", "sotu")
_SYLLABLES = [a + b for a in "bdfgklmnprstv" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]


def write_million(data: Path, out: Path, wanted: int) -> None:
    """`wanted` passages of 20 to 100 words as lines of JSON."""
    pieces = list(_pieces(data))
    words = [word for _, text in pieces for word in text.split()]
    random_ = random.Random(4)  # noqa: S311 - nothing secret
    with out.open("w", encoding="utf-8") as stream:
        for number in range(wanted):
            title, text = pieces[number % len(pieces)]
            said = [_exchanged(word, words, random_) for word in text.split()]
            stream.write(
                json.dumps({"id": str(number), "title": title, "text": " ".join(said)}, ensure_ascii=False) + "\n"
            )


def _exchanged(word: str, words: list[str], random_: random.Random) -> str:
    chance = random_.random()
    if chance < 0.02:
        return "".join(random_.choices(_SYLLABLES, k=3)).capitalize()
    if chance < 0.03:
        return str(random_.randrange(1_000_000))
    return random_.choice(words) if chance < 0.2 else word


def _pieces(data: Path) -> Iterator[tuple[str, str]]:
    for name in CORPORA:
        with gzip.open(data / "corpora" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                words = row["text"].split()
                for start in range(0, len(words), 90):
                    if len(part := words[start : start + 90]) >= 20:
                        yield row.get("title") or "", " ".join(part)
