"""Language models behind one small protocol.

Four operations carry the whole system, all on token ids, none of which adds anything in front of what it is given
(a model's BOS is `tokenizer.begin`, and the caller puts it there):

    marker_probs   how likely a marker is before every token of a text      where to call
    branch         short continuations from many cut points of one text     what to call
    score          negative log-likelihood of given tokens                  whether it helped
    session        a decode loop that can be forced, forked and rewound     calling while writing

`Usage` counts what a model really computed, so that savings are measured and not claimed. `conformance` in
`models/conformance.py` checks any implementation: cached = uncached, batch = single, forced = prefilled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from toolwise.core.errors import BadInput
from toolwise.notation.inline import Notation
from toolwise.notation.segments import Ids, Tokenizer

Floats = npt.NDArray[np.float32]

#: Called with the text a branch has written so far; True ends the branch.
Stop = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Context:
    """A text and what stands before it.

    `head` is shared by many texts (instructions and examples of one tool), so a model may keep its cache from one
    request to the next; `body` belongs to this text (it shows it once as input); `text` is what positions index.
    """

    head: Ids
    body: Ids
    text: Ids

    @property
    def ids(self) -> Ids:
        return self.head + self.body + self.text


class Constraint(Protocol):
    """What sampling is held to; `models.masks.Matcher` is one. It may raise LimitExceeded, which ends a branch."""

    def masked(self, logits: Floats) -> Floats:
        """A copy of the logits of one row in which what may not come next has no chance."""

    def accept(self, token: int) -> None: ...

    def fork(self) -> Constraint: ...


@dataclass(frozen=True, slots=True)
class Sampling:
    """How continuations are sampled: `n` at each cut, all behind the `forced` tokens, of which there is at least one.

    Each ends where `stop` says so, at a token that ends a text, or after `max_tokens`. `temperature` 0 is greedy. With
    `held`, which stands behind the forced tokens, only what it lets pass is sampled.
    """

    n: int
    forced: Ids
    stop: Stop
    max_tokens: int
    temperature: float
    seed: int
    held: Constraint | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """One continuation: what was sampled after the forced prefix. `stopped` is False when it ran out of tokens."""

    ids: Ids
    text: str
    stopped: bool


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """Asks for `-log p(ids[j] | ids[:j])` for every j >= start. `start` is at least 1: something must stand before."""

    ids: Ids
    start: int


@dataclass(slots=True)
class Usage:
    """What was computed: forward passes, token positions run through the network, rows projected on the vocabulary."""

    forwards: int = 0
    positions: int = 0
    rows: int = 0

    def add(self, positions: int, rows: int) -> None:
        self.forwards += 1
        self.positions += positions
        self.rows += rows


class Session(Protocol):
    """A decode session over one growing sequence, with its cache."""

    @property
    def ids(self) -> Ids:
        """Everything fed so far, the context included."""

    @property
    def full(self) -> bool:
        """Whether more was fed than the model has positions for, so that it cannot say what comes next."""

    def feed(self, ids: Sequence[int]) -> None:
        """Append tokens, sampled or forced; many at once cost one forward pass."""

    def logits(self) -> Floats:
        """Unnormalised scores of the next token, shape [vocabulary]. Needs at least one token fed."""

    def rewind(self, length: int) -> None:
        """Go back to the first `length` tokens."""

    def fork(self) -> Session:
        """An independent copy that continues from here."""


class Writer(Protocol):
    """As much of a model as decoding needs."""

    @property
    def tokenizer(self) -> Tokenizer: ...

    def session(self, context: Ids, /) -> Session:
        """A session that has been fed `context`."""


class LanguageModel(Protocol):
    """The protocol. Implementations: `models.hf`, `models.scripted`."""

    @property
    def name(self) -> str:
        """For people."""

    @property
    def fingerprint(self) -> str:
        """Changes when weights, tokenizer or precision change: part of every run's fingerprint."""

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def usage(self) -> Usage: ...

    def marker_probs(self, contexts: Sequence[Context], marker: int) -> list[Floats]:
        """For each context, p(marker | head, body, text[:i]) for i in 0..len(text), shape [len(text) + 1]."""

    def branch(self, context: Context, cuts: Sequence[int], sampling: Sampling) -> list[list[Branch]]:
        """Continuations from head + body + text[:cut] + forced, `sampling.n` for each cut.

        What is sampled at a cut depends on the seed, the cut's context and the sample's number alone, never on which
        other cuts are asked for. Raises BadInput where nothing is forced.
        """

    def score(self, requests: Sequence[ScoreRequest]) -> list[Floats]:
        """Negative log-likelihood in nats, shape [len(ids) - start] for each request."""

    def session(self, context: Ids) -> Session:
        """A session that has been fed `context`."""


def single_marker(tokenizer: Tokenizer, notation: Notation) -> int | None:
    """The id of the open marker, or None where it is not one token: then it has no probability of its own."""
    ids = tokenizer.encode_marker(notation.open)
    return ids[0] if len(ids) == 1 else None


def marker_id(tokenizer: Tokenizer, notation: Notation) -> int:
    """The same where it is needed, so that the marker's probability is one row of one forward pass.

    Raises BadInput for a notation whose open marker this tokenizer splits.
    """
    marker = single_marker(tokenizer, notation)
    if marker is None:
        raise BadInput(f"The open marker {notation.open!r} must be one token of this model; choose another marker.")
    return marker
