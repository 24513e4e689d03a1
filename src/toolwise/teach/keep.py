"""Which scored candidates stay: a threshold for each tool, then one call where several compete.

A threshold is a number (the paper's tau_f) or measured: the smallest one at which at most alpha of the control calls,
which carry another call's result, would pass. Rules are written so that a number that is no number never keeps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from toolwise.teach.config import Control, Settings
from toolwise.teach.prepare import WEIGHTS
from toolwise.teach.records import Candidate


def threshold(tau_f: float | Control, candidates: Iterable[Candidate]) -> float:
    """The threshold for the candidates of one tool. Infinite when a control is asked for and none could be made."""
    return _measured(tau_f, (c.control_gain for c in candidates)) if isinstance(tau_f, Control) else tau_f


def thresholds(wanted: Mapping[str, float | Control], candidates: Iterable[Candidate]) -> dict[str, float]:
    """The same for every tool of a whole run, by name: one pass, in which only the gains of controls are held."""
    gains: dict[str, list[float | None]] = {name: [] for name, tau_f in wanted.items() if isinstance(tau_f, Control)}
    for c in candidates if gains else ():
        if c.tool in gains and c.control_gain is not None:
            gains[c.tool].append(c.control_gain)
    return {
        name: _measured(tau_f, gains[name]) if isinstance(tau_f, Control) else tau_f for name, tau_f in wanted.items()
    }


def _measured(control: Control, gains: Iterable[float | None]) -> float:
    """The smallest threshold that at most alpha of the gains pass."""
    found = sorted(gain for gain in gains if gain is not None and math.isfinite(gain))
    if not found:
        return math.inf
    allowed = math.floor(control.alpha * len(found))
    # The (allowed + 1)-th largest control must stay below; the next float above it is the smallest such threshold.
    return max(control.floor, math.nextafter(found[len(found) - allowed - 1], math.inf))


def prices(settings: Settings, tools: Mapping[str, float]) -> dict[str, float]:
    """What a call of each tool must gain beyond its threshold: lambda times its cost. `tools`: costs by name."""
    costs = {name: tools[name] if own.cost is None else own.cost for name, own in settings.tools.items()}
    return {name: settings.cost_weight * cost for name, cost in costs.items()}


def keep(
    candidates: Sequence[Candidate], thresholds: Mapping[str, float], prices: Mapping[str, float] | None = None
) -> list[Candidate]:
    """The same rows in the same order, those that stay with reason None. All of one passage must come together.

    A call stays when `gain >= threshold + price`; several at one place are ranked by what they gain beyond their price.
    """
    price = prices or {}
    judged = [_judge(c, thresholds[c.tool], price.get(c.tool, 0.0)) if c.reason is None else c for c in candidates]
    order = sorted((i for i, c in enumerate(judged) if c.reason is None), key=lambda i: _rank(judged[i], price))
    taken: dict[str, list[int]] = {}
    for i in order:
        places = taken.setdefault(judged[i].passage, [])
        if any(abs(judged[i].position - place) < len(WEIGHTS) for place in places):
            judged[i] = replace(judged[i], reason="overlap")
        else:
            places.append(judged[i].position)
    return judged


def standing(candidates: Sequence[Candidate], prices: Mapping[str, float] | None = None) -> list[Candidate]:
    """Of competing calls the best, whatever it gains. With one threshold for all tools, those among them that gain it
    (beyond their price) are what `keep` keeps, whichever threshold that is: so one pass serves all of them."""
    rows = keep(candidates, {c.tool: -math.inf for c in candidates}, prices)
    return [c for c in rows if c.reason is None]


def _judge(candidate: Candidate, tau: float, price: float) -> Candidate:
    gain = candidate.gain
    if gain is None or not math.isfinite(gain):
        return replace(candidate, reason="not_finite")
    if gain >= tau + price:
        return candidate
    return replace(candidate, reason="too_dear" if gain >= tau else "below_threshold")


def _rank(candidate: Candidate, prices: Mapping[str, float]) -> tuple[float, int, str, str]:
    """Higher gain first; then the earlier position, then names, so that ties fall the same way in every run."""
    assert candidate.gain is not None
    return (prices.get(candidate.tool, 0.0) - candidate.gain, candidate.position, candidate.tool, candidate.body)
