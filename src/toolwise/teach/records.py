"""The rows that the stages hand on: plain frozen records, one file of Parquet columns each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Earlier:
    """A call that an earlier round kept in a passage, before the character `offset` of its text."""

    offset: int
    body: str
    result: str
    tool: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document, cut at a paragraph or sentence end; the pieces of a document add up to its text.

    `start` is where it stands in the document, in characters. `date`, `url` and `language` are the document's.
    `calls` are those of earlier rounds, in their order; `text` is without them.
    """

    id: str
    document: str
    start: int
    text: str
    date: str | None = None
    url: str | None = None
    language: str | None = None
    calls: tuple[Earlier, ...] = ()

    def given(self, offset: int) -> str:
        """What calls of earlier rounds have given before the character `offset`."""
        return " ".join(call.result for call in self.calls if call.offset <= offset)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed call at a position of a passage, with all that became known of it.

    `position` counts tokens of the text (none of earlier calls), `offset` characters: the call stands before both.
    `body` is the call as written, `Calculator(18 / 24)`. Losses are weighted cross-entropies in nats over the
    five tokens from `position` on, each with what its name says in front (paper, section 2): `loss_control` has the
    same call with a result taken from another candidate. `stands_on` says whether it uses what an earlier call gave.
    `reason` is None for a kept call, otherwise the code that says why it was dropped.
    """

    passage: str
    tool: str
    position: int
    offset: int
    body: str
    proposer: str
    marker_prob: float | None = None
    result: str | None = None
    loss_none: float | None = None
    loss_call: float | None = None
    loss_result: float | None = None
    control_result: str | None = None
    loss_control: float | None = None
    gain: float | None = None
    control_gain: float | None = None
    stands_on: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """One call in an augmented text, in characters: the whole call, and its result inside it (equal ends: none)."""

    start: int
    end: int
    result_start: int
    result_end: int
    tool: str


@dataclass(frozen=True, slots=True)
class Augmented:
    """A passage of C*: the text with its kept calls woven in, the same text without them, and where the calls stand."""

    passage: str
    document: str
    text: str
    plain: str
    spans: tuple[Span, ...]
