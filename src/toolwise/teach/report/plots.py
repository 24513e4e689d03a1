"""The plots of a report as SVG text; there are no words in them but our own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from toolwise.teach.report.drawing import CONTROL, DROPPED, FAINT, INK, KEPT, legend, svg
from toolwise.teach.report.histogram import Histogram
from toolwise.teach.report.values import Losses

_SIZE = (8.4, 2.7)  # inches; the page scales it


def gain_plot(gains: Histogram, threshold: float | None) -> str:
    """Gains of dropped and kept calls with the threshold; behind them the gains with another call's result.

    Heights follow the square root of the counts, so that a few kept calls are seen beside thousands of dropped ones.
    """

    def draw(axes: Any) -> None:
        edges = gains.edges
        places = [left + 0.07 * (right - left) for left, right in pairwise(edges)]
        widths = [0.86 * (right - left) for left, right in pairwise(edges)]
        axes.set_yscale("function", functions=(_root, _square))
        axes.yaxis.get_major_locator().set_params(nbins=5, integer=True)
        if any(gains.control):
            axes.stairs(gains.control, edges, fill=True, color=CONTROL, alpha=0.3, label="with another call's result")
            axes.stairs(gains.control, edges, color=CONTROL, linewidth=1.2, zorder=3)  # seen in front of the bars too
        axes.bar(places, gains.dropped, widths, align="edge", color=DROPPED, label="dropped")
        axes.bar(places, gains.kept, widths, bottom=gains.dropped, align="edge", color=KEPT, label="kept")
        if threshold is not None:
            axes.axvline(threshold, color=INK, linewidth=1.2, linestyle=(0, (4, 3)), label=f"threshold {threshold:.2f}")
        axes.set(xlabel="gain in nats", ylabel="calls (square-root scale)", xlim=(edges[0], edges[-1]))
        axes.set_ylim(bottom=0)

    return _svg(draw, "Histogram of the gains of kept and dropped calls, and of control calls")


def loss_plot(losses: Sequence[Losses], kept: int) -> str:
    """The three losses of kept calls, the largest gain first; the line between them is as long as the gain.

    `kept` is the number of kept calls of which these are some.
    """

    def draw(axes: Any) -> None:
        places = range(1, len(losses) + 1)
        axes.vlines(places, [min(one.none, one.call) for one in losses], [one.result for one in losses], color=FAINT)
        dots = {"linestyle": "none", "markersize": 4.0}
        axes.plot(places, [one.none for one in losses], "o", color=DROPPED, label="with nothing in front", **dots)
        axes.plot(places, [one.call for one in losses], "D", color=CONTROL, label="with the call", **dots)
        axes.plot(places, [one.result for one in losses], "o", color=KEPT, label="with the call and its result", **dots)
        some = f"{len(losses):,} of " if len(losses) < kept else ""
        axes.set(xlabel=f"{some}{kept:,} kept calls, the largest gain first", ylabel="loss in nats")
        axes.set(xticks=[], xlim=(0, len(losses) + 1))
        axes.set_ylim(bottom=0)

    return _svg(draw, "Losses of kept calls with nothing, the call, and the call and its result in front")


def _svg(draw: Callable[[Any], None], title: str) -> str:
    def figure(figure: Any) -> None:
        draw(figure.add_subplot())
        legend(figure)

    return svg(figure, title, _SIZE)


def _root(values: Any) -> Any:
    return abs(values) ** 0.5


def _square(values: Any) -> Any:
    return values**2
