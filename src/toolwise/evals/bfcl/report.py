"""Answers -> one line a category: how many are right, with a bootstrap interval, and how many got no answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolwise.core import jsonio
from toolwise.core.errors import ToolwiseError
from toolwise.core.schema import Validator
from toolwise.evals.bfcl.data import CATEGORIES
from toolwise.evals.intervals import mean_interval


@dataclass(frozen=True, slots=True)
class Line:
    """`right` is a share, with the bounds of its 95 % interval. `failed` got no answer, and are wrong; `began` began to
    call at all, of which `fit` made calls that fit their schemas; `cut` were cut off by the bound on tokens."""

    category: str
    asked: int
    right: float
    low: float
    high: float
    failed: int
    began: int
    fit: int
    cut: int


def lines(rows: Sequence[Mapping[str, Any]]) -> list[Line]:
    """In BFCL's order of categories."""
    found = []
    for category in CATEGORIES:
        of = [row for row in rows if row["category"] == category]
        if not of:
            continue
        right = mean_interval([bool(row["right"]) for row in of])
        assert right is not None
        replies = [row["reply"] for row in of if row["reply"] is not None]
        found.append(
            Line(
                category,
                len(of),
                right.mean,
                right.low,
                right.high,
                failed=sum(row["failed"] is not None for row in of),
                began=sum(bool(reply["calls"]) for reply in replies),
                fit=sum(_fits(row) for row in of),
                cut=sum(reply["stop"] == "length" for reply in replies),
            )
        )
    return found


def _fits(row: Mapping[str, Any]) -> bool:
    """Whether all calls of an answer would be executed as they are, right or not."""
    reply, schemas = row["reply"], {tool["name"]: tool["parameters"] for tool in row["tools"]}
    if reply is None or not reply["calls"] or reply["stop"] != "calls":
        return False
    try:
        for call in reply["calls"]:
            Validator(schemas[call["name"]]).validate(jsonio.loads(call["arguments"]))
    except (ToolwiseError, KeyError):
        return False
    return True


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """As Markdown."""
    head = ("category", "questions", "right", "95 %", "no answer", "began to call", "calls fit", "cut off")
    body = [
        (
            line.category,
            str(line.asked),
            f"{line.right:.1%}",
            f"{line.low:.1%} to {line.high:.1%}",
            *map(str, (line.failed, line.began, line.fit, line.cut)),
        )
        for line in lines(rows)
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *body))
