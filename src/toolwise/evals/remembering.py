"""A model that is asked to continue one prompt again and again, in ways that differ from some token on.

What it said behind a sequence of tokens is kept and not computed again: the prompt is read once, and of two
continuations that begin alike the common beginning is written once. So a sweep over ways to decode costs what differs
between them, and what it gives is what each of them alone would.

Not covered: many prompts. A row for each token that was written is held, as wide as the vocabulary; take one of these
for each prompt.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolwise.core.errors import BadInput
from toolwise.decode.stream import agreed
from toolwise.models.base import Floats, Session, Writer
from toolwise.notation.segments import Ids, Tokenizer


class Remembering:
    """A Writer over another one. Used from one thread."""

    def __init__(self, model: Writer) -> None:
        self._model = model
        self._session: Session | None = None
        self._rows: dict[Ids, Floats] = {}
        #: How many rows the model was asked for.
        self.computed = 0

    @property
    def tokenizer(self) -> Tokenizer:
        return self._model.tokenizer

    def session(self, context: Ids) -> Session:
        return _Replayed(self, list(context))

    def row(self, ids: Ids) -> Floats:
        if ids not in self._rows:
            self._rows[ids] = self.at(ids).logits().copy()  # a pool's row may be one of a whole batch
            self.computed += 1
        return self._rows[ids]

    def at(self, ids: Ids) -> Session:
        """The one session of the model, holding these ids."""
        if self._session is None:
            self._session = self._model.session(ids)
        same = agreed(self._session.ids, ids)
        self._session.rewind(same)
        self._session.feed(ids[same:])
        return self._session


class _Replayed:
    """A session that asks the model only for what nobody asked before."""

    def __init__(self, told: Remembering, ids: list[int]) -> None:
        self._told = told
        self._ids = ids

    @property
    def ids(self) -> Ids:
        return tuple(self._ids)

    @property
    def full(self) -> bool:
        ids = self.ids
        return self._told.at(ids).full

    def feed(self, ids: Sequence[int]) -> None:
        self._ids.extend(ids)

    def logits(self) -> Floats:
        return self._told.row(self.ids)

    def rewind(self, length: int) -> None:
        if not 0 <= length <= len(self._ids):
            raise BadInput(f"Cannot rewind {len(self._ids)} tokens to {length}.")
        del self._ids[length:]

    def fork(self) -> Session:
        return _Replayed(self._told, list(self._ids))
