"""How figures stand in a table: shares in per cent, intervals, Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from toolwise.evals.intervals import Interval


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def between(interval: Interval, form: str = ".1f") -> str:
    return f"{100 * interval.low:{form}} to {100 * interval.high:{form}}"


def share_cells(interval: Interval | None) -> list[str]:
    """A share and its interval, in two cells."""
    return ["–", "–"] if interval is None else [percent(interval.mean), between(interval)]


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    first, *others = ([cell.replace("|", "\\|") for cell in row] for row in (head, *rows))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (first, ["---"] * len(head), *others))
