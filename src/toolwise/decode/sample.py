"""Which token comes next: greedy, or drawn from the likeliest part of the distribution."""

from __future__ import annotations

import numpy as np

from toolwise.core.errors import ModelUnavailable
from toolwise.models.base import Floats


def finite(logits: Floats) -> Floats:
    """The same logits. Raises ModelUnavailable where the model gives no numbers."""
    if not np.isfinite(logits.max()):
        raise ModelUnavailable("The model gives no finite numbers; load it in float32, or mend its weights.")
    return logits


def probability(logits: Floats, token: int) -> float:
    """How likely the model makes this token, nothing being ruled out."""
    wide = logits.astype(np.float64)
    return float(np.exp(wide[token] - wide.max()) / np.exp(wide - wide.max()).sum())


def draw(logits: Floats, temperature: float, random: np.random.Generator, top_p: float = 1.0) -> int:
    """A token. `temperature` 0 is greedy; `top_p` keeps the likeliest tokens that have this probability together."""
    if temperature <= 0:
        return int(logits.argmax())
    wide = logits.astype(np.float64)
    with np.errstate(over="ignore"):  # at a tiny temperature all but the likeliest token are infinitely far behind
        weights = np.exp((wide - wide.max()) / temperature)
    weights /= weights.sum()
    if top_p < 1:
        order = np.argsort(-weights, kind="stable")
        kept = np.cumsum(weights[order]) - weights[order] < top_p
        kept[0] = True
        weights[order[~kept]] = 0.0
        weights /= weights.sum()
    return int(random.choice(len(weights), p=weights))
