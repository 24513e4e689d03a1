"""Does a model call when it should? Calling held against need, for every threshold at which a call may start.

    need         the answer is wrong with calls disabled, and right with a call that some threshold of the curve starts
    precision    of the answers with a call, the share that needed one
    recall       of those that needed one, the share with a call

A threshold decides by comparing: what was decoded with one holds for all between the same two probabilities. So each
question is decoded once for every way in which its thresholds decide, and what these have in common once
(`remembering.py`); the curve is the one that decoding with each threshold would give.

A threshold is best on the questions that it was chosen on. What it is worth on others is told by halves: chosen on
one, its score is that on the other.

Not covered: whether a question needs *this* call. One that is answered by chance where a call stands counts as needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

from toolwise.core.errors import BadInput
from toolwise.evals.answers import Row
from toolwise.evals.asking import Asking, ask
from toolwise.evals.intervals import Interval, mean_interval, paired_interval
from toolwise.evals.remembering import Remembering
from toolwise.evals.shown import between, markdown, percent, share_cells
from toolwise.evals.tasks.base import Example, Task
from toolwise.gate.gate import Gate
from toolwise.models.base import Writer

#: From a marker that is hardly thought of to one that is nearly certain.
THRESHOLDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
_ANSWER = ("written", "text", "calls", "right", "read", "stop", "sampled", "fed")
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Point:
    """The answers at one threshold; None is with calls disabled. `called` is the share with a call, `gain` how much
    better the score is than with calls disabled, and `harmed` the share of the answers with a call that were right
    without it and are wrong with it. `calls_per_right` is None where nothing is right."""

    threshold: float | None
    asked: int
    called: Interval
    score: Interval
    gain: Interval
    precision: Interval | None
    recall: Interval | None
    f1: float | None
    harmed: float | None
    calls: int
    calls_per_right: float | None


@dataclass(frozen=True, slots=True)
class Chosen:
    """A threshold, and the score of the rule on questions that it did not choose on."""

    rule: str
    threshold: float
    held_out: Interval | None


def _score(point: Point) -> float:
    return point.score.mean


def _f1(point: Point) -> float:
    return point.f1 or 0.0


#: What the best threshold is best by; of equals the one with the fewest calls, then the highest.
RULES: Mapping[str, Callable[[Point], float]] = MappingProxyType({"score": _score, "f1": _f1})


def sweep(
    model: Writer,
    example: Example,
    task: Task,
    gate: Gate,
    asking: Asking,
    run_id: str,
    thresholds: Sequence[float] = THRESHOLDS,
) -> Row:
    """One question with calls disabled and at every threshold, as `asking.ask` answers it, in one row.

    `enabled` holds an answer for thresholds `above` one probability (None: from 0 on) and `up_to` another (None: to 1),
    with what is `likely`: the marker's probability wherever a call might have started.
    """
    told, begun = Remembering(model), asking.clock.monotonic()

    def answer(name: str, likely: Callable[[float], None], **decode: Any) -> Row:
        way = replace(asking, decode=replace(asking.decode, **decode))
        return ask(told, example, task, gate, way, f"{run_id}:{name}", likely)

    disabled = answer("disabled", lambda probability: None, enabled=False)
    enabled: list[dict[str, Any]] = []
    for threshold in sorted(thresholds, reverse=True):
        if enabled and _holds(enabled[-1], threshold):
            continue
        likely: list[float] = []
        row = answer(f"{threshold}", likely.append, start_threshold=threshold)
        above = max((each for each in likely if each < threshold), default=None)
        up_to = min((each for each in likely if each >= threshold), default=None)
        shown = [round(each, _DIGITS) for each in likely]
        enabled.append({"above": above, "up_to": up_to, "likely": shown, **_answer(row)})
    return {
        **{name: row[name] for name in ("id", "task", "prompt", "answers", "about")},
        "disabled": _answer(disabled),
        "enabled": enabled,
        "computed": told.computed,
        "seconds": round(asking.clock.monotonic() - begun, 4),
    }


def _answer(row: Row) -> dict[str, Any]:
    return {name: row[name] for name in _ANSWER}


def _holds(span: Mapping[str, Any], threshold: float) -> bool:
    above, up_to = span["above"], span["up_to"]
    return (above is None or above < threshold) and (up_to is None or threshold <= up_to)


def answer_at(row: Row, threshold: float | None) -> Mapping[str, Any]:
    """The answer that a row holds for a threshold; None is with calls disabled. Raises BadInput for one that was not
    among those of the run, and is between others of them."""
    if threshold is None:
        found: Mapping[str, Any] = row["disabled"]
        return found
    for span in row["enabled"]:
        if _holds(span, threshold):
            held: Mapping[str, Any] = span
            return held
    raise BadInput(f"Nothing was asked at a threshold of {threshold:g}; name it with --thresholds, in another folder.")


def needs_call(row: Row) -> bool:
    """Whether the answer is wrong with calls disabled, and right with a call at some threshold."""
    return not row["disabled"]["right"] and any(span["right"] and span["calls"] for span in row["enabled"])


def curve(rows: Sequence[Row], thresholds: Sequence[float]) -> list[Point]:
    """A point for calls disabled, and one for each threshold from the highest on."""
    return [_point(rows, threshold) for threshold in (None, *sorted(thresholds, reverse=True))]


def _point(rows: Sequence[Row], threshold: float | None) -> Point:
    answers = [answer_at(row, threshold) for row in rows]
    before, right = [[bool(one["right"]) for one in each] for each in ([row["disabled"] for row in rows], answers)]
    called, needed = [bool(one["calls"]) for one in answers], [needs_call(row) for row in rows]
    made = [(need, was and not now) for call, need, was, now in _zip(called, needed, before, right) if call]
    precision = mean_interval([need for need, _ in made])
    recall = mean_interval([call for call, need in _zip(called, needed) if need])
    share, score, gain = mean_interval(called), mean_interval(right), paired_interval(before, right)
    if share is None or score is None or gain is None:
        raise BadInput("There are no questions: name a task that has some.")
    both = (precision.mean + recall.mean) if precision and recall else 0.0
    f1 = 2 * precision.mean * recall.mean / both if precision and recall and both else None
    calls = sum(len(one["calls"]) for one in answers)
    harmed = sum(harm for _, harm in made) / len(made) if made else None
    per_right = calls / sum(right) if any(right) else None
    return Point(threshold, len(rows), share, score, gain, precision, recall, f1, harmed, calls, per_right)


def _zip(*columns: Sequence[bool]) -> list[tuple[bool, ...]]:
    return list(zip(*columns, strict=True))


def choose(rows: Sequence[Row], thresholds: Sequence[float], rule: str) -> Chosen:
    """The threshold that a rule of `RULES` says is best on these rows."""
    halves = [rows[::2], rows[1::2]]
    told = [
        bool(answer_at(row, _best(half, thresholds, rule))["right"])
        for half, other in zip(halves, halves[::-1], strict=True)
        if half
        for row in other
    ]
    return Chosen(rule, _best(rows, thresholds, rule), mean_interval(told))


def _best(rows: Sequence[Row], thresholds: Sequence[float], rule: str) -> float:
    def order(point: Point) -> tuple[float, int, float]:
        return RULES[rule](point), -point.calls, point.threshold or 0.0

    best = max(curve(rows, thresholds)[1:], key=order).threshold
    assert best is not None
    return best


def table(points: Sequence[Point], chosen: float | None = None) -> str:
    """As Markdown, in per cent, the gain in points; the chosen threshold is bold."""
    head = ["threshold", "answers with a call", "score", "95 %", "gain over disabled", "95 %"]
    head += ["precision", "95 %", "recall", "95 %", "F1", "harmed", "calls per right answer"]
    return markdown(head, [_cells(point, chosen) for point in points])


def _cells(point: Point, chosen: float | None) -> list[str]:
    name = "disabled" if point.threshold is None else f"{point.threshold:g}"
    cells = [f"**{name}**" if chosen is not None and point.threshold == chosen else name]
    cells += [percent(point.called.mean), percent(point.score.mean), between(point.score)]
    cells += [f"{100 * point.gain.mean:+.1f}", between(point.gain, "+.1f")]
    cells += [*share_cells(point.precision), *share_cells(point.recall), percent(point.f1), percent(point.harmed)]
    return [*cells, f"{point.calls_per_right:.2f}" if point.calls_per_right is not None else "–"]


def as_json(rows: Sequence[Row], thresholds: Sequence[float], chosen: Chosen) -> dict[str, Any]:
    """The curves of all rows and of each task, for scripts."""
    tasks = {str(row["task"]): [other for other in rows if other["task"] == row["task"]] for row in rows}
    return {
        "chosen": asdict(chosen),
        "curve": [asdict(point) for point in curve(rows, thresholds)],
        "tasks": {name: [asdict(point) for point in curve(own, thresholds)] for name, own in tasks.items()},
    }


def checked(thresholds: Sequence[float]) -> tuple[float, ...]:
    """Each once, from the highest on. Raises BadInput where one is no probability."""
    if not thresholds or not all(math.isfinite(one) and 0 <= one <= 1 for one in thresholds):
        raise BadInput("Thresholds are numbers in 0..1, such as 0.01,0.1,0.5.")
    return tuple(sorted(set(thresholds), reverse=True))
