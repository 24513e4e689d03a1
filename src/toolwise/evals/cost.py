"""What answers cost, and what a right one costs: tokens, seconds, calls, money. From the rows of runs alone.

Tokens that a model reads (the prompt, results, its own calls as they are put in) and those that it chooses have prices
of their own, as servers have them; so has a call, by its tool. All that an arm spent on wrong answers is in what its
right ones cost.

Not covered: seconds are those that passed until an answer was there, while others were asked too; take them from a run
with `--at-once 1` where they matter. Training, and the machine that stands idle, cost nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from toolwise.evals.answers import Row
from toolwise.evals.compare import Arm
from toolwise.evals.intervals import Interval, Ratio, mean_interval, ratio_interval
from toolwise.evals.shown import markdown, share_cells

_THOUSAND = 1_000


@dataclass(frozen=True, slots=True)
class Prices:
    """In any one currency: of 1,000 tokens that are read, of 1,000 that are chosen, of a call, and of one by tool."""

    read: float = 0.0
    chosen: float = 0.0
    call: float = 0.0
    tools: Mapping[str, float] = field(default_factory=dict)

    def of(self, row: Row) -> float:
        calls = sum(self.tools.get(call["name"], self.call) for call in row["calls"])
        return (self.read * _read(row) + self.chosen * int(row["sampled"])) / _THOUSAND + calls


@dataclass(frozen=True, slots=True)
class Spent:
    """One kind of cost: in the mean of an answer, and all of it by the number of right answers (None: none is)."""

    answer: Interval
    right_answer: Ratio | None


@dataclass(frozen=True, slots=True)
class Cost:
    """A task in one arm. `score` against any of the others is a point of a plot."""

    task: str
    arm: str
    answers: int
    score: Interval
    read: Spent
    chosen: Spent
    seconds: Spent
    calls: Spent
    money: Spent


def costs(arms: Sequence[Arm], prices: Prices) -> list[Cost]:
    """Task by task, in the order in which they were asked, the arms in theirs."""
    tasks = dict.fromkeys(str(row["task"]) for arm in arms for row in arm.rows)
    return [
        _cost(task, arm.label, rows, prices)
        for task in tasks
        for arm in arms
        if (rows := [row for row in arm.rows if row["task"] == task])
    ]


def _cost(task: str, arm: str, rows: Sequence[Row], prices: Prices) -> Cost:
    right = [bool(row["right"]) for row in rows]
    score = mean_interval(right)
    assert score is not None

    def spent(values: Sequence[float]) -> Spent:
        mean = mean_interval(values)
        assert mean is not None
        return Spent(mean, ratio_interval(values, right))

    return Cost(
        task,
        arm,
        len(rows),
        score,
        spent([_read(row) for row in rows]),
        spent([row["sampled"] for row in rows]),
        spent([row["seconds"] for row in rows]),
        spent([len(row["calls"]) for row in rows]),
        spent([prices.of(row) for row in rows]),
    )


def _read(row: Row) -> int:
    """Tokens of the whole context that the model did not choose itself; what it chose of a call is put in again."""
    return max(0, int(row["fed"]) - int(row["sampled"]))


def table(found: Sequence[Cost]) -> str:
    """As Markdown: means of an answer, and what one right answer takes."""
    kinds = ("tokens read", "tokens chosen", "seconds", "calls", "money")
    head = ["task", "arm", "answers", "score", "95 %", *(f"{kind} an answer" for kind in kinds)]
    head += [cell for kind in kinds for cell in (f"{kind} a right answer", "95 %")]
    return markdown(head, [_cells(one) for one in found])


def _cells(one: Cost) -> list[str]:
    spent = (one.read, one.chosen, one.seconds, one.calls, one.money)
    cells = [
        one.task,
        one.arm,
        str(one.answers),
        *share_cells(one.score),
        *(_number(each.answer.mean) for each in spent),
    ]
    return [*cells, *(cell for each in spent for cell in _ratio_cells(each.right_answer))]


def _ratio_cells(ratio: Ratio | None) -> list[str]:
    if ratio is None:
        return ["–", "–"]
    return [_number(ratio.value), f"{_number(ratio.low)} to {'–' if ratio.high is None else _number(ratio.high)}"]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def as_json(found: Sequence[Cost]) -> list[dict[str, Any]]:
    return [asdict(one) for one in found]
