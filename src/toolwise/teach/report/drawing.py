"""A drawing for a page: matplotlib's SVG, the same bytes for the same numbers.

Colours are names that the page's style sheet fills in, so that one drawing serves light and dark; words stay text. A
word that is not ours comes into a drawing only made visible (`words.visible`); matplotlib escapes it.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable
from typing import Any

from toolwise.core.errors import BadInput

# matplotlib wants real colours; each of these becomes `var(--name)` in the SVG.
INK, FAINT, KEPT, DROPPED, CONTROL, OTHER, LINE = (f"#{n:02}{n:02}{n:02}" for n in range(1, 8))
_NAMES = {INK: "ink", FAINT: "faint", KEPT: "kept", DROPPED: "dropped", CONTROL: "control", OTHER: "other"}
_NAMES |= {LINE: "line"}
_STYLE = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
}


def svg(draw: Callable[[Any], None], title: str, size: tuple[float, float]) -> str:
    """What `draw` puts into a figure of `size` inches, which the page scales. Raises BadInput without matplotlib."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BadInput("The HTML report draws with matplotlib: pip install 'toolwise[teach]'.") from error
    file = io.StringIO()
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": title}):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        for axes in figure.axes:
            axes.tick_params(length=3)
        figure.savefig(
            file, format="svg", transparent=True, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type"))
        )
    return _for_the_page(file.getvalue(), title)


def legend(figure: Any, *axes: Any, columns: int = 4) -> None:
    """Above the plots, right; each word once. Of the `axes`, or of all."""
    found: dict[str, Any] = {}
    for one in axes or figure.axes:
        handles, labels = one.get_legend_handles_labels()
        found |= {label: handle for handle, label in zip(handles, labels, strict=True) if label not in found}
    if found:
        place = {"loc": "outside upper right", "ncols": columns, "handlelength": 1.2, "columnspacing": 1.4}
        figure.legend(found.values(), found.keys(), **place)


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
