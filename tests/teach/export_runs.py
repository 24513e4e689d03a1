"""Runs for the tests of exports: tools of every kind of arguments, rows with any text and any calls, run folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from toolwise.core.types import Effect, Tool
from toolwise.notation.inline import Insertion, find, weave, write_body
from toolwise.teach.export import Run
from toolwise.teach.records import Augmented, Span
from toolwise.teach.store import Store
from toolwise.tools.builtin import BUILTIN
from toolwise.tools.registry import definition, tool

#: (character of the plain text, tool, arguments, result)
Placed = tuple[int, str, dict[str, Any], str | None]


@tool(effect=Effect.READ, bounded=True)
def Weather(city: str, days: int, options: dict[str, Any] | None = None) -> str:
    """What the weather of a city will be.

    Args:
        city: its name
        days: how many from today
    """
    raise NotImplementedError


TOOLS: Mapping[str, Tool] = {**BUILTIN, "Weather": Weather}
DEFINITIONS = [definition(each) for each in TOOLS.values()]

PLAIN = (
    "The mill ground 24 sacks in the morning. It ground 18 more in the afternoon, so 42 sacks went to the harbour. "
    "It was dry there, at 21 degrees."
)


def row(plain: str, *calls: Placed, name: str = "mill") -> Augmented:
    """A row of C* with these calls, in their order."""
    text = weave(plain, [Insertion(at, write_body(TOOLS[t], arguments), result) for at, t, arguments, result in calls])
    spans = [
        Span(found.start, found.end, found.result_start, found.result_end, call[1])
        for found, call in zip(find(text), calls, strict=True)
    ]
    return Augmented(f"{name}#0", name, text, plain, tuple(spans))


MILL = row(
    PLAIN,
    (PLAIN.index(" 42"), "Calculator", {"expression": "24 + 18"}, "42"),
    (PLAIN.index(" 21"), "Weather", {"city": "Ålesund (west)", "days": 1}, "dry, 21 °C]"),
)
DATE = row("Today is Monday.", (8, "Calendar", {}, "Today is Monday"), name="date")


def run_of(*rows: Augmented, tools: Sequence[Mapping[str, Any]] = DEFINITIONS) -> Run:
    return Run(rows, tools, "f" * 64, {"model": "a" * 64, "settings": {"seed": 0}})


def write_run(folder: Path, *shards: Sequence[Augmented], finished: bool = True) -> Path:
    """The folder of a run that made these rows."""
    settings = {
        "model": "a" * 64,
        "tools": {name: definition(each) for name, each in TOOLS.items()},
        "settings": {"seed": 0},
    }
    with Store.open(folder, settings) as store:
        for index, rows in enumerate(shards):
            store.write_shard("augmented", index, rows)
        if finished:
            store.finish({})
    return folder


# Any text, any calls

TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)
_LIKE_CALLS = st.lists(
    st.sampled_from(
        [" [", "[", "\\", "Calculator(", ")", " ->", "]", "\n", "\r", "\u2028", " [QA(1) -> 2]", "x. ", "é"]
    ),
    max_size=8,
).map("".join)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
_CALLS = st.one_of(
    st.tuples(st.just("Calculator"), st.fixed_dictionaries({"expression": TEXTS | _LIKE_CALLS})),
    st.tuples(st.just("Calendar"), st.just({})),
    st.tuples(
        st.just("Weather"),
        st.fixed_dictionaries({"city": TEXTS | _LIKE_CALLS, "days": st.integers()}, optional={"options": _JSON}),
    ),
)


@st.composite
def rows(draw: st.DrawFn) -> tuple[Augmented, list[Placed]]:
    """A row, and its calls as they went in."""
    plain = draw(TEXTS | _LIKE_CALLS)
    places = sorted(draw(st.lists(st.integers(0, len(plain)), min_size=1, max_size=3)))
    calls = [(at, *draw(_CALLS), draw(TEXTS | _LIKE_CALLS)) for at in places]
    return row(plain, *calls), calls
