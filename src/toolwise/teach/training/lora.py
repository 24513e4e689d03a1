"""LoRA (low-rank adapters) put on a network, and merged into its weights again."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import transformers

from toolwise.core.errors import BadInput


def merged(network: Any, adapter: Path) -> Any:
    """The network with the LoRA adapter of a folder added to its weights, in evaluation mode."""
    from peft import PeftModel

    return PeftModel.from_pretrained(network, adapter).merge_and_unload().eval()


def with_lora(network: Any, rank: int, seed: int, rows: Collection[int] = ()) -> Any:
    """The network with a LoRA adapter on every linear layer but the head (alpha = 2 rank).

    New `rows` of the embedding and the head, of which nothing low-rank could be learnt, are trained as they stand.
    Raises BadInput.
    """
    from peft import LoraConfig, get_peft_model

    layers = network.get_input_embeddings(), network.get_output_embeddings()
    if rows and getattr(layers[1], "bias", None) is not None:  # peft would leave it out without a word
        raise BadInput("LoRA cannot train new tokens of a network whose head has a bias; set lora_rank to None.")
    transformers.set_seed(seed)  # the adapter starts at random weights
    config = LoraConfig(
        r=rank,
        lora_alpha=2 * rank,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
        trainable_token_indices={n: list(rows) for n, m in network.named_modules() if m in layers} if rows else None,
    )
    try:
        adapted = get_peft_model(network, config)
    except ValueError as error:
        raise BadInput("This network has no linear layers that LoRA can adapt; set lora_rank to None.") from error
    if rows:
        config.base_model_name_or_path = ""  # or peft, seeing a vocabulary that grew, would store all of it every time
    return adapted
