"""What the index of `Search` costs and finds, beside public packages, as Markdown. README.md says what is measured.

python run.py small   --data DATA --work FOLDER    10,000 passages
python run.py million --data DATA --work FOLDER    a million
python run.py answers --data DATA --work FOLDER    is the answer to a question in the top five passages?
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

import engines
import typer
from measure import Rows, megabytes
from million import write_million
from questions import SETS, Question, padded, questions, standing

from toolwise.core.types import Document
from toolwise.tools.index import Index, IndexSettings, build_index
from toolwise.tools.index.passages import cut

WIKI = "corpora/wiki_vital_en.jsonl.gz"
Data = Annotated[Path, typer.Option(help="The folder with corpora/ and eval/.")]
Work = Annotated[Path, typer.Option(help="Where corpora and indexes are made; what is whole there is not made again.")]
app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.command()
def small(data: Data, work: Work) -> None:
    """10,000 passages of Wikipedia's summaries, each a document."""
    work.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(work / "small", ignore_errors=True)
    with gzip.open(data / WIKI, "rt", encoding="utf-8") as lines:
        (work / "small.jsonl").write_text("".join(islice(_passages(lines), 10_000)), encoding="utf-8")
    _table(("", "10,000 passages"), _measured(data, work / "small.jsonl", work / "small"))


@app.command()
def million(data: Data, work: Work, passages: Annotated[int, typer.Option()] = 1_000_000) -> None:
    """A million passages, made out of the real ones."""
    work.mkdir(parents=True, exist_ok=True)
    corpus = work / f"{passages}.jsonl"
    if not corpus.exists():
        write_million(data, corpus.with_suffix(".part"), passages)
        os.replace(corpus.with_suffix(".part"), corpus)
    _table(("", f"{passages:,} passages"), _measured(data, corpus, work / f"index-{passages}"))


@app.command()
def answers(
    data: Data, work: Work, only: Annotated[str, typer.Option(help="What the name of a row begins with.")] = ""
) -> None:
    """The share of questions with an answer in the top five passages, ours and others over the same passages."""
    index = _wiki(data, work / "wiki", IndexSettings())
    found = [index.passage(number) for number in range(index.passages)]
    texts = [f"{one.title} {one.text}" for one in found]
    numbers = {one.id: number for number, one in enumerate(found)}
    sets = {name: questions(data, name) for name in SETS}
    plain = [padded(text) for text in texts]
    stand = standing(plain, {answer for asked in sets.values() for one in asked for answer in one.answers})
    rows = [
        ("questions", *(f"{len(asked):,}" for asked in sets.values()), "", ""),
        ("an answer stands in any passage", *_shares(sets, lambda one: not stand.isdisjoint(one.answers)), ""),
    ]
    made: dict[str, Callable[[], engines.Search]] = {
        "toolwise": lambda: _ours(index, numbers),
        "toolwise, k1 1.2 and b 0.75": lambda: _ours(
            _wiki(data, work / "wiki-lucene", IndexSettings(k1=1.2, b=0.75)), numbers
        ),
        "bm25s, its defaults (Lucene)": lambda: engines.bm25s_plain(texts),
        "bm25s with its stemmer": lambda: engines.bm25s_stemmed(texts),
        "rank-bm25, as in its README": lambda: engines.rank_bm25_plain(texts),
        "rank-bm25 over our terms": lambda: engines.rank_bm25_terms(texts),
    }
    for name, make in made.items():
        if not name.startswith(only):
            continue
        search, spent = make(), [0.0]

        def right(one: Question, search: engines.Search = search, spent: list[float] = spent) -> bool:
            started = time.process_time()
            best = search(one.text, 5)
            spent[0] += time.process_time() - started
            return any(_holds(one, plain[number]) for number in best)

        shares = _shares(sets, right)
        rows.append((name, *shares, f"{sum(map(len, sets.values())) / spent[0]:,.0f}"))
    _table(("in the top five", *SETS, "mean of the four", "queries a second of the processor"), rows)


def _wiki(data: Path, out: Path, settings: IndexSettings) -> Index:
    build_index([data / WIKI], out, settings)
    return Index.open(out)


def _ours(index: Index, numbers: dict[str, int]) -> engines.Search:
    return lambda query, k: [numbers[hit.id] for hit in index.search(query, k)]


def _shares(sets: dict[str, list[Question]], right: Callable[[Question], bool]) -> list[str]:
    shares = [sum(map(right, asked)) / len(asked) for asked in sets.values()]
    return [f"{100 * share:.1f} %" for share in (*shares, sum(shares) / len(shares))]


def _holds(question: Question, text: str) -> bool:
    return any(answer in text for answer in question.answers)


def _passages(lines: Iterator[str]) -> Iterator[str]:
    for number, row in enumerate(map(json.loads, lines)):
        for piece in cut(Document(str(number), row["text"], metadata={"title": row["title"]}), 100):
            yield json.dumps({"id": piece.id, "title": piece.title, "text": piece.text}) + "\n"


def _measured(data: Path, corpus: Path, out: Path) -> Rows:
    rows = [("corpus", megabytes(corpus.stat().st_size))]
    if not (out / "manifest.json").exists():
        rows += _apart("build", corpus, out)
    made = Index.open(out, verify=False).manifest
    rows.append(("passages, terms, postings", f"{made.passages:,}, {made.vocabulary:,}, {made.postings:,}"))
    rows.append(("index on disk", megabytes(made.size)))
    return rows + _apart("ask", out, data)


def _apart(what: str, *paths: Path) -> Rows:
    command = [sys.executable, str(Path(__file__).with_name("measure.py")), what, *map(str, paths)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)  # noqa: S603 - our own script
    return [(name, value) for name, value in json.loads(done.stdout)]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for row in (head, ["---"] * len(head), *rows):
        sys.stdout.write(f"| {' | '.join(row)} |\n")


if __name__ == "__main__":
    app()
