"""How well a network predicts given texts, as they are and with calls disabled.

*Disabled* is the paper's word (section 4): the probability of the open marker is set to zero and the others are
renormalised. A given token x is then worth `-log(p(x) / (1 - p(open)))`. A text that holds the marker itself cannot be
predicted that way; such a token keeps its plain loss and is counted (`markers`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from toolwise.models.base import ScoreRequest
from toolwise.notation.segments import Ids


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over scored tokens, losses in nats: `plain` as it is, `disabled` with the open marker banned."""

    tokens: int = 0
    plain: float = 0.0
    disabled: float = 0.0
    markers: int = 0

    @staticmethod
    def of(total: torch.Tensor) -> Sums:
        """From what `sums` returned, added up over processes where there are several."""
        tokens, plain, disabled, markers = total.tolist()
        return Sums(round(tokens), plain, disabled, round(markers))


def windows(ids: Ids, begin: Ids, context: int) -> list[ScoreRequest]:
    """A text in windows of at most `context` tokens that do not overlap: each token is scored once.

    `begin` stands in front of every window. A model without one sees the last token of the window before instead, and
    the first token of the text, which nothing stands before, is not scored. `context` is at least `len(begin) + 2`.
    """
    if begin:
        room = context - len(begin)
        return [ScoreRequest(begin + ids[at : at + room], len(begin)) for at in range(0, len(ids), room)]
    return [ScoreRequest(ids[at - 1 : at + context - 1], 1) for at in range(1, len(ids), context - 1)]


@torch.no_grad()
def sums(
    network: Any, requests: Sequence[ScoreRequest], marker: int | None, *, batch_tokens: int, share: slice = slice(None)
) -> torch.Tensor:
    """The fields of `Sums`, shape [4] in float64 on the network's device, over one share of the batches.

    `network` is in evaluation mode. Without a `marker`, disabled equals plain. Among several processes each takes
    `slice(rank, None, world)`; all of them run the same number of forward passes, as sharded networks need.
    """
    device = next(network.parameters()).device
    total = torch.zeros(4, dtype=torch.float64, device=device)
    batches = list(_batches(requests, batch_tokens))
    stride, first = share.step or 1, share.start or 0
    for start in range(0, len(batches), stride):
        mine = start + first < len(batches)
        loss = _losses(network, batches[start + first] if mine else batches[-1], marker, device)
        total += loss if mine else 0
    return total


def _losses(network: Any, batch: Sequence[ScoreRequest], marker: int | None, device: torch.device) -> torch.Tensor:
    """Right padding needs no mask: a causal network never looks to the right, and padding is never a target."""
    width = max(len(request.ids) for request in batch)
    ids = torch.zeros((len(batch), width), dtype=torch.long)
    scored = torch.zeros((len(batch), width), dtype=torch.bool)
    for line, request in enumerate(batch):
        ids[line, : len(request.ids)] = torch.tensor(request.ids)
        scored[line, request.start : len(request.ids)] = True
    ids, scored = ids.to(device), scored[:, 1:].to(device)
    logits = network(input_ids=ids, use_cache=False).logits[:, :-1][scored].float()
    targets = ids[:, 1:][scored]
    given = logits.gather(-1, targets[:, None])[:, 0]
    plain = disabled = logits.logsumexp(-1) - given
    hit = torch.zeros_like(plain)
    if marker is not None:
        hit = (targets == marker).to(plain.dtype)
        logits[:, marker] = -torch.inf  # summed without it: 1 - p(open) would round to 0 for a model that is sure of it
        disabled = torch.where(hit > 0, plain, logits.logsumexp(-1) - given)
    return torch.stack([x.double().sum() for x in (torch.ones_like(plain), plain, disabled, hit)])


def _batches(requests: Sequence[ScoreRequest], batch_tokens: int) -> Iterator[list[ScoreRequest]]:
    """Batches of like length, each of at most `batch_tokens` padded tokens, or one text."""
    batch: list[ScoreRequest] = []
    for request in sorted(requests, key=lambda r: -len(r.ids)):
        if batch and len(batch[0].ids) * (len(batch) + 1) > batch_tokens:
            yield batch
            batch = []
        batch.append(request)
    if batch:
        yield batch
