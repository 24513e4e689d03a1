"""What a report says of a model besides its fingerprint: how large it is, and what it was taught here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import transformers

from toolwise.models.hub import resolve
from toolwise.models.load import note_of, readable


@dataclass(frozen=True, slots=True)
class About:
    """`parameters` are those of the whole network, each once. `taught`: texts with calls in them, the same texts
    without (the paper's control), or nothing."""

    parameters: int
    taught: Literal["calls", "texts", "nothing"]


def about_model(name: str) -> About:
    """Of a pulled name, a local folder, or a hub id, without loading its weights. Raises ModelUnavailable."""
    source = resolve(name)
    with readable(source) as options, torch.device("meta"):
        config = transformers.AutoConfig.from_pretrained(str(source), **options)
        parameters = transformers.AutoModelForCausalLM.from_config(config).num_parameters()
    note = note_of(source)
    return About(int(parameters), ("texts" if note.get("plain") else "calls") if "notation" in note else "nothing")
