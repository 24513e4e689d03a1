"""Are the calls of a run good ones? Told from its rows alone: no model is asked.

    well formed     it was closed, and reads as a call
    known tool      and names a tool that there was
    valid           and its arguments fit the tool
    succeeded       and the tool gave a result
    used            and a number of the result, or a word of it that the question does not have, stands behind the call

Each is a share of all calls, and holds only what those before it hold. Of the answers with a call:

    changed         another answer is read than with calls disabled
    better, worse   wrong without and right with it; right without and wrong with it
    right           whatever it was without

Not covered: a result that is used in other words (nine for 9), and what would have been written later: an answer ends
as soon as its verdict is settled. Of a long result some word may stand there by chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from toolwise.core.errors import BadInput, InvalidArguments, MalformedCall, TruncatedCall, UnknownTool
from toolwise.evals.answers import Row
from toolwise.evals.compare import Arm
from toolwise.evals.intervals import Interval, mean_interval
from toolwise.evals.shown import markdown, share_cells
from toolwise.evals.tasks.numbers import number_in

#: What a call failed at, in the order in which the gate looks.
_STEPS = ((MalformedCall.code, TruncatedCall.code), (UnknownTool.code,), (InvalidArguments.code,))
_WORD = re.compile(r"[^\W\d_]{4,}")
_COMMON = frozenset(
    {"today", "that", "this", "with", "from", "have", "were", "there", "which", "they", "what", "answer"}
)


@dataclass(frozen=True, slots=True)
class Quality:
    """A task's calls in one arm; None where there are none, or no answers with calls disabled to hold them against."""

    task: str
    arm: str
    answers: int
    with_call: int
    calls: int
    well_formed: Interval | None
    known_tool: Interval | None
    valid: Interval | None
    succeeded: Interval | None
    used: Interval | None
    changed: Interval | None
    better: Interval | None
    worse: Interval | None
    right: Interval | None


def qualities(arms: Sequence[Arm], against: Sequence[Arm] = ()) -> list[Quality]:
    """Of every arm that may call, task by task. Its answers are held against those of the arm in `against`, or else of
    an arm among `arms` itself, in which the same model was asked the same questions with calls disabled.

    Raises BadInput where all arms have calls disabled.
    """
    calling = [arm for arm in arms if _may_call(arm)]
    if not calling:
        raise BadInput("In none of these runs might the model call; name one in which it might.")
    silent = [arm for arm in (against or arms) if not _may_call(arm)]
    tasks = dict.fromkeys(str(row["task"]) for arm in calling for row in arm.rows)
    return [
        _quality(task, arm, rows, _disabled(arm, silent))
        for task in tasks
        for arm in calling
        if (rows := [row for row in arm.rows if row["task"] == task])
    ]


def _may_call(arm: Arm) -> bool:
    return bool(arm.settings["decode"]["enabled"])


def _disabled(arm: Arm, silent: Sequence[Arm]) -> Mapping[tuple[str, str, str], Row]:
    """The same model's answers with calls disabled, by what was asked."""
    same = [other for other in silent if other.settings["model"] == arm.settings["model"]]
    return {_asked(row): row for other in same[:1] for row in other.rows}


def _asked(row: Row) -> tuple[str, str, str]:
    return str(row["task"]), str(row["id"]), str(row["prompt"])


def _quality(task: str, arm: Arm, rows: Sequence[Row], disabled: Mapping[tuple[str, str, str], Row]) -> Quality:
    calls = [(row, call) for row in rows for call in row["calls"]]
    passed = [steps(row, call) for row, call in calls]
    with_call = [row for row in rows if row["calls"]]
    pairs = [(disabled[_asked(row)], row) for row in with_call if _asked(row) in disabled]
    well_formed, known_tool, valid, succeeded, used = (
        mean_interval([count > step for count in passed]) for step in range(5)
    )
    return Quality(
        task,
        arm.label,
        len(rows),
        len(with_call),
        len(calls),
        well_formed,
        known_tool,
        valid,
        succeeded,
        used,
        changed=mean_interval([before["read"] != row["read"] for before, row in pairs]),
        better=mean_interval([row["right"] and not before["right"] for before, row in pairs]),
        worse=mean_interval([before["right"] and not row["right"] for before, row in pairs]),
        right=mean_interval([bool(row["right"]) for row in with_call]),
    )


def steps(row: Row, call: Mapping[str, Any]) -> int:
    """How many of the five things hold of a call, each with those before it."""
    code = call.get("code", TruncatedCall.code)
    for number, codes in enumerate(_STEPS):
        if code in codes:
            return number
    if code is not None:
        return len(_STEPS)
    return 5 if is_used(str(call["result"]), str(row["text"])[call["at"] :], str(row["prompt"])) else 4


def is_used(result: str, behind: str, prompt: str) -> bool:
    """Whether a number of the result, or a word that the prompt does not have, stands in the text behind the call."""
    words = _words(result) - _words(prompt) - _COMMON
    return bool(set(_numbers(result)) & set(_numbers(behind)) or words & _words(behind))


def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(text))


def _numbers(text: str) -> Iterator[Fraction]:
    at = 0
    while (found := number_in(text, at, len(text))) is not None:
        yield found.value
        at = found.end


def table(found: Sequence[Quality]) -> str:
    """As Markdown, in per cent."""
    head = ["task", "arm", "answers", "with a call", "calls"]
    names = ("well formed", "known tool", "valid", "succeeded", "used", "changed", "better", "worse", "right")
    head += [cell for name in names for cell in (name, "95 %")]
    return markdown(head, [_cells(one) for one in found])


def _cells(one: Quality) -> list[str]:
    shares = [one.well_formed, one.known_tool, one.valid, one.succeeded, one.used]
    shares += [one.changed, one.better, one.worse, one.right]
    counts = [str(count) for count in (one.answers, one.with_call, one.calls)]
    return [one.task, one.arm, *counts, *(cell for share in shares for cell in share_cells(share))]


def as_json(found: Sequence[Quality]) -> list[dict[str, Any]]:
    return [asdict(one) for one in found]
