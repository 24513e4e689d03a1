"""How many calls each threshold keeps, as the paper's table of kept calls (appendix A) says it, from one pass.

What the run dropped before scoring, since it could not reach the run's own floor, is not known; so no threshold below
that floor is told.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from toolwise.teach.keep import standing
from toolwise.teach.records import Candidate
from toolwise.teach.report.values import KeptAt

#: The paper's three, and lower ones, which small models need.
TAUS = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0)


def kept_at(
    shards: Iterable[Sequence[Candidate]],
    prices: Mapping[str, float],
    floors: Mapping[str, float],
    taus: Sequence[float] = TAUS,
) -> dict[str, tuple[KeptAt, ...]]:
    """By tool, what each threshold from its floor on keeps, if all tools had it. `shards` are scored rows."""
    gains: dict[str, list[tuple[float, str]]] = {name: [] for name in floors}
    controls: dict[str, list[float]] = {name: [] for name in floors}
    for rows in shards:
        for row in standing(rows, prices):
            gains[row.tool].append(((row.gain or 0.0) - prices.get(row.tool, 0.0), row.passage))
        for row in rows:
            if row.control_gain is not None and math.isfinite(row.control_gain):
                controls[row.tool].append(row.control_gain)
    return {
        name: tuple(_at(tau, gains[name], controls[name]) for tau in taus if tau >= floor)
        for name, floor in floors.items()
    }


def _at(tau: float, gains: Sequence[tuple[float, str]], controls: Sequence[float]) -> KeptAt:
    kept = [passage for gain, passage in gains if gain >= tau]
    return KeptAt(tau, len(kept), len(set(kept)), sum(gain >= tau for gain in controls), len(controls))
