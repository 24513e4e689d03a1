"""Score requests -> rows of a batch: what several requests begin with alike is read once.

A row is a tree of tokens: each request is a way from its root, and a node sees the nodes on the way to it. Candidates
that stand at places of one text share the text before them, so that scoring one of them costs its own few tokens and
not the text again. A request that shares nothing is a tree of one line.

Which requests go into one tree does not change what a network that honours masks gives, but for rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from toolwise.core.errors import BadInput
from toolwise.models.base import ScoreRequest

_ALIKE = 0.5  # of a request's tokens that a tree must hold already to take it in: attention to strangers costs, too


@dataclass(slots=True)
class TokenTree:
    """Nodes in the order in which they were made, so that a parent stands before its children.

    `reads`: for each request the nodes behind which its scored tokens are looked up.
    """

    ids: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    reads: dict[ScoreRequest, list[int]] = field(default_factory=dict)
    _children: dict[tuple[int, int], int] = field(default_factory=dict)

    def known(self, request: ScoreRequest) -> int:
        """How many of the request's tokens are here already."""
        node = -1
        for depth, token in enumerate(request.ids[:-1]):
            below = self._children.get((node, token))
            if below is None:
                return depth
            node = below
        return len(request.ids) - 1

    def add(self, request: ScoreRequest) -> None:
        node, way = -1, []
        for depth, token in enumerate(request.ids[:-1]):
            below = self._children.get((node, token))
            if below is None:
                below = self._children[node, token] = len(self.ids)
                self.ids.append(token)
                self.parents.append(node)
                self.depths.append(depth)
            way.append(node := below)
        self.reads[request] = way[request.start - 1 :]

    @property
    def read(self) -> list[int]:
        """The nodes that are looked up, each once."""
        return sorted({node for nodes in self.reads.values() for node in nodes})

    def visible(self) -> npt.NDArray[np.bool_]:
        """Who sees whom, [nodes, nodes]: a node itself and what leads to it."""
        sees = np.eye(len(self.ids), dtype=bool)
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                sees[node, :node] |= sees[parent, :node]
        return sees


def trees(requests: Sequence[ScoreRequest], most: int) -> Iterator[TokenTree]:
    """Trees of at most `most` nodes, or of one request. Raises BadInput for a request with nothing to go by."""
    tree: TokenTree | None = None
    for request in sorted(dict.fromkeys(requests), key=lambda request: request.ids):
        if request.start < 1 or request.start >= len(request.ids):
            raise BadInput("A score request needs a token in front of the first one that is scored.")
        length = len(request.ids) - 1
        known = 0 if tree is None else tree.known(request)
        if tree is None or known < _ALIKE * length or len(tree.ids) + length - known > most:
            if tree is not None:
                yield tree
            tree = TokenTree()
        tree.add(request)
    if tree is not None:
        yield tree


def batches(requests: Sequence[ScoreRequest], most_tokens: int, most_rows: int) -> Iterator[list[TokenTree]]:
    """Trees of like size together, within the bounds on padded positions and on rows that are read."""
    sized = [(len(tree.read), len(tree.ids), tree) for tree in trees(requests, most_tokens)]
    batch: list[TokenTree] = []
    width = rows = 0
    for read, nodes, tree in sorted(sized, key=lambda one: one[:2], reverse=True):
        wide, high = max(width, nodes), max(rows, read)
        count = len(batch) + 1
        if batch and (wide * count > most_tokens or high * count > most_rows):
            yield batch
            batch, wide, high = [], nodes, read
        batch.append(tree)
        width, rows = wide, high
    if batch:
        yield batch
