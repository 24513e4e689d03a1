"""A report's tables, the same in Markdown and on its page: figures in per cent, intervals of 95 % in brackets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from toolwise.evals.compare import Line
from toolwise.evals.intervals import Interval
from toolwise.evals.report import ArmSaid, Gain, Kind, Report, Shown, chief
from toolwise.evals.shown import between, markdown, percent
from toolwise.teach.report.words import visible

_NAME = 60  # characters of a label
_TEXT = 600  # of a prompt or an answer
KINDS: Mapping[Kind, str] = {
    "base": "the model as it was",
    "plain": "trained on the same texts without calls",
    "disabled": "taught calls, which are disabled",
    "calls": "may call",
}


@dataclass(frozen=True, slots=True)
class Titled:
    """A table. `about` says how it is read; `names` are how many of the first columns hold words; `best` are the cells
    (row, column) that stand out."""

    title: str
    about: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int = 1
    best: frozenset[tuple[int, int]] = frozenset()


def tables(report: Report) -> list[Titled]:
    """Those that have rows."""
    found = [_scores(report), _gains(report), _by_k(report), _calls(report), _costs(report), _arms(report)]
    return [one for one in [*found, _tasks(report)] if one.rows]


def as_markdown(report: Report) -> str:
    """All tables, findings first, and the examples."""
    parts = ["# Evaluation", "\n".join(f"- {one.said}" for one in findings(report))]
    for one in tables(report):
        rows = [
            [f"**{cell}**" if (row, column) in one.best else cell for column, cell in enumerate(cells)]
            for row, cells in enumerate(one.rows)
        ]
        parts += [f"## {one.title}", one.about, markdown(one.head, rows)]
    for title, helped in (("Right only with the tool", True), ("Wrong only with it", False)):
        shown = [one for one in report.examples if one.helped is helped]
        if shown:
            parts += [f"## {title}", "\n\n".join(map(_example, shown))]
    return "\n\n".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence on what calls were worth, and the verdict in it."""

    said: str
    verdict: Literal["helps", "harms", "open"]


def findings(report: Report) -> list[Finding]:
    """One for each task and chief arm."""
    arms = [arm.label for arm in chief(report.arms)]
    found: dict[tuple[str, str], list[Gain]] = {}
    for gain in report.gains:
        if gain.arm in arms:
            found.setdefault((gain.task, gain.arm), []).append(gain)
    return [_finding(gains, report) for gains in found.values()]


def name(text: str) -> str:
    return visible(text, _NAME)


def said(text: str) -> str:
    return visible(text.strip(), _TEXT)


def with_interval(interval: Interval | None, form: str = ".1f") -> str:
    return "–" if interval is None else f"{100 * interval.mean:{form}} ({between(interval, form)})"


def size(parameters: int | None) -> str:
    """134515008 -> 135M."""
    if parameters is None:
        return "–"
    unit, letter = (1e9, "B") if parameters >= 1e9 else (1e6, "M") if parameters >= 1e6 else (1e3, "K")
    return f"{parameters / unit:.3g}{letter}"


def _finding(gains: Sequence[Gain], report: Report) -> Finding:
    """The verdict is over the closest control, which is the first."""
    task, arm, closest = gains[0].task, gains[0].arm, gains[0].difference
    score = next(line.score for line in report.lines if (line.task, line.arm) == (task, arm))
    more = ", ".join(
        f"{with_interval(gain.difference, '+.1f')}{' points' if gain is gains[0] else ''} over {name(gain.control)}"
        for gain in gains
    )
    verdict: Literal["helps", "harms", "open"] = "helps" if closest.low > 0 else "harms" if closest.high < 0 else "open"
    told = {"helps": "Calls help", "harms": "Calls harm", "open": "No effect of calls can be told"}[verdict]
    return Finding(f"{name(task)}: {told}. {name(arm)} has {percent(score.mean)} % right, {more}.", verdict)


def _scores(report: Report) -> Titled:
    tasks = _order(report)
    cells = {(line.arm, line.task): line for line in report.lines}
    rows, best = [], set()
    whole = [line for line in report.lines if line.asked == line.of]
    top = {task: max((line.score.mean for line in whole if line.task == task), default=0.0) for task in tasks}
    for number, arm in enumerate(report.arms):
        found = [cells.get((arm.label, task)) for task in tasks]
        rows.append((name(arm.label), KINDS[arm.kind], size(arm.parameters), *map(_score, found)))
        best |= {
            (number, 3 + column)
            for column, (task, line) in enumerate(zip(tasks, found, strict=True))
            if line in whole and line.score.mean == top[task] > 0
        }
    about = (
        "Share of right answers in per cent, in brackets the 95 % bootstrap interval. The best of a column stands out."
    )
    return Titled("Scores", about, ("arm", "which", "size", *map(name, tasks)), tuple(rows), 2, frozenset(best))


def _score(line: Line | None) -> str:
    if line is None:
        return "–"
    left = "" if line.asked == line.of else f", {line.asked} of {line.of}"
    return with_interval(line.score) + left


