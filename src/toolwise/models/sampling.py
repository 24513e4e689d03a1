"""Many short continuations as one tree.

Samples that have written the same tokens share a node, so that what is common is computed once. What a sample writes
depends on the seed, the text before its cut and its own number alone: its random numbers are drawn from a generator
keyed by these, never from a stream that other samples use as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from toolwise.core.errors import BadInput, LimitExceeded
from toolwise.models.base import Branch, Constraint, Context, Floats, Sampling
from toolwise.notation.segments import Ids, Tokenizer


@dataclass(slots=True)
class _Node:
    """A point of the tree: the cut it grew from, what was written since, the samples that wrote it, and what they are
    held to from here on."""

    cut: int
    written: Ids
    samples: list[int] = field(default_factory=list)
    held: Constraint | None = None


class Tree:
    """The live nodes of all branches, step by step.

    A step feeds `live` (one token a node), whose parents are the rows `parents` of the step before (at first: the
    cuts), at depth `depths` counted in tokens of the text; `grow(logits)` then samples from the rows that came back.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        context: Context,
        cuts: Sequence[int],
        sampling: Sampling,
        only: int | None = None,
    ) -> None:
        """`only` grows one of the samples, the same as it would be among the others. Raises BadInput."""
        if not sampling.forced:
            raise BadInput("A branch needs at least one forced token, such as the open marker.")
        self.cuts = cuts
        self._tokenizer = tokenizer
        self._sampling = sampling
        self._uniform = [_uniforms(sampling, context, cut) for cut in cuts] if sampling.temperature > 0 else []
        self._done: list[list[Branch | None]] = [[None] * sampling.n for _ in cuts]
        self._forced_left = len(sampling.forced)
        samples = range(sampling.n) if only is None else [only]
        self._nodes = [_Node(i, (), list(samples), sampling.held) for i in range(len(cuts))]
        self.live: list[int] = [sampling.forced[0]] * len(cuts)
        self.parents: list[int] = list(range(len(cuts)))
        self.depths: list[int] = list(cuts)

    def grow(self, logits: Floats) -> None:
        """Sample from `logits` [live, vocabulary] and make the nodes of the next step."""
        self._forced_left -= 1
        if self._forced_left:
            self.live = [self._sampling.forced[-self._forced_left]] * len(self._nodes)
            self.parents = list(range(len(self._nodes)))
            self.depths = [depth + 1 for depth in self.depths]
            return
        self._forced_left = 1
        children: list[_Node] = []
        live, parents, depths = [], [], []
        for row, (node, tokens) in enumerate(zip(self._nodes, self._sample(logits), strict=True)):
            for token, samples in tokens.items():
                child = _Node(node.cut, (*node.written, token), samples)
                if self._ended(child):
                    continue
                if node.held is not None:
                    child.held = node.held.fork()
                    child.held.accept(token)
                children.append(child)
                live.append(token)
                parents.append(row)
                depths.append(self.depths[row] + 1)
        self._nodes, self.live, self.parents, self.depths = children, live, parents, depths

    def branches(self) -> list[list[Branch]]:
        return [[branch for branch in row if branch is not None] for row in self._done]

    def _ended(self, node: _Node) -> bool:
        text = self._tokenizer.decode(node.written)
        stopped = self._sampling.stop(text)
        ended = len(node.written) >= self._sampling.max_tokens or node.written[-1] in self._tokenizer.end
        if stopped or ended:
            self._end(node, text, stopped)
        return stopped or ended

    def _end(self, node: _Node, text: str, stopped: bool) -> None:
        for sample in node.samples:
            self._done[node.cut][sample] = Branch(node.written, text, stopped)

    def _sample(self, logits: Floats) -> list[dict[int, list[int]]]:
        """For each live node, the tokens that its samples draw and which samples draw them."""
        drawn: list[dict[int, list[int]]] = []
        for node, line in zip(self._nodes, logits, strict=True):
            try:
                held = line if node.held is None else node.held.masked(line)
            except LimitExceeded:
                self._end(node, self._tokenizer.decode(node.written), False)
                drawn.append({})
                continue
            if self._sampling.temperature <= 0:
                drawn.append({int(held.argmax()): node.samples})
                continue
            with np.errstate(over="ignore"):  # at a tiny temperature all but the likeliest are infinitely far behind
                weights = np.exp((held - held.max()) / self._sampling.temperature)
            cumulative = np.cumsum(weights, dtype=np.float64)
            points = self._uniform[node.cut][node.samples, len(node.written)] * cumulative[-1]
            last = int(np.searchsorted(cumulative, cumulative[-1]))  # behind it nothing has a chance
            groups: dict[int, list[int]] = {}
            for sample, token in zip(node.samples, np.searchsorted(cumulative, points, side="right"), strict=True):
                groups.setdefault(min(int(token), last), []).append(sample)
            drawn.append(groups)
        return drawn


def _uniforms(sampling: Sampling, context: Context, cut: int) -> np.typing.NDArray[np.float64]:
    """Random numbers in [0, 1), shape [n, max_tokens], for one cut: the same whatever else is sampled beside it."""
    before = repr(context.head + context.body + context.text[:cut])
    key = hashlib.blake2b(f"{sampling.seed}|{before}".encode(), digest_size=16).digest()
    generator = np.random.Generator(np.random.Philox(key=int.from_bytes(key, "big")))
    return generator.random((sampling.n, sampling.max_tokens))


def softmax(logits: Floats) -> Floats:
    """Probabilities of one row of logits, in double precision inside."""
    wide = logits.astype(np.float64)
    wide = np.exp(wide - wide.max())
    return np.asarray(wide / wide.sum(), dtype=np.float32)
