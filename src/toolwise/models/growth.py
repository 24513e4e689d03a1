"""A model that is to learn special markers: tokens for its tokenizer, and rows for its network to begin with.

A new row begins as the mean of those of the plain marker's tokens in whose place it stands, in the embedding and in the
head: a model then starts a call about as likely as a bracket, where a random row would be noise in every prediction.

Not covered: networks whose vocabulary stands elsewhere than in their input embedding and output head.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from transformers import AddedToken

from toolwise.models.tokenizers import HFTokenizer
from toolwise.notation.markers import PLAIN, Notation
from toolwise.notation.segments import Ids

#: For every new id, the ids whose rows it begins as the mean of.
NewRows = Mapping[int, Ids]


def with_notation(tokenizer: HFTokenizer, notation: Notation) -> tuple[HFTokenizer, NewRows]:
    """The tokenizer of a model that is to write `notation`, and the rows that its network lacks."""
    wrapped = copy.deepcopy(tokenizer.wrapped)
    known = wrapped.get_vocab()
    missing = [m for m in notation.tokens if m not in wrapped.get_added_vocab()]
    wrapped.add_tokens([AddedToken(m, special=True, normalized=False) for m in missing], special_tokens=True)
    grown = HFTokenizer(wrapped, tokenizer.end, notation)
    rows = {
        id_: grown.encode(plain)
        for marker, plain in zip(notation.tokens, PLAIN.markers, strict=False)
        for id_ in grown.encode_marker(marker)
        if marker not in known
    }
    return grown, rows


@torch.no_grad()
def grow(network: Any, rows: NewRows) -> Any:
    """The same causal LM of transformers with these rows set; it gets longer where it has no place for them."""
    size = 1 + max(rows, default=0)
    if size > network.get_input_embeddings().weight.shape[0]:
        network.resize_token_embeddings(size, mean_resizing=False)
    for layer in (network.get_input_embeddings(), network.get_output_embeddings()):
        for parameter in layer.parameters():  # the weight, and a bias where a head has one
            for id_, ids in rows.items():
                parameter[id_] = parameter[list(ids)].mean(dim=0)
    return network
