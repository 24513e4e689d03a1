"""How sure a figure is: bootstrap intervals of 95 % (Efron 1979), the same for the same values.

Samples are drawn with repetition, as counts of each distinct value, so that a thousand verdicts cost no more than two.

Not covered: what all questions share (one training run, one seed). Of values that are all alike the interval has no
width, and says nothing: after a hundred equal answers, three in a hundred such questions may still be otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_SAMPLES, _SEED = 2_000, 0
_SHARE = (2.5, 97.5)
_AT_ONCE = 4_000_000  # counts that are held


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, and the bounds between which 95 % of the means of such samples lie."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Ratio:
    """A sum by another one, and the bounds of 95 % of such samples' ratios; no upper one where the second sum is 0 in
    some of them."""

    value: float
    low: float
    high: float | None


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Of a mean, or of a share where the values are 0 and 1; None without values."""
    if not len(values):
        return None
    distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    size = len(values)
    lot, means = np.random.default_rng(_SEED), list[float]()
    while len(means) < _SAMPLES:
        block = min(_SAMPLES - len(means), max(1, _AT_ONCE // len(distinct)))
        means += (lot.multinomial(size, counts / size, block) @ distinct / size).tolist()
    low, high = np.percentile(means, _SHARE)
    return Interval(float(counts @ distinct / size), float(low), float(high))


def paired_interval(first: Sequence[float], second: Sequence[float]) -> Interval | None:
    """Of how much greater the second is in the mean, where both were asked the same questions in the same order."""
    return mean_interval(np.subtract(second, first, dtype=np.float64).tolist())


def ratio_interval(above: Sequence[float], below: Sequence[float]) -> Ratio | None:
    """Of the sum of `above` by that of `below`, pairs being drawn together; None where the latter is 0."""
    pairs = np.array([above, below], dtype=np.float64)
    if not len(above) or pairs[1].sum() == 0:
        return None
    distinct, counts = np.unique(pairs, axis=1, return_counts=True)
    size = len(above)
    lot, ratios = np.random.default_rng(_SEED), list[float]()
    while len(ratios) < _SAMPLES:
        block = min(_SAMPLES - len(ratios), max(1, _AT_ONCE // len(counts)))
        sums = lot.multinomial(size, counts / size, block) @ distinct.T
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios += np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1], np.inf).tolist()
    low, high = np.percentile(ratios, _SHARE, method="nearest")
    return Ratio(float(pairs[0].sum() / pairs[1].sum()), float(low), float(high) if np.isfinite(high) else None)
