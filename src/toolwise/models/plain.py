"""The protocol over one function: the logits after the last tokens of one sequence.

Slow and obvious: no cache, no batch, nothing shared. It serves networks that cannot be asked in a faster way, the
scripted model, and the tests, where every fast path must agree with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from toolwise.core.errors import BadInput
from toolwise.models.base import Branch, Context, Floats, Sampling, ScoreRequest, Usage
from toolwise.models.sampling import Tree
from toolwise.notation.segments import Ids, Tokenizer

#: Logits after each of the last `rows` tokens of one sequence: (ids, rows) -> [rows, vocabulary].
Whole = Callable[[Ids, int], Floats]


class PlainModel:
    """The four operations, each as its definition says. `longest`: how many tokens `whole` takes, if not any number."""

    def __init__(self, whole: Whole, tokenizer: Tokenizer, usage: Usage, longest: int | None = None) -> None:
        self._whole = whole
        self._tokenizer = tokenizer
        self.usage = usage
        self._longest = longest

    def marker_probs(self, contexts: Sequence[Context], marker: int) -> list[Floats]:
        found = []
        for context in contexts:
            before = len(context.head) + len(context.body)
            if before == 0:
                raise BadInput("Something must stand before the text: an instruction, or the model's BOS.")
            rows = self._whole(context.ids, len(context.ids) - before + 1).astype(np.float64)
            rows = np.exp(rows - rows.max(axis=-1, keepdims=True))
            found.append(np.asarray(rows[:, marker] / rows.sum(axis=-1), dtype=np.float32))
        return found

    def branch(self, context: Context, cuts: Sequence[int], sampling: Sampling) -> list[list[Branch]]:
        return self.grow(Tree(self._tokenizer, context, cuts, sampling), context)

    def grow(self, tree: Tree, context: Context) -> list[list[Branch]]:
        """Let a tree grow, one whole forward pass a node and step."""
        before = context.head + context.body
        paths: list[Ids] = [before + context.text[:cut] for cut in tree.cuts]
        while tree.live:
            paths = [(*paths[parent], token) for parent, token in zip(tree.parents, tree.live, strict=True)]
            tree.grow(np.concatenate([self._whole(path, 1) for path in paths]))
        return tree.branches()

    def score(self, requests: Sequence[ScoreRequest]) -> list[Floats]:
        losses = []
        for request in requests:
            if request.start < 1 or request.start >= len(request.ids):
                raise BadInput("A score request needs a token in front of the first one that is scored.")
            rows = self._whole(request.ids[:-1], len(request.ids) - request.start).astype(np.float64)
            peak = rows.max(axis=-1)
            total = peak + np.log(np.exp(rows - peak[:, None]).sum(axis=-1))
            given = rows[np.arange(len(rows)), list(request.ids[request.start :])]
            losses.append(np.asarray(total - given, dtype=np.float32))
        return losses

    def session(self, context: Ids) -> PlainSession:
        return PlainSession(self._whole, context, self._longest)


class PlainSession:
    """A session that reads everything again whenever it is asked."""

    def __init__(self, whole: Whole, context: Ids = (), longest: int | None = None) -> None:
        self._whole = whole
        self._longest = longest
        self._ids = list(context)

    @property
    def ids(self) -> Ids:
        return tuple(self._ids)

    @property
    def full(self) -> bool:
        return self._longest is not None and len(self._ids) > self._longest

    def feed(self, ids: Sequence[int]) -> None:
        self._ids.extend(ids)

    def logits(self) -> Floats:
        if not self._ids:
            raise BadInput("A session needs a token before it can say what comes next.")
        return np.asarray(self._whole(tuple(self._ids), 1)[-1], dtype=np.float32)

    def rewind(self, length: int) -> None:
        if not 0 <= length <= len(self._ids):
            raise BadInput(f"Cannot rewind {len(self._ids)} tokens to {length}.")
        del self._ids[length:]

    def fork(self) -> PlainSession:
        return PlainSession(self._whole, tuple(self._ids), self._longest)
