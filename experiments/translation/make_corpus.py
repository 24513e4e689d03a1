"""English paragraphs with a Spanish or French sentence put in, for teaching Translate.

python make_corpus.py --data DATA --out corpus.jsonl [--documents 400] [--seed 0]

Where an article has the same title in both languages, the first sentence of the foreign summary is put in front of the
first English one, which says about the same. Half of the documents are of each language; lines hold id, title, text,
language, source, and the sentence that was put in. The same seed gives the same file. The text is CC BY-SA 4.0.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from toolwise.core.jsonio import loads
from toolwise.tools.language import languages

SURE = 0.8
WORDS = range(8, 41)  # of a sentence that is put in: ten tokens can be told, and a call has to hold it
# A stop behind a year or a small letter, in front of a capital: no initial, no abbreviation of one letter.
_END = re.compile(r"(?<=[a-zà-ÿ0-9)»”]{2}[.!?])\s+(?=[A-ZÀ-Ý«“¿¡])")
LANGUAGES = ("es", "fr")


def main(
    data: Annotated[Path, typer.Option(help="The folder with corpora/.")],
    out: Annotated[Path, typer.Option(help="The JSONL file to write.")],
    documents: Annotated[int, typer.Option()] = 400,
    seed: Annotated[int, typer.Option()] = 0,
) -> None:
    english = {row["title"]: row for row in read(data, "en")}
    rows = [row for code in LANGUAGES for row in drawn(english, data, code, documents // len(LANGUAGES), seed)]
    random.Random(seed).shuffle(rows)  # noqa: S311
    with out.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    told = ", ".join(f"{sum(row['language'] == code for row in rows)} {code}" for code in LANGUAGES)
    typer.echo(f"{len(rows)} documents ({told}), {sum(len(row['text'].split()) for row in rows):,} words: {out}")


def drawn(english: dict[str, Any], data: Path, code: str, count: int, seed: int) -> list[dict[str, str]]:
    """`count` documents with a sentence of one language, in the order of the draw."""
    pairs = sorted((row["title"], row["text"]) for row in read(data, code) if row["title"] in english)
    chance = random.Random(f"{seed} {code}")  # noqa: S311
    chance.shuffle(pairs)
    made: dict[str, dict[str, str]] = {}
    for title, text in pairs:
        if len(made) < count and title not in made and (sentence := usable(text, code)):
            whole = english[title]["text"].strip()
            made[title] = {
                "id": f"{code}/{title}",
                "title": title,
                "text": f"{sentence} {whole}",
                "language": code,
                "put_in": sentence,
                "source": f"Wikipedia, vital articles, en and {code}, CC BY-SA 4.0",
            }
    return list(made.values())


def usable(text: str, code: str) -> str | None:
    """The first sentence, if it is of a fitting length and surely of this language, brackets left out."""
    first = re.sub(r"\s*[\[(][^\])]*[\])]", "", _END.split(text.strip())[0]).strip()
    guess = languages(first)
    fits = len(first.split()) in WORDS and first.endswith(".") and not re.search(r"[\[\]()]", first)
    return first if fits and guess.code == code and guess.probability > SURE else None


def read(data: Path, code: str) -> Iterator[Any]:
    with gzip.open(data / f"corpora/wiki_vital_{code}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            yield loads(line)


if __name__ == "__main__":
    typer.run(main)