def _gains(report: Report) -> Titled:
    rows = tuple(
        (
            *map(name, (gain.task, gain.arm, gain.control)),
            with_interval(gain.difference, "+.1f"),
            *(f"{count:,}" for count in (gain.only_arm, gain.only_control, gain.both, gain.neither)),
        )
        for gain in report.gains
    )
    about = (
        "An arm that may call, less a control, question by question: points, and how many questions which has right."
    )
    head = ("task", "arm", "control", "gain", "only the arm", "only the control", "both", "neither")
    return Titled("What calls are worth", about, head, rows, 3)


def by_k(report: Report) -> list[tuple[str, list[tuple[ArmSaid, Line]]]]:
    """The models that were asked with several k, and for each its lines, by k."""
    models: dict[str, list[ArmSaid]] = {}
    for arm in report.arms:
        if arm.start_threshold is None and arm.kind in ("calls", "disabled"):
            models.setdefault(arm.model, []).append(arm)
    several = [
        sorted(own, key=lambda arm: arm.top_k) for own in models.values() if len({a.top_k for a in own} - {0}) > 1
    ]
    return [
        (own[-1].label, [(arm, line) for arm in own for line in report.lines if line.arm == arm.label])
        for own in several
    ]


def _by_k(report: Report) -> Titled:
    tasks = _order(report)
    rows = [
        (
            *(name(line.task), name(arm.label), str(arm.top_k), with_interval(line.score), percent(line.calls)),
            *(with_interval(part) for part in (line.where_called, line.where_not)),
        )
        for _, own in by_k(report)
        for arm, line in sorted(own, key=lambda one: (tasks.index(one[1].task), one[0].top_k))
    ]
    about = "A call starts where its marker is among the k likeliest tokens; 0 is never."
    head = ("task", "arm", "k", "score", "answers with calls", "score where called", "score where not")
    return Titled("By top k", about, head, tuple(rows), 2)


def _calls(report: Report) -> Titled:
    rows = tuple(
        (
            name(arm.label),
            f"{arm.calls:,}",
            percent(1 - sum(arm.failed.values()) / arm.calls),
            ", ".join(f"{name(code)} {n:,}" for code, n in sorted(arm.failed.items(), key=lambda one: -one[1])) or "–",
        )
        for arm in report.arms
        if arm.calls
    )
    return Titled("Calls", "How many gave a result, and which errors the others were.", _CALLS, rows)


_CALLS = ("arm", "calls", "without an error", "errors")


def _costs(report: Report) -> Titled:
    rows = tuple(
        (
            *map(name, (cost.task, cost.arm)),
            *(f"{figure:,.1f}" for figure in (cost.read, cost.sampled)),
            *(f"{figure:,.2f}" for figure in (cost.seconds, cost.calls)),
            *(f"{figure / cost.right:,.1f}" if cost.right else "–" for figure in (cost.read, cost.seconds)),
        )
        for cost in report.costs
    )
    about = "Means of an answer. Tokens read: prompt, calls, results, answer. Seconds: with others asked beside it."
    head = ("task", "arm", "tokens read", "tokens chosen", "seconds", "calls")
    return Titled("Cost", about, (*head, "tokens read a right answer", "seconds a right answer"), rows, 2)


def _arms(report: Report) -> Titled:
    rows = tuple(
        (
            name(arm.label),
            visible(arm.model[:12]),
            size(arm.parameters),
            _start(arm),
            ", ".join(map(name, arm.settings.get("tools", {}))),
            f"{arm.answers:,} of {arm.of:,}",
        )
        for arm in report.arms
    )
    head = ("arm", "model", "size", "a call starts", "tools", "answers")
    return Titled("Arms", "A model is told by the beginning of its fingerprint.", head, rows)


def _start(arm: ArmSaid) -> str:
    if not arm.top_k:
        return "never"
    if arm.start_threshold is not None:
        return f"from probability {arm.start_threshold:g} on"
    return f"among the {arm.top_k} likeliest tokens"


def _tasks(report: Report) -> Titled:
    found: dict[str, Mapping[str, object]] = {}
    for arm in report.arms:
        found |= {task: about for task, about in arm.settings["tasks"].items() if task not in found}
    order, keys = _order(report), ("prompt", "rule", "examples", "of", "data")
    rows = tuple(
        (name(task), *(said(str(about.get(key, "–"))) for key in keys)) for task in order if (about := found.get(task))
    )
    return Titled(
        "Tasks",
        "How each was asked, and how its answers are read.",
        ("task", "prompt", "right when", "asked", "of", "data"),
        rows,
        3,
    )


def _order(report: Report) -> list[str]:
    return list(dict.fromkeys(line.task for line in report.lines))


def _example(one: Shown) -> str:
    lines: Sequence[str] = (
        f"{name(one.task)}, {name(one.arm)}: {said(one.prompt)}",
        f"- with calls: {said(one.written)}",
        f"- {name(one.control)}: {said(one.without) or '(nothing)'}",
        f"- right: {said(' | '.join(one.answers))}",
    )
    return "\n".join(lines)
