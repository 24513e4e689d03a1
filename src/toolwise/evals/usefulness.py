"""Does a larger gain mean a more useful call? Gains held against what people judged (paper, table 10).

rank correlation    Spearman's, of gains and judgements: 1 where every useful call gains more than every other one
chance              that a useful call gains more than one that is not, each drawn by lot (0.5: it says nothing)
right               at a threshold: the share of calls that were kept and are useful, or were not and are not
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from toolwise.core.errors import BadInput
from toolwise.documents.read import read_objects
from toolwise.evals.intervals import Interval, mean_interval
from toolwise.evals.shown import markdown, share_cells


@dataclass(frozen=True, slots=True)
class Judged:
    """One call: its gain in nats, and whether a person found it useful."""

    gain: float
    useful: bool


@dataclass(frozen=True, slots=True)
class Usefulness:
    """`right` has the thresholds in their order. `correlation` and `chance` are None where all judgements are alike."""

    calls: int
    useful: int
    correlation: float | None
    chance: float | None
    right: tuple[tuple[float, Interval], ...]


def usefulness(calls: Sequence[Judged], taus: Sequence[float]) -> Usefulness:
    """Raises BadInput without calls."""
    if not calls:
        raise BadInput("There are no judged calls; a line of the file is {'gain': 1.59, 'useful': true}.")
    gains, useful = np.array([one.gain for one in calls]), np.array([one.useful for one in calls])
    first, second = gains[useful], gains[~useful]
    mixed = bool(len(first) and len(second))
    more = (first[:, None] > second).mean() + (first[:, None] == second).mean() / 2 if mixed else None
    spread = mixed and len(set(gains.tolist())) > 1
    return Usefulness(
        len(calls),
        len(first),
        float(np.corrcoef(_ranks(gains), useful)[0, 1]) if spread else None,
        None if more is None else float(more),
        tuple((tau, _right(gains, useful, tau)) for tau in taus),
    )


def judged(file: Path) -> list[Judged]:
    """The calls of a file of lines `{"gain": 1.59, "useful": true}`. Raises BadInput."""
    found = []
    for place, row in read_objects(file):
        gain, useful = row.get("gain"), row.get("useful")
        if isinstance(gain, bool) or not isinstance(gain, int | float) or not isinstance(useful, bool):
            raise BadInput(f"{place}: a judged call has a number `gain` and a `useful` that is true or false.")
        found.append(Judged(float(gain), useful))
    return found


def as_json(found: Usefulness) -> dict[str, Any]:
    right = [{"tau": tau, "right": asdict(interval)} for tau, interval in found.right]
    return {**asdict(found), "right": right}


def table(found: Usefulness) -> str:
    """As Markdown."""
    told = [f"{'–' if one is None else f'{one:.2f}'}" for one in (found.correlation, found.chance)]
    rows = [[f"{tau:g}", *share_cells(interval)] for tau, interval in found.right]
    head = ["tau_f", "judged right, %", "95 %"]
    return (
        f"{found.useful} of {found.calls} calls are useful; rank correlation with the gain {told[0]}; "
        f"a useful one gains more than another with chance {told[1]}\n\n{markdown(head, rows)}"
    )


def _ranks(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """From the smallest on; of equal ones the mean."""
    below = (values[:, None] > values).sum(axis=1)
    return np.asarray(below + (values[:, None] == values).sum(axis=1) / 2)


def _right(gains: np.ndarray[Any, Any], useful: np.ndarray[Any, Any], tau: float) -> Interval:
    right = mean_interval(((gains >= tau) == useful).astype(float).tolist())
    assert right is not None
    return right
