"""The network and tokenizer of a model folder, as training needs them: fp32, no cache, LoRA on and merged again."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError

from toolwise.core.errors import BadInput, ModelUnavailable
from toolwise.models.tokenizers import HFTokenizer

# An end of text has one of these names where the configured end is an end of turn (SmolLM2: `<|im_end|>`).
_ENDS_OF_TEXT = ("<|endoftext|>", "<|end_of_text|>", "<eos>", "</s>")


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars, notes and warnings of transformers, for as long as it lasts."""
    log = transformers.utils.logging
    verbosity, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # names that transformers is about to change
            yield
    finally:
        log.set_verbosity(verbosity)
        if bars:
            log.enable_progress_bar()


def load_tokenizer(folder: Path) -> HFTokenizer:
    """Raises ModelUnavailable."""
    try:
        return HFTokenizer(transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True))
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelUnavailable(f"{str(folder)!r} has no tokenizer that transformers can load; complete it.") from error


def load_network(folder: Path, *, lora: Path | None = None) -> Any:
    """A causal LM in fp32 and evaluation mode, with the LoRA adapter of the folder `lora` merged into its weights.

    Raises ModelUnavailable.
    """
    try:
        network = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise ModelUnavailable(f"{str(folder)!r} is no causal language model that transformers can load.") from error
    if lora is not None:
        from peft import PeftModel

        network = PeftModel.from_pretrained(network, lora).merge_and_unload()
    return network.eval()


def uses_cache(folder: Path) -> bool:
    """Whether the network of a folder decodes with a cache unless told otherwise."""
    return bool(getattr(transformers.AutoConfig.from_pretrained(folder, local_files_only=True), "use_cache", True))


def longest_context(network: Any) -> int | None:
    """How many tokens the network has positions for, where it says so."""
    longest: int | None = getattr(network.config.get_text_config(), "max_position_embeddings", None)
    return longest


def with_lora(network: Any, rank: int, seed: int) -> Any:
    """The network with a LoRA adapter on every linear layer but the head (alpha = 2 rank). Raises BadInput."""
    from peft import LoraConfig, get_peft_model

    transformers.set_seed(seed)  # the adapter starts at random weights
    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
    try:
        return get_peft_model(network, config)
    except ValueError as error:
        raise BadInput("This network has no linear layers that LoRA can adapt; set lora_rank to None.") from error


def end_of_text(tokenizer: Any) -> int | None:
    """The id that ends a text: an added token named like one, otherwise the configured end unless chats use it."""
    added = tokenizer.get_added_vocab()
    named = next((added[name] for name in _ENDS_OF_TEXT if name in added), None)
    if named is not None:
        return int(named)
    end = tokenizer.eos_token
    return None if end is None or end in (tokenizer.chat_template or "") else int(tokenizer.eos_token_id)
