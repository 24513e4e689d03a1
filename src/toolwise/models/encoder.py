"""A sentence encoder of transformers, by name or folder: a `Reranker` for `Search`.

A text is the mean of its tokens' last hidden states, as unit length, and two texts are as near as their product; so
all-MiniLM, E5, GTE and their like are meant to be used. E5 wants `query: ` and `passage: ` in front.

Not covered: encoders that are read in another way (a first token, a projection behind the network); cross-encoders.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from toolwise.core.errors import ModelUnavailable
from toolwise.core.jsonio import fingerprint
from toolwise.models.hub import resolve

try:
    import torch
    import transformers
except ImportError as error:
    raise ModelUnavailable("Models need more packages: pip install 'toolwise[teach]'.") from error

from toolwise.models.base import Floats
from toolwise.models.load import placed, readable, weights_identity

_BATCH = 32  # texts; a passage has some 150 tokens
_TOKENS = 512  # of a text at most, as such encoders were trained


class SentenceEncoder:
    """Texts as vectors. `identity` changes with weights, precision and what stands in front of texts."""

    def __init__(
        self, network: Any, tokenizer: Any, identity: str, *, query_prefix: str = "", text_prefix: str = ""
    ) -> None:
        """Use `load_encoder`."""
        self.identity = identity
        self._network, self._tokenizer = network, tokenizer
        self._query_prefix, self._text_prefix = query_prefix, text_prefix
        self._tokens = min(_TOKENS, getattr(network.config, "max_position_embeddings", _TOKENS))
        self._one = threading.Lock()  # a tokenizer is not for several threads

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """The cosine of the query with each text."""
        if not texts:
            return []
        asked = self.encode([self._query_prefix + query])
        return [float(one) for one in self.encode([self._text_prefix + text for text in texts]) @ asked[0]]

    def vectors(self, texts: Sequence[str], *, query: bool = False) -> Floats:
        """Unit vectors, [texts, width], with what stands in front of queries, or of texts."""
        prefix = self._query_prefix if query else self._text_prefix
        return np.asarray(self.encode([prefix + text for text in texts]).numpy(), np.float32)

    @torch.inference_mode()
    def encode(self, texts: Sequence[str]) -> torch.Tensor:
        """Unit vectors, [texts, width], in fp32 on the CPU. A text is cut at the network's length."""
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))  # little padding
        batches = [order[at : at + _BATCH] for at in range(0, len(order), _BATCH)]
        rows = torch.cat([self._pooled([texts[at] for at in batch]) for batch in batches])
        return rows[torch.tensor(order).argsort()]

    def _pooled(self, texts: list[str]) -> torch.Tensor:
        with self._one:
            given = self._tokenizer(texts, padding=True, truncation=True, max_length=self._tokens, return_tensors="pt")
        given = given.to(self._network.device)
        states = self._network(**given).last_hidden_state
        mask = given["attention_mask"].unsqueeze(-1).to(states.dtype)
        mean = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
        return torch.nn.functional.normalize(mean.float(), dim=-1).cpu()


def load_encoder(
    name: str, *, device: str = "auto", dtype: str = "auto", query_prefix: str = "", text_prefix: str = ""
) -> SentenceEncoder:
    """The encoder in a local folder or under a hub id. Raises ModelUnavailable, and BadInput for an unknown dtype."""
    source = resolve(name)
    device, dtype = placed(device, dtype)
    with readable(source) as options:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(source), **options)
        network = transformers.AutoModel.from_pretrained(str(source), dtype=getattr(torch, dtype), **options)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token  # masked, so any will do
    identity = fingerprint([weights_identity(source), dtype, query_prefix, text_prefix])[:16]
    return SentenceEncoder(
        network.to(device).eval(),
        tokenizer,
        f"encoder {identity}",
        query_prefix=query_prefix,
        text_prefix=text_prefix,
    )
