"""What a report is made of: plain frozen values, all of which JSON can carry.

Texts in it are as they were written, by documents, models and tools; `words.visible` makes them fit to be shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolwise.teach.records import Candidate
from toolwise.teach.report.histogram import Histogram

CONTEXT = 40  # characters shown on both sides of a call


@dataclass(frozen=True, slots=True)
class Shown:
    """A call in its place: `before` and `after` are the `CONTEXT` characters of the passage around it."""

    candidate: Candidate
    document: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """How many rows carry a reason, and the calls among them that came closest to being kept."""

    code: str
    stage: str
    explanation: str
    count: int
    examples: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class ProposerCount:
    """What became of one proposer's candidates."""

    name: str
    proposed: int
    executed: int
    kept: int


@dataclass(frozen=True, slots=True)
class Threshold:
    """The gain in nats that a call needs, None when no call could have enough.

    `alpha` is None for a threshold that was given; otherwise it was measured so that at most this share of the
    `controls` (calls with another call's result) pass, from `floor` on. `passing` controls do pass. `price` is what a
    call must gain beyond that for its cost.
    """

    value: float | None
    alpha: float | None
    floor: float | None
    controls: int
    passing: int
    price: float = 0.0


@dataclass(frozen=True, slots=True)
class KeptAt:
    """What a threshold `tau` of all tools would keep: calls, and the passages that hold one; and how many of the
    `controls` reach it."""

    tau: float
    kept: int
    passages: int
    passing: int
    controls: int


@dataclass(frozen=True, slots=True)
class Frequent:
    """A text that many calls share: in how many executed calls it stands, and in how many kept ones."""

    text: str
    executed: int
    kept: int


@dataclass(frozen=True, slots=True)
class Losses:
    """The losses of one kept call, in nats: with nothing in front, with the call, with the call and its result."""

    none: float
    call: float
    result: float


@dataclass(frozen=True, slots=True)
class ToolReport:
    """One tool. `rows == not_tried + proposed`, and the counts of the reasons and `kept` add up to `rows`.

    A row not tried stands for a passage that the tool's rule left out. `kept_per_thousand` and `share_with_call` are
    per annotated passage of the run. `losses` are of at most some hundred kept calls, evenly spaced by gain. `shared`
    are the words in a row that the most results of kept calls have. `notes` say what deserves a second look.
    """

    name: str
    settings: Mapping[str, Any]
    rows: int
    not_tried: int
    proposed: int
    executed: int
    scored: int
    kept: int
    passages_with_call: int
    kept_per_thousand: float
    share_with_call: float
    threshold: Threshold
    kept_at: tuple[KeptAt, ...]
    reasons: tuple[ReasonCount, ...]
    proposers: tuple[ProposerCount, ...]
    gains: Histogram
    losses: tuple[Losses, ...]
    best: tuple[Shown, ...]
    worst: tuple[Shown, ...]
    results: tuple[Frequent, ...]
    shared: Frequent | None
    bodies: tuple[Frequent, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """A run. `annotated` of its `passages` are done (all, when `finished`); `augmented` passages hold a kept call.

    `model` and `corpus` are fingerprints, `fingerprint` is that of everything the run was begun with.
    """

    name: str
    finished: bool
    model: str
    corpus: str
    fingerprint: str
    settings: Mapping[str, Any]
    passages: int
    annotated: int
    augmented: int
    tools: tuple[ToolReport, ...]
