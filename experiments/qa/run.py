"""How well QA answers: the index finds, a language model reads. Prints Markdown.

    python run.py --data DATA --work FOLDER [--model smollm2-135m] [--questions 150] [--seed 0] [--report]

A line a question in FOLDER/SEED.jsonl; killed, it goes on behind the last one. `--report` prints what is there already.
Five sets: four of open questions over the summaries of `wiki_vital_en`, most of which hold no answer to them, and
`xquad_en` over its own paragraphs, where there always is one. Every answer is kept with its score, so that the share of
"none" can be looked at for any threshold; beside it stands what the model writes freely behind the same prompt.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from questions import OPEN, READING, Question, paragraphs, sample

from toolwise.models.base import Session
from toolwise.models.load import load_model
from toolwise.models.readers.lm import LEAST, LMReader
from toolwise.models.readers.spans import Start
from toolwise.tools.index import Hit, Index, build_index
from toolwise.tools.qa import passage_of

TOP, READ = 5, 3
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--questions", type=int, default=150, help="of each set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sets", nargs="*", default=[*OPEN, READING])
    parser.add_argument("--least", type=float, default=LEAST, help="an answer that scores below counts as none")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    out = options.work / f"{options.seed}.jsonl"
    if not options.report:
        ask(options, out)
    report(read(out), options.sets, options.least)


class Kept(LMReader):
    """Answers however unsure it is, and keeps the sessions that have read passage and question, and how far."""

    starts: list[tuple[Start, int]]

    def _start(self, *given: Any) -> Start:
        start = super()._start(*given)
        self.starts.append((start, len(start.session.ids)))
        return start


def ask(options: argparse.Namespace, out: Path) -> None:
    done = {(row["set"], row["number"]) for row in read(out)}
    asked = [sample(options.data, name, options.questions, options.seed) for name in options.sets]
    waiting = [q for each in zip(*(pad(one, max(map(len, asked))) for one in asked), strict=True) for q in each if q]
    waiting = [question for question in waiting if (question.name, question.number) not in done]
    indexes = {name: index_for(options, name) for name in options.sets}
    model = load_model(options.model, threads=1)
    reader = Kept(lambda: model, least=-1_000)
    with out.open("a", encoding="utf-8") as stream:
        for question in waiting:
            stream.write(json.dumps(answered(question, indexes[question.name], reader, model)) + "\n")
            stream.flush()


def answered(question: Question, index: Index, reader: Kept, model: Any) -> Row:
    started = time.process_time()
    found = index.search(question.text[:1000], TOP)
    searched = time.process_time()
    reader.starts = []
    answer = reader.read(question.text, found[:READ]) if found else None
    told = time.process_time()
    free = freely(reader.starts, found[:READ], model)
    return {
        **{"set": question.name, "number": question.number, "question": question.text, "answers": question.answers[:5]},
        "in_top": question.answered_by(" | ".join(map(whole, found))),
        "in_read": question.answered_by(" | ".join(map(whole, found[:READ]))),
        **({"answer": answer.text, "title": answer.hit.title, "score": answer.score} if answer else {"answer": None}),
        "right": bool(answer) and question.answered_by(answer.text),
        "free": free,
        "free_right": bool(free) and question.answered_by(free),
        "seconds": {"search": searched - started, "read": told - searched, "free": time.process_time() - told},
    }


def freely(starts: Sequence[tuple[Start, int]], found: Sequence[Hit], model: Any) -> str | None:
    """Of what the model writes greedily behind each passage, the likeliest that stands in one of them."""
    said = [(*written(start.session, length, model), start.bonus) for start, length in starts]
    standing = [(score + bonus, text) for text, score, bonus in said if passage_of(text, found)]
    return max(standing)[1] if standing else None


def written(session: Session, length: int, model: Any) -> tuple[str, float]:
    session.rewind(length)
    ids: list[int] = []
    score = 0.0
    ends = {model.tokenizer.encode("\n")[0], *model.tokenizer.end}
    for _ in range(16):
        logits = session.logits().astype(np.float64)
        token = int(logits.argmax())
        score -= np.log(np.exp(logits - logits.max()).sum())
        if token in ends:
            break
        ids.append(token)
        session.feed([token])
    return model.tokenizer.decode(ids).strip().partition("\n")[0], float(score)


def whole(hit: Hit) -> str:
    return f"{hit.title} | {hit.text}"


def index_for(options: argparse.Namespace, name: str) -> Index:
    if name != READING:
        build_index([options.data / "corpora" / "wiki_vital_en.jsonl.gz"], options.work / "wiki")
        return Index.open(options.work / "wiki")
    texts = options.work / "paragraphs.jsonl"
    lines = [json.dumps({"id": str(number), "text": text}) for number, text in enumerate(paragraphs(options.data))]
    texts.write_text("\n".join(lines) + "\n", encoding="utf-8")
    build_index([texts], options.work / "paragraphs")
    return Index.open(options.work / "paragraphs")


def pad(questions: list[Question], size: int) -> list[Question | None]:
    return [*questions, *[None] * (size - len(questions))]


def read(out: Path) -> list[Row]:
    """The lines that are whole; a kill may leave half a one, which is asked again."""
    if not out.exists():
        return []
    text = out.read_text(encoding="utf-8")
    if not text.endswith("\n"):
        text = text[: text.rfind("\n") + 1]
        out.write_text(text, encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def report(rows: list[Row], sets: Sequence[str], least: float) -> None:
    by_set = [[row for row in rows if row["set"] == name] for name in sets]

    def told(row: Row) -> bool:
        return row["answer"] is not None and row["score"] >= least

    def line(name: str, of: Callable[[Row], bool], hit: Callable[[Row], bool]) -> None:
        say(f"| {name} | {' | '.join(share([hit(row) for row in part if of(row)]) for part in by_set)} |")

    say(f"| answers that score {least:g} or more | {' | '.join(sets)} |\n|{' --- |' * (len(sets) + 1)}")
    say(f"| questions | {' | '.join(str(len(part)) for part in by_set)} |")
    line("(a) answer in the top five passages", lambda row: True, lambda row: row["in_top"])
    line("- in the three that are read", lambda row: True, lambda row: row["in_read"])
    line("(b) answer in the reader's", lambda row: True, lambda row: told(row) and row["right"])
    line("(c) the reader says none", lambda row: True, lambda row: not told(row))
    line("(b) given (a)", lambda row: row["in_top"], lambda row: told(row) and row["right"])
    line(
        "- given that the answer is among what is read",
        lambda row: row["in_read"],
        lambda row: told(row) and row["right"],
    )
    line("(c) given (a)", lambda row: row["in_top"], lambda row: not told(row))
    line("right where it answers", told, lambda row: row["right"])
    line(
        "no threshold: right given that it is among what is read", lambda row: row["in_read"], lambda row: row["right"]
    )
    line("- written freely", lambda row: row["in_read"], lambda row: row["free_right"])
    line("- written freely, and in no passage", lambda row: row["in_read"], lambda row: row["free"] is None)
    for part in ("search", "read", "free"):
        say(f"| {part}: processor seconds, median | {' | '.join(median(rows_, part) for rows_ in by_set)} |")


def share(hits: list[bool]) -> str:
    """Per cent, with the middle 95 % of a thousand samples drawn from the same questions."""
    if not hits:
        return "-"
    drawn = np.random.default_rng(0).choice(hits, (1000, len(hits)))
    low, high = np.quantile(drawn.mean(axis=1), [0.025, 0.975])
    return f"{100 * sum(hits) / len(hits):.0f} % ({100 * low:.0f} to {100 * high:.0f}), {sum(hits)}"


def median(rows: list[Row], part: str) -> str:
    return f"{np.median([row['seconds'][part] for row in rows]):.2f}" if rows else "-"


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
