"""Gains in bins that never mix both sides of a threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_WIDTHS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # nats
_MOST = 48
_TAIL = 0.005  # of the gains on each side go into the outermost bins


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many gains lie in each bin, by what became of them; `control` are those with another call's result.

    `edges`, in nats, are one more than the bins. The outermost bins hold everything beyond them too. All empty when
    nothing was scored.
    """

    edges: tuple[float, ...]
    kept: tuple[int, ...]
    dropped: tuple[int, ...]
    control: tuple[int, ...]


def histogram(kept: Sequence[float], dropped: Sequence[float], control: Sequence[float], threshold: float) -> Histogram:
    """Bins of a round width, one edge being the threshold (0 when it is infinite). Gains must be finite."""
    values = np.array([*kept, *dropped, *control], dtype=np.float64)
    if not values.size:
        return Histogram((), (), (), ())
    anchor = threshold if math.isfinite(threshold) else 0.0
    low, high = np.quantile(values, [_TAIL, 1 - _TAIL]).tolist()
    low, high = min(low, anchor), max(high, anchor)
    width = next((w for w in _WIDTHS if (high - low) / w <= _MOST - 2), (high - low) / (_MOST - 2))
    first = min(-1, math.floor((low - anchor) / width))
    last = max(1, math.ceil((high - anchor) / width))
    edges = anchor + width * np.arange(first, last + 1)

    def count(gains: Sequence[float]) -> tuple[int, ...]:
        inside = np.clip(np.array(gains, dtype=np.float64), edges[0], edges[-1])
        return tuple(np.histogram(inside, edges)[0].tolist())

    return Histogram(tuple(edges.tolist()), count(kept), count(dropped), count(control))
