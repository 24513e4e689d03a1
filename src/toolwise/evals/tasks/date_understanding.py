"""BIG-bench's date understanding (Srivastava et al. 2022): dates to work out from a few sentences.

BIG-bench lets a model choose among dates; here it writes one. Which day it is follows from the text, never from the
calendar.
"""

from __future__ import annotations

import re
from functools import partial

from toolwise.evals.tasks.base import Example, Row, Table, Task, gather
from toolwise.evals.tasks.questions import PROMPT, asked
from toolwise.evals.tasks.rules import FirstDate

_CHOICES = re.compile(r"\n\s*(?:choice:|A:).*", re.DOTALL)


def _date(number: str, row: Row) -> Example | str:
    right = tuple(date for date, score in row["target_scores"].items() if score == 1)
    return Example(number, asked(row["input"]), right) if right else "no_answer"


def _hub(row: Row) -> Row:
    question = _CHOICES.sub("", row["inputs"]).strip().removeprefix("Q:").strip()
    return {
        "input": question,
        "target_scores": dict(zip(row["multiple_choice_targets"], row["multiple_choice_scores"], strict=True)),
    }


_TABLE = Table("date_understanding.jsonl", "hub:tasksource/bigbench:date_understanding:train+validation", _hub)

TASKS = (
    Task(
        "date-understanding",
        "Dates to work out from a few sentences",
        False,
        PROMPT,
        FirstDate(),
        partial(gather, table=_TABLE, make=_date),
        96,
        (_TABLE,),
    ),
)
