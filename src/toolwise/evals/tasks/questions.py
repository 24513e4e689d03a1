"""Questions without a text to read: WebQuestions (Berant et al. 2013), NQ (open; Kwiatkowski et al. 2019, Lee et al.
2019) and TriviaQA (Joshi et al. 2017)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from toolwise.evals.tasks.base import Example, Row, Table, Task, gather
from toolwise.evals.tasks.rules import InFirstWords

PROMPT = "Answer the following question: {question}"
_LETTER = re.compile(r"[^\W_]")
_TRIVIA = re.compile(r"Question: (.*)\nAnswer:", re.DOTALL)


def asked(question: str) -> str:
    """The prompt for a question; as in the paper, with a question mark where it has none."""
    question = question.strip()
    return PROMPT.format(question=question if question.endswith("?") else f"{question}?")


def _example(id_: str, question: str, answers: list[str]) -> Example | str:
    words = tuple(dict.fromkeys(answer for answer in answers if _LETTER.search(answer)))
    return Example(id_, asked(question), words) if words else "no_answer"


def _webquestions(number: str, row: Row) -> Example | str:
    return _example(row.get("qId") or number, row["qText"], row["answers"])


def _nq(number: str, row: Row) -> Example | str:
    return _example(number, row["question"], row["answer"])


def _triviaqa(number: str, row: Row) -> Example | str:
    match = _TRIVIA.fullmatch(row["context"])
    if match is None:
        raise ValueError("not as lm-evaluation-harness writes it")
    return _example(number, match[1], [row["answer"], *row["aliases"]])


def _hub_webquestions(row: Row) -> Row:
    return {"qText": row["question"], "answers": row["answers"]}


def _hub_triviaqa(row: Row) -> Row:
    answer = row["answer"]
    context = f"Question: {row['question']}\nAnswer:"
    return {"context": context, "answer": answer["value"], "aliases": answer["aliases"]}


def _task(name: str, said: str, make: Callable[[str, Row], Example | str], table: Table) -> Task:
    load = partial(gather, table=table, make=make)
    return Task(name, said, True, PROMPT, InFirstWords(20), load, 96, (table,), without=("QA",))


TASKS = (
    _task(
        "webquestions",
        "Questions that people asked Google, answered from Freebase",
        _webquestions,
        Table("webquestions.jsonl", "hub:stanfordnlp/web_questions:default:test", _hub_webquestions),
    ),
    _task(
        "nq",
        "Questions that people asked Google, answered from Wikipedia",
        _nq,
        Table("nq_open.jsonl", "hub:google-research-datasets/nq_open:nq_open:validation"),
    ),
    _task(
        "triviaqa",
        "Quiz questions, with every alias of the answer",
        _triviaqa,
        Table("triviaqa.jsonl", "hub:mandarjoshi/trivia_qa:rc.nocontext:validation", _hub_triviaqa),
    ),
)
