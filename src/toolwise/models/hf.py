"""Any causal language model of transformers, on a CPU or a GPU.

One idea makes it fast: every forward pass gets explicit positions and an explicit mask of who sees whom, so that one
key-value cache can hold a prompt, a text and a whole tree of continuations that cut in at different places.

`models/network.py` says which networks can be asked that way; one that cannot (ALiBi, recurrent or chunked layers)
takes the plain path of `models/plain.py`: correct and slow.

Not covered: encoder-decoder models, and tokenizers that do not give back the text they were given.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from toolwise.core.errors import BadInput
from toolwise.models.base import Branch, Context, Floats, Sampling, ScoreRequest, Session, Usage
from toolwise.models.network import Network, honours_masks
from toolwise.models.packing import TokenTree, batches
from toolwise.models.plain import PlainModel
from toolwise.models.pool import Pool
from toolwise.models.sampling import Tree
from toolwise.notation.segments import Ids, Tokenizer


class HFModel:
    """`network` is a causal LM of transformers in evaluation mode; `models.load.load_model` makes one from a name.

    `batch_tokens` bounds the padded positions of one batch, `batch_rows` the rows projected onto the vocabulary at
    once (a row of 49k words is 0.2 MB in fp32).
    """

    def __init__(
        self,
        network: Any,
        tokenizer: Tokenizer,
        *,
        name: str,
        fingerprint: str,
        batch_tokens: int = 2_048,
        batch_rows: int = 512,
    ) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self.tokenizer = tokenizer
        self.usage = Usage()
        self._batch_tokens = batch_tokens
        self._batch_rows = batch_rows
        self._net = Network(network, self.usage)
        self._heads: dict[Ids, DynamicCache] = {}
        self._recent: tuple[Context, DynamicCache] | None = None
        self.packed = self._net.supported and honours_masks(self._net)
        self._plain = PlainModel(self._net.whole, tokenizer, self.usage, self._net.longest)

    # -- where to call ---------------------------------------------------------------------------------------

    def marker_probs(self, contexts: Sequence[Context], marker: int) -> list[Floats]:
        if not self.packed:
            return self._plain.marker_probs(contexts, marker)
        found = []
        for context in contexts:
            logits = self._prefill(context, rows=len(context.text) + 1)
            found.append(torch.softmax(logits, dim=-1)[:, marker].cpu().numpy())
        return found

    # -- what to call ----------------------------------------------------------------------------------------

    def branch(self, context: Context, cuts: Sequence[int], sampling: Sampling) -> list[list[Branch]]:
        tree = Tree(self.tokenizer, context, cuts, sampling)
        if not self.packed:
            return self._plain.grow(tree, context)
        if self._recent is None or self._recent[0] != context:
            self._prefill(context, rows=1)
        assert self._recent is not None
        cache, base = _copy(self._recent[1]), len(context.head) + len(context.body)
        length = base + len(context.text)
        # Who sees whom: a row a live node, a column a key in the cache. Keys stand in the order in which they were fed.
        sees = torch.arange(length)[None, :] < torch.tensor([base + cut for cut in cuts])[:, None]
        key_positions = torch.arange(length)
        while tree.live:
            sees = torch.cat([sees[tree.parents], torch.eye(len(tree.live), dtype=torch.bool)], dim=1)
            positions = torch.tensor([base + depth for depth in tree.depths])
            key_positions = torch.cat([key_positions, positions])
            logits = self._net.forward(
                torch.tensor([tree.live]),
                positions[None],
                sees[None],
                key_positions[None],
                cache,
                len(tree.live),
            )
            tree.grow(logits[0].cpu().numpy())
        return tree.branches()

    # -- whether it helped -----------------------------------------------------------------------------------

    def score(self, requests: Sequence[ScoreRequest]) -> list[Floats]:
        if not self.packed:
            return self._plain.score(requests)
        losses: dict[ScoreRequest, Floats] = {}
        for batch in batches(requests, self._batch_tokens, self._batch_rows):
            self._score(batch, losses)
        return [losses[request] for request in requests]

    def _score(self, batch: Sequence[TokenTree], losses: dict[ScoreRequest, Floats]) -> None:
        """One forward pass. In each line stand padding, the nodes that are only seen, and last those that are read."""
        self._net.bounded(max(max(tree.depths) for tree in batch) + 1)  # before a mask is made
        read = [tree.read for tree in batch]
        width, rows = max(len(tree.ids) for tree in batch), max(map(len, read))
        ids, positions = np.zeros((2, len(batch), width), dtype=np.int64)
        sees = np.zeros((len(batch), width, width), dtype=bool)
        sees |= np.eye(width, dtype=bool)  # a padded row must see something, or it is not a number
        for line, tree in enumerate(batch):
            order = np.argsort(np.isin(np.arange(len(tree.ids)), read[line]), kind="stable")
            ids[line, -len(order) :] = np.array(tree.ids)[order]
            positions[line, -len(order) :] = np.array(tree.depths)[order]
            sees[line, -len(order) :, -len(order) :] = tree.visible()[np.ix_(order, order)]
        places = torch.from_numpy(positions)
        real = sum(len(tree.ids) for tree in batch)
        logits = self._net.forward(torch.from_numpy(ids), places, torch.from_numpy(sees), places, None, rows, real=real)
        for tree, nodes_read, behind in zip(batch, read, torch.log_softmax(logits, dim=-1), strict=True):
            row = {node: rows - len(nodes_read) + at for at, node in enumerate(nodes_read)}
            for request, nodes in tree.reads.items():
                at, wanted = [row[node] for node in nodes], list(request.ids[request.start :])
                losses[request] = -behind[at, wanted].cpu().numpy()

    # -- calling while writing -------------------------------------------------------------------------------

    def session(self, context: Ids) -> Session:
        session: Session = _CachedSession(self._net) if self.packed else self._plain.session(())
        session.feed(context)
        return session

    def pool(self) -> Pool | None:
        """A cache for many sessions at once; None where this network cannot be asked that way."""
        return Pool(self._net) if self.packed else None

    def _prefill(self, context: Context, rows: int) -> torch.Tensor:
        """Run body and text over the head's cache; the logits of the last `rows` positions, [rows, vocabulary].

        The head runs on its own, whatever came before, so that the same context always gives the same bits.
        """
        if len(context.ids) < rows:
            raise BadInput("Something must stand before the text: an instruction, or the model's BOS.")
        if context.head and context.head not in self._heads:
            self._heads.clear()  # one head at a time: a run works tool by tool
            cache = DynamicCache()
            self._net.causal(context.head, 0, cache, 1)
            self._heads[context.head] = cache
        cache = _copy(self._heads[context.head]) if context.head else DynamicCache()
        rest = context.body + context.text
        if len(rest) < rows:
            raise BadInput("A context needs a body in front of its text.")
        logits = self._net.causal(rest, len(context.head), cache, rows)
        self._recent = (context, cache)
        return logits


class _CachedSession:
    """Tokens wait until logits are asked for, so that forced ones cost one forward together."""

    def __init__(self, net: Network) -> None:
        self._net = net
        self._ids: list[int] = []
        self._cache = DynamicCache()
        self._cached = 0
        self._logits: Floats | None = None

    @property
    def ids(self) -> Ids:
        return tuple(self._ids)

    @property
    def full(self) -> bool:
        return self._net.longest is not None and len(self._ids) > self._net.longest

    def feed(self, ids: Sequence[int]) -> None:
        if len(ids):
            self._ids.extend(ids)
            self._logits = None

    def logits(self) -> Floats:
        if not self._ids:
            raise BadInput("A session needs a token before it can say what comes next.")
        if self._logits is None:
            if self._cached == len(self._ids):  # after a rewind: the last token's row was not kept
                self._crop(len(self._ids) - 1)
            pending = tuple(self._ids[self._cached :])
            rows = self._net.causal(pending, self._cached, self._cache, 1)
            self._cached = len(self._ids)
            self._logits = rows[0].cpu().numpy()
        return self._logits

    def rewind(self, length: int) -> None:
        if not 0 <= length <= len(self._ids):
            raise BadInput(f"Cannot rewind {len(self._ids)} tokens to {length}.")
        if length < len(self._ids):
            del self._ids[length:]
            self._logits = None
            self._crop(length)

    def fork(self) -> _CachedSession:
        other = _CachedSession(self._net)
        other._ids = list(self._ids)
        other._cache = _copy(self._cache)
        other._cached = self._cached
        other._logits = self._logits
        return other

    def _crop(self, length: int) -> None:
        if length < self._cached:
            self._cache.crop(length - self._cached)
            self._cached = length


def _copy(cache: DynamicCache) -> DynamicCache:
    """A cache that grows on its own. Layers replace their tensors and never write into them, so they can be shared."""
    other = DynamicCache()
    other.layers = [copy.copy(layer) for layer in cache.layers]
    return other
