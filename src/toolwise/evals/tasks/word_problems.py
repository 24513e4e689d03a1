"""Sums told as a story: ASDiv (Miao et al. 2020), SVAMP (Patel et al. 2021) and MAWPS (Koncel-Kedziorski et al. 2016).

Only problems with one number for an answer are taken, since the rule reads one number: ASDiv also asks who has more, at
what time, in which ratio, and for several numbers at once. MAWPS comes as Calc-MAWPS has it (Kadlčík et al. 2023): the
paper does not say which of its parts it took.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from toolwise.evals.tasks.base import Example, Row, Table, Task, gather
from toolwise.evals.tasks.rules import FirstNumber

PROMPT = "{text} {question} The answer is"
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:/[1-9]\d*)?)\s*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?")


def _example(id_: str, text: str, question: str, answer: Any, kind: str) -> Example | str:
    number = _number(answer)
    if number is None:
        return "not_one_number"
    prompt = PROMPT.format(text=text.strip(), question=question.strip()).strip()
    return Example(id_, prompt, (number,), {"type": kind} if kind else {})


def _number(answer: Any) -> str | None:
    """The one number of `9 (apples)`, `3,000`, `5/2`, `51.0`; None for anything else."""
    match = _NUMBER.fullmatch(str(answer).strip().replace(",", ""))
    return match[1].removesuffix(".0") if match else None


def _problem(number: str, row: Row) -> Example | str:
    return _example(row.get("id") or number, row.get("body", ""), row["question"], row["answer"], row.get("type", ""))


def _hub_asdiv(row: Row) -> Row:
    return {**row, "type": row["solution_type"]}


def _hub_calc(row: Row) -> Row:
    return {"id": row["id"], "question": row["question"], "answer": row["result"]}


def _task(name: str, said: str, hub: str, shape: Callable[[Row], Row]) -> Task:
    table = Table(f"{name}.jsonl", hub, shape)
    load = partial(gather, table=table, make=_problem)
    return Task(name, said, True, PROMPT, FirstNumber(), load, 96, (table,))


TASKS = (
    _task("asdiv", "Word problems of many kinds", "hub:EleutherAI/asdiv:asdiv:validation", _hub_asdiv),
    _task("svamp", "Word problems that mislead", "hub:MU-NLPC/Calc-svamp:original-splits:test", _hub_calc),
    _task("mawps", "Word problems of school books", "hub:MU-NLPC/Calc-mawps:original-splits:test", _hub_calc),
)
