"""Pieces of text -> token ids and a loss mask, piece by piece, so that data never becomes control.

Every piece is turned into tokens on its own and the ids are put one behind the other: the tokens of a document do not
depend on the calls woven into it, and a tokenizer cannot merge the end of a result with the marker that follows. The
same function serves sampling, scoring, training and decoding.

Not covered: that a *model* is not persuaded by what it reads; only that no byte of data can make a control token.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

Ids = tuple[int, ...]


class Tokenizer(Protocol):
    """What the package needs of a tokenizer; `models.hf` makes one from any tokenizer of transformers."""

    @property
    def begin(self) -> Ids:
        """What this model expects first: its BOS, or nothing. Sampling, scoring, training and decoding all use it."""

    @property
    def control(self) -> frozenset[int]:
        """Ids that structure a conversation; text never produces them."""

    @property
    def end(self) -> frozenset[int]:
        """Ids that end a text."""

    def encode(self, text: str) -> Ids:
        """Ids of data: never one of `control`, nothing added in front or behind."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; `decode(encode(text)) == text`. Control ids yield nothing."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of text and whether its tokens count in the training loss."""

    text: str
    loss: bool = True


def encode(segments: Iterable[Segment], tokenizer: Tokenizer) -> tuple[Ids, tuple[bool, ...]]:
    """The ids of the segments, each encoded on its own, and for every id whether it counts in the loss."""
    ids: list[int] = []
    mask: list[bool] = []
    for segment in segments:
        piece = tokenizer.encode(segment.text)
        ids.extend(piece)
        mask.extend([segment.loss] * len(piece))
    return tuple(ids), tuple(mask)
