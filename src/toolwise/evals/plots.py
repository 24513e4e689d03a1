"""The plots of an evaluation: scores, score and call rate over k, accuracy against cost, sizes of model.

Labels of arms and tasks come into them made visible; they are names of folders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from math import ceil
from statistics import fmean
from typing import Any

from toolwise.evals.compare import Line
from toolwise.evals.intervals import Interval
from toolwise.evals.report import ArmSaid, Cost, Kind, Report
from toolwise.evals.tables import KINDS, by_k, size
from toolwise.teach.report.drawing import CONTROL, DROPPED, INK, KEPT, LINE, OTHER, legend, svg
from toolwise.teach.report.words import visible

_COLOURS: Mapping[Kind, str] = {"base": DROPPED, "plain": OTHER, "disabled": CONTROL, "calls": KEPT}
_MARKS: Mapping[Kind, str] = {"base": "s", "plain": "D", "disabled": "o", "calls": "o"}
_SERIES = (KEPT, CONTROL, OTHER, DROPPED, INK)
_WIDE = 8.4  # inches; the page scales them
_ACROSS = 4  # panels beside each other
_LABEL = 24  # characters


def score_plot(report: Report) -> str:
    """For each task a panel with the arms below each other: score and interval."""
    arms, kinds = [arm.label for arm in report.arms], {arm.label: arm.kind for arm in report.arms}
    tasks = _by_task(report.lines)

    def draw(figure: Any) -> None:
        for number, (axes, (task, own)) in enumerate(_panels(figure, tasks)):
            for line in own:
                place, kind = arms.index(line.arm), kinds[line.arm]
                _whisker(axes, 100 * line.score.mean, place, line.score, kind)
                left = "" if line.asked == line.of else f" ({line.asked} of {line.of})"
                axes.annotate(
                    f"{100 * line.score.mean:.1f}{left}",
                    (100 * line.score.mean, place),
                    textcoords="offset points",
                    xytext=(0, 5),
                    ha="center",
                    fontsize=7.5,
                )
            names = [_short(arm) if number % _ACROSS == 0 else "" for arm in arms]
            axes.set_yticks(range(len(arms)), names)
            axes.set(title=_short(task), xlim=(0, None), ylim=(len(arms) - 0.4, -0.7), xlabel="right, %")
            axes.tick_params(axis="y", left=False)
            axes.spines["left"].set_visible(False)
            axes.margins(x=0.12)
        legend(figure)

    rows = ceil(len(tasks) / _ACROSS)
    return svg(draw, "Scores of the arms with their intervals", (_WIDE, 0.5 + rows * (0.75 + 0.32 * len(arms))))


def k_plots(report: Report) -> list[str]:
    """For each model that was asked with several k: score, and share of answers with a call."""
    return [_k_plot(label, own) for label, own in by_k(report)]


def _k_plot(label: str, own: Sequence[tuple[ArmSaid, Line]]) -> str:
    ks = sorted({arm.top_k for arm, _ in own})

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        for number, task in enumerate(dict.fromkeys(line.task for _, line in own)):
            points = sorted(((arm.top_k, line) for arm, line in own if line.task == task), key=lambda one: one[0])
            places, colour = [ks.index(k) for k, _ in points], _SERIES[number % len(_SERIES)]
            scores = [line.score for _, line in points]
            left.plot(places, [100 * one.mean for one in scores], "o-", color=colour, label=_short(task), markersize=4)
            bounds = [100 * one.low for one in scores], [100 * one.high for one in scores]
            left.fill_between(places, *bounds, color=colour, alpha=0.15, linewidth=0)
            right.plot(places, [100 * line.calls for _, line in points], "o-", color=colour, markersize=4)
        for axes, title in ((left, "right, %"), (right, "answers with a call, %")):
            axes.set_xticks(range(len(ks)), [str(k) if k else "0 (never)" for k in ks])
            axes.set(xlabel="a call starts among the k likeliest tokens", ylabel=title)
            axes.set_ylim(bottom=0)
        right.set_ylim(0, 104)
        left.set_title(_short(label), loc="left", fontsize=9)
        legend(figure, left)

    return svg(draw, f"Score and call rate of {_short(label)} over k", (_WIDE, 3.0))


def cost_plot(report: Report) -> str:
    """Accuracy against tokens and seconds an answer, in the mean of the tasks that all finished arms were asked."""
    arms = [arm for arm in report.arms if arm.answers == arm.of]
    lines = [line for line in report.lines if line.arm in {arm.label for arm in arms}]
    shared = [task for task, own in _by_task(lines) if len(own) == len(arms)]
    costs = {arm.label: [one for one in report.costs if one.arm == arm.label and one.task in shared] for arm in arms}

    def draw(figure: Any) -> None:
        spent: dict[str, Callable[[Cost], float]] = {
            "tokens read an answer": lambda cost: cost.read,
            "seconds an answer": lambda cost: cost.seconds,
        }
        for axes, (title, figure_of) in zip(figure.subplots(1, 2, sharey=True), spent.items(), strict=True):
            points = [
                (fmean(map(figure_of, costs[arm.label])), 100 * fmean(one.right for one in costs[arm.label]))
                for arm in arms
            ]
            for arm, (place, score) in zip(arms, points, strict=True):
                look = {"color": _COLOURS[arm.kind], "marker": _MARKS[arm.kind], "markersize": 6}
                axes.plot([place], [score], linestyle="none", label=KINDS[arm.kind], **look)
            axes.set_xlim(0, 1.35 * max(place for place, _ in points) or 1)
            axes.set_ylim(0, 1.15 * max(score for _, score in points) or 1)
            axes.set(xlabel=title, ylabel="right, %" if axes.get_subplotspec().is_first_col() else "")
            _names(axes, [(_beside(arm, report), *point) for arm, point in zip(arms, points, strict=True)])
        legend(figure)

    return svg(draw, "Accuracy against cost", (_WIDE, 3.4)) if shared and len(arms) > 1 else ""


def _beside(arm: ArmSaid, report: Report) -> str:
    """An arm that may call has its name; of the others the colour says enough, but for their size."""
    several = len({other.parameters for other in report.arms}) > 1
    return _short(arm.label) if arm.kind == "calls" else size(arm.parameters) if several else ""


def _names(axes: Any, points: Sequence[tuple[str, float, float]]) -> None:
    """A name right of each point, moved up where a point or a name is there already."""
    height, width = axes.get_ylim()[1] / 16, axes.get_xlim()[1] / 4
    taken = [(x, y) for _, x, y in points]

    def free(x: float, y: float, place: float) -> bool:
        others = (one for one in taken if one != (x, y))
        return not any(abs(place - other) < height and -width / 24 < beside - x < width for beside, other in others)

    for label, x, y in sorted(points, key=lambda one: (one[2], -one[1])):
        place = y
        while not free(x, y, place):
            place += height / 4
        if label:
            taken.append((x + width / 12, place))
            axes.annotate(label, (x + width / 12, place), va="center", fontsize=7.5, annotation_clip=False)


def size_plot(report: Report) -> str:
    """Like the paper's figure 4: for each task the score over the size of the model, a line for each kind of arm.

    Of several arms of one kind and size, the best. Empty where all are of one size.
    """
    arms = {arm.label: arm for arm in report.arms if arm.parameters}
    sizes = sorted({arm.parameters for arm in arms.values() if arm.parameters})
    tasks = _by_task([line for line in report.lines if line.arm in arms])

    def draw(figure: Any) -> None:
        for number, (axes, (task, own)) in enumerate(_panels(figure, tasks)):
            for kind in KINDS:
                best: dict[int, Line] = {}
                for line in own:
                    where = arms[line.arm].parameters or 0
                    better = where not in best or line.score.mean > best[where].score.mean
                    if arms[line.arm].kind == kind and better:
                        best[where] = line
                points = sorted(best.items())
                for place, line in points:
                    axes.vlines(place, 100 * line.score.low, 100 * line.score.high, color=_COLOURS[kind], alpha=0.5)
                scores = [100 * line.score.mean for _, line in points]
                look = {"color": _COLOURS[kind], "marker": _MARKS[kind], "markersize": 4}
                axes.plot([place for place, _ in points], scores, label=KINDS[kind] if points else None, **look)
            axes.set(title=_short(task), xscale="log", xlabel="parameters")
            axes.set_ylabel("right, %" if number % _ACROSS == 0 else "")
            axes.set_xticks(sizes, [size(one) for one in sizes])
            axes.minorticks_off()
            axes.set_ylim(bottom=0)
        legend(figure)

    rows = ceil(len(tasks) / _ACROSS)
    return svg(draw, "Scores over the size of the model", (_WIDE, 0.5 + 2.4 * rows)) if len(sizes) > 1 else ""


def _by_task(lines: Sequence[Line]) -> list[tuple[str, list[Line]]]:
    return [(task, list(own)) for task, own in groupby(lines, key=lambda line: line.task)]


def _panels(figure: Any, tasks: Sequence[tuple[str, list[Line]]]) -> list[tuple[Any, tuple[str, list[Line]]]]:
    """Axes for each task, and those left over taken away."""
    across = min(_ACROSS, len(tasks))
    grid = figure.subplots(ceil(len(tasks) / across), across, squeeze=False).flatten()
    for axes in grid[len(tasks) :]:
        axes.remove()
    for axes in grid[: len(tasks)]:
        axes.grid(color=LINE, linewidth=0.8)
        axes.set_axisbelow(True)
    return list(zip(grid, tasks, strict=False))


def _whisker(axes: Any, score: float, place: float, interval: Interval, kind: Kind) -> None:
    axes.hlines(place, 100 * interval.low, 100 * interval.high, color=_COLOURS[kind], linewidth=1.6, alpha=0.6)
    look = {"color": _COLOURS[kind], "marker": _MARKS[kind], "markersize": 5}
    axes.plot([score], [place], linestyle="none", label=KINDS[kind], **look)


def _short(label: str) -> str:
    return visible(label, _LABEL)
