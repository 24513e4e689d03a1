"""LoRA (low-rank adapters) put on a network, and merged into its weights again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import transformers

from toolwise.core.errors import BadInput


def merged(network: Any, adapter: Path) -> Any:
    """The network with the LoRA adapter of a folder added to its weights, in evaluation mode."""
    from peft import PeftModel

    return PeftModel.from_pretrained(network, adapter).merge_and_unload().eval()


def with_lora(network: Any, rank: int, seed: int) -> Any:
    """The network with a LoRA adapter on every linear layer but the head (alpha = 2 rank). Raises BadInput."""
    from peft import LoraConfig, get_peft_model

    transformers.set_seed(seed)  # the adapter starts at random weights
    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
    try:
        return get_peft_model(network, config)
    except ValueError as error:
        raise BadInput("This network has no linear layers that LoRA can adapt; set lora_rank to None.") from error
