"""One forward pass of a causal network of transformers: positions and visibility in, logits of the last rows out.

Covered: rotary and learned positions, grouped heads, full and sliding-window attention, tied or separate heads.
Whether a given network honours positions and masks is not believed but tried (`honours_masks`).

Not covered: encoder-decoder models.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from toolwise.core.errors import BadInput
from toolwise.models.base import Floats, Usage
from toolwise.notation.segments import Ids

_ATTENTION = {"full_attention", "sliding_attention"}


def longest_context(network: Any) -> int | None:
    """How many tokens a network has positions for, where its configuration says so."""
    longest: int | None = getattr(network.config.get_text_config(), "max_position_embeddings", None)
    return longest


class Network:
    """One forward pass: positions and visibility in, logits of the last rows out, everything counted."""

    def __init__(self, network: Any, usage: Usage) -> None:
        self.network = network
        self.usage = usage
        parameters = inspect.signature(network.forward).parameters
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"
        self._can_keep = "logits_to_keep" in parameters
        config = network.config.get_text_config()
        self._window: int | None = getattr(config, "sliding_window", None)
        if getattr(config, "use_sliding_window", True) is False:
            self._window = None
        self._kinds = set(getattr(config, "layer_types", None) or [])
        if not self._kinds:
            self._kinds = {"sliding_attention" if self._window else "full_attention"}
        self.supported = self._kinds <= _ATTENTION and not getattr(config, "is_encoder_decoder", False)
        self.longest = longest_context(network)
        self.vocabulary: int = network.get_output_embeddings().weight.shape[0]

    def causal(self, ids: Ids, start: int, cache: DynamicCache, rows: int) -> torch.Tensor:
        """`ids` at positions start.. over a cache that holds the first `start` ones; logits [rows, vocabulary]."""
        self.bounded(start + len(ids))  # before a mask of its square is made
        positions = torch.arange(start, start + len(ids))
        keys = torch.arange(start + len(ids))
        sees = keys[None, :] <= positions[:, None]
        return self.forward(torch.tensor([ids]), positions[None], sees[None], keys[None], cache, rows)[0]

    @torch.inference_mode()
    def forward(
        self,
        ids: torch.Tensor,
        positions: torch.Tensor,
        sees: torch.Tensor,
        key_positions: torch.Tensor,
        cache: DynamicCache | None,
        rows: int,
        real: int | None = None,
    ) -> torch.Tensor:
        """ids and positions [batch, queries], sees [batch, queries, keys], key_positions [batch, keys].

        Raises BadInput for a position that the network has not: some answer it with nonsense, others end the process.
        """
        self.bounded(int(positions.max()) + 1)
        device = self.network.device
        options: dict[str, Any] = {
            "input_ids": ids.to(device),
            "position_ids": positions.to(device),
            "attention_mask": self._masks(sees, positions, key_positions),
            "use_cache": cache is not None,
        }
        if cache is not None:
            options[self._cache_name] = cache
        if self._can_keep:
            options["logits_to_keep"] = rows
        logits: torch.Tensor = self.network(**options).logits[:, -rows:].float()
        self.usage.add(ids.numel() if real is None else real, ids.shape[0] * rows)
        return logits

    def whole(self, ids: Ids, rows: int) -> Floats:
        """Logits after the last `rows` tokens of one sequence, [rows, vocabulary]: no cache, no mask."""
        self.bounded(len(ids))
        options: dict[str, Any] = {"logits_to_keep": rows} if self._can_keep else {}
        with torch.inference_mode():
            given = torch.tensor([ids], device=self.network.device)
            logits = self.network(input_ids=given, use_cache=False, **options).logits[0, -rows:]
        self.usage.add(len(ids), rows)
        return np.asarray(logits.float().cpu().numpy(), dtype=np.float32)

    def bounded(self, tokens: int) -> None:
        """Raises BadInput for a sequence that is longer than the network has positions for."""
        if self.longest is not None and tokens > self.longest:
            raise BadInput(
                f"This model reads at most {self.longest} tokens, and {tokens} were to be read; "
                "shorten the text, set smaller passages, or ask for fewer tokens."
            )

    def _masks(
        self, sees: torch.Tensor, positions: torch.Tensor, key_positions: torch.Tensor
    ) -> torch.Tensor | dict[str, torch.Tensor]:
        """What the attention layers add to their scores, [batch, 1, queries, keys], one a kind of layer."""
        dtype, device = self.network.dtype, self.network.device
        floor = torch.finfo(dtype).min

        def additive(visible: torch.Tensor) -> torch.Tensor:
            return torch.where(visible, 0.0, floor).to(device=device, dtype=dtype)[:, None]

        masks = {}
        if "full_attention" in self._kinds:
            masks["full_attention"] = additive(sees)
        if "sliding_attention" in self._kinds:
            assert self._window is not None
            near = positions[:, :, None] - key_positions[:, None, :] < self._window
            masks["sliding_attention"] = additive(sees & near)
        return masks if len(masks) > 1 else next(iter(masks.values()))


def honours_masks(net: Network) -> bool:
    """Whether two branches packed into one cache give what each gives alone, tried on eight tokens of this network."""
    upper = max(2, min(net.vocabulary, 1_000) - 1)
    context: Ids = tuple(1 + (7 * i) % upper for i in range(6))
    branches: list[Ids] = [(3 % upper, 5 % upper), (2 % upper, 4 % upper)]
    cuts = [4, 6]
    forwards = (net.usage.forwards, net.usage.positions, net.usage.rows)
    try:
        cache = DynamicCache()
        net.causal(context, 0, cache, 1)
        sees = torch.arange(6)[None, :] < torch.tensor(cuts)[:, None]
        keys = torch.arange(6)
        for step in range(2):
            sees = torch.cat([sees, torch.eye(2, dtype=torch.bool)], dim=1)
            positions = torch.tensor([cut + step for cut in cuts])
            keys = torch.cat([keys, positions])
            ids = torch.tensor([[branch[step] for branch in branches]])
            packed = net.forward(ids, positions[None], sees[None], keys[None], cache, 2)[0]
        alone = [net.whole(context[:cut] + branch, 1)[-1] for cut, branch in zip(cuts, branches, strict=True)]
    except (TypeError, ValueError, RuntimeError, AttributeError, NotImplementedError):
        return False  # the network cannot even be asked this way
    finally:
        net.usage.forwards, net.usage.positions, net.usage.rows = forwards
    scale = max(1.0, float(np.abs(alone).max()))
    tolerance = 1e-4 if net.network.dtype == torch.float32 else 5e-2
    return bool(np.abs(packed.cpu().numpy() - np.stack(alone)).max() <= tolerance * scale)
