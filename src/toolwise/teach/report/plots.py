"""The plots of a report as SVG text: the same bytes for the same numbers, and no words in them but our own.

Colours are names that the page's style sheet fills in, so that one drawing serves light and dark; words stay text.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from toolwise.core.errors import BadInput
from toolwise.teach.report.histogram import Histogram
from toolwise.teach.report.values import Losses

# matplotlib wants real colours; each of these becomes `var(--name)` in the SVG.
_INK, _FAINT, _KEPT, _DROPPED, _CONTROL = "#010101", "#020202", "#030303", "#040404", "#050505"
_NAMES = {_INK: "ink", _FAINT: "faint", _KEPT: "kept", _DROPPED: "dropped", _CONTROL: "control"}
_SIZE = (8.4, 2.7)  # inches; the page scales it
_STYLE = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 9.0,
    "text.color": _INK,
    "axes.edgecolor": _FAINT,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _FAINT,
    "ytick.color": _FAINT,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "legend.frameon": False,
}


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
            axes.stairs(gains.control, edges, fill=True, color=_CONTROL, alpha=0.3, label="with another call's result")
            axes.stairs(gains.control, edges, color=_CONTROL, linewidth=1.2, zorder=3)  # seen in front of the bars too
        axes.bar(places, gains.dropped, widths, align="edge", color=_DROPPED, label="dropped")
        axes.bar(places, gains.kept, widths, bottom=gains.dropped, align="edge", color=_KEPT, label="kept")
        if threshold is not None:
            axes.axvline(
                threshold, color=_INK, linewidth=1.2, linestyle=(0, (4, 3)), label=f"threshold {threshold:.2f}"
            )
        axes.set(xlabel="gain in nats", ylabel="calls (square-root scale)", xlim=(edges[0], edges[-1]))
        axes.set_ylim(bottom=0)

    return _svg(draw, "Histogram of the gains of kept and dropped calls, and of control calls")


def loss_plot(losses: Sequence[Losses], kept: int) -> str:
    """The three losses of kept calls, the largest gain first; the line between them is as long as the gain.

    `kept` is the number of kept calls of which these are some.
    """

    def draw(axes: Any) -> None:
        places = range(1, len(losses) + 1)
        axes.vlines(places, [min(one.none, one.call) for one in losses], [one.result for one in losses], color=_FAINT)
        dots = {"linestyle": "none", "markersize": 4.0}
        axes.plot(places, [one.none for one in losses], "o", color=_DROPPED, label="with nothing in front", **dots)
        axes.plot(places, [one.call for one in losses], "D", color=_CONTROL, label="with the call", **dots)
        axes.plot(
            places, [one.result for one in losses], "o", color=_KEPT, label="with the call and its result", **dots
        )
        some = f"{len(losses):,} of " if len(losses) < kept else ""
        axes.set(xlabel=f"{some}{kept:,} kept calls, the largest gain first", ylabel="loss in nats")
        axes.set(xticks=[], xlim=(0, len(losses) + 1))
        axes.set_ylim(bottom=0)

    return _svg(draw, "Losses of kept calls with nothing, the call, and the call and its result in front")


def _svg(draw: Callable[[Any], None], title: str) -> str:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BadInput("The HTML report draws with matplotlib: pip install 'toolwise[teach]'.") from error
    file = io.StringIO()
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": title}):
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        axes.tick_params(length=3)
        figure.legend(loc="outside upper right", ncols=4, handlelength=1.2, columnspacing=1.4)
        figure.savefig(
            file, format="svg", transparent=True, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type"))
        )
    return _for_the_page(file.getvalue(), title)


def _for_the_page(svg: str, title: str) -> str:
    """Only the element, with our colour names, sized by the page, and without ids that two drawings would share."""
    body = svg[svg.index(">", svg.index("<svg")) + 1 :].strip()
    view = re.search(r'viewBox="[^"]*"', svg)
    body = re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", body)
    body = re.sub(r"<style.*?</style>", "", body, flags=re.DOTALL)  # it would hold for the whole page
    for colour, name in _NAMES.items():
        body = body.replace(colour, f"var(--{name})")
    assert view is not None
    links = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f'<svg class="plot" role="img" aria-label="{html.escape(title)}" {view[0]} {links}>{body}'


def _root(values: Any) -> Any:
    return abs(values) ** 0.5


def _square(values: Any) -> Any:
    return values**2
