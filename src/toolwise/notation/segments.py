"""Pieces of text -> token ids and a loss mask, piece by piece, so that data never becomes control.

Every piece is turned into tokens on its own and the ids are put one behind the other: the tokens of a document do not
depend on the calls woven into it, and a tokenizer cannot merge the end of a result with the marker that follows. The
same function serves sampling, scoring, training and decoding. Only a piece that the runtime says is a marker can become
the token of a special marker; text that spells one stays text.

`encode_data` is how a tokenizer keeps the promise of its `encode`. It rewrites nothing and escapes nothing, since every
escape can be forged; it looks at the ids that came out.

Not covered: that a *model* is not persuaded by what it reads; only that no byte of data can make a control token.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from toolwise.core.errors import BadInput
from toolwise.notation.markers import Notation

Ids = tuple[int, ...]


class Tokenizer(Protocol):
    """What the package needs of a tokenizer; `models.hf` makes one from any tokenizer of transformers."""

    @property
    def begin(self) -> Ids:
        """What this model expects first: its BOS, or nothing. Sampling, scoring, training and decoding all use it."""

    @property
    def notation(self) -> Notation:
        """How the model was taught to write calls; plain for one that was not."""

    @property
    def control(self) -> frozenset[int]:
        """Ids that structure a conversation or a call; text never produces them."""

    @property
    def control_ids(self) -> Mapping[str, int]:
        """The same ids by the text that stands for each in a template or a layout, `<|im_end|>`."""

    @property
    def special_names(self) -> Mapping[str, str]:
        """What a chat template may call some of them: `bos_token` -> `<s>`."""

    @property
    def end(self) -> frozenset[int]:
        """Ids that end a text."""

    def encode(self, text: str) -> Ids:
        """Ids of data: never one of `control`, nothing added in front or behind."""

    def encode_marker(self, text: str) -> Ids:
        """Ids of a marker that the runtime writes: its own token where `notation` has one, otherwise as `encode`."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; `decode(encode(text)) == text`. Control ids yield nothing, but a marker's token its text."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of text, whether its tokens count in the training loss, and whether it is a marker of the runtime's."""

    text: str
    loss: bool = True
    marker: bool = False


def encode(segments: Iterable[Segment], tokenizer: Tokenizer) -> tuple[Ids, tuple[bool, ...]]:
    """The ids of the segments, each encoded on its own, and for every id whether it counts in the loss."""
    ids: list[int] = []
    mask: list[bool] = []
    for segment in segments:
        piece = (tokenizer.encode_marker if segment.marker else tokenizer.encode)(segment.text)
        ids.extend(piece)
        mask.extend([segment.loss] * len(piece))
    return tuple(ids), tuple(mask)


def encode_data(
    text: str,
    encode: Callable[[str], Sequence[int]],
    control: AbstractSet[int],
    decode: Callable[[Sequence[int]], str],
) -> Ids:
    """The ids of `text` without any of `control`, for an `encode` that turns `<|im_end|>` in a text into a control id.

    Where a control id came out, the text is cut behind the first character of what that id stands for, and the pieces
    are encoded separately; text without control strings is encoded as a whole. `decode` gives the text of ids.
    Raises BadInput when one character alone makes a control id, so that no cut can avoid it.
    """
    ids = tuple(encode(text))
    found = control & set(ids)
    if not found:
        return ids
    if len(text) < 2:
        raise BadInput(f"The tokenizer has no data token for {text!r}; use a tokenizer that can write it as text.")
    names = [re.escape(name) for name in map(decode, ([i] for i in found)) if len(name) > 1]
    cuts = [match.start() + 1 for match in re.finditer("|".join(names), text)] if names else []
    # A normalising tokenizer can make `<|im_end|>` out of `<|IM_END|>`: then no name is found, and halves end it too.
    cuts = [0, *(cuts or [len(text) // 2]), len(text)]
    pieces = (text[a:b] for a, b in pairwise(cuts))
    return tuple(i for piece in pieces for i in encode_data(piece, encode, control, decode))
