"""Examples -> the batches that a network reads, several examples a row without one seeing the other.

A batch of training is a number of *texts*, not of rows: the same texts then meet in the same update whether calls are
woven into them or not, and however they are packed.

Restarting `position_ids` keeps the examples of a row apart only when the network gets *no* attention mask and *no*
cache; with an all-ones mask or the default cache they are mixed without a word. Some networks (OPT, BLOOM) never look
at the positions for this. So `keeps_apart` tries the network at hand, and one that fails is fed one example a row.

Not covered: attention kernels that exist only on the GPU are tried on the device where the network stands when asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from toolwise.teach.training.examples import IGNORED, Example, RowExamples

Row = tuple[Example, ...]


def first_fit_decreasing(lengths: Sequence[int], capacity: int) -> list[list[int]]:
    """Bins of indices whose lengths add up to at most `capacity`: longest first, each into the first bin with room."""
    bins: list[list[int]] = []
    room: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        fit = next((b for b, free in enumerate(room) if free >= lengths[index]), None)
        if fit is None:
            bins.append([index])
            room.append(capacity - lengths[index])
        else:
            bins[fit].append(index)
            room[fit] -= lengths[index]
    return bins


def order(count: int, batch: int, steps: int, seed: int) -> Iterator[list[int]]:
    """For every update the `batch` indices below `count` that it reads: one shuffled epoch after the other."""
    stream: list[int] = []
    epoch = 0
    for _ in range(steps):
        while len(stream) < batch:
            stream.extend(np.random.default_rng([seed, epoch]).permutation(count).tolist())
            epoch += 1
        yield stream[:batch]
        stream = stream[batch:]


class PackedRows(torch.utils.data.Dataset[Row]):
    """All rows of a training run in the order in which they are read, the same number in every update.

    `multiple` is the number of rows that all devices read at once; updates with fewer rows are filled with empty ones,
    which cost a token each. `rows_per_step` rows make one update.
    """

    def __init__(
        self,
        examples: Sequence[RowExamples],
        batches: Sequence[Sequence[int]],
        length: int,
        *,
        packed: bool,
        multiple: int,
    ) -> None:
        steps = [_rows([p for i in batch for p in examples[i].pieces], length, packed) for batch in batches]
        most = max(len(rows) for rows in steps)
        self.rows_per_step = -(-most // multiple) * multiple
        empty: Row = ()
        self.rows = [row for rows in steps for row in [*rows, *[empty] * (self.rows_per_step - len(rows))]]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Row:
        return self.rows[index]


def collate(rows: Sequence[Row], *, packed: bool) -> dict[str, torch.Tensor]:
    """Tensors of shape [rows, longest row]: `input_ids`, `labels` (not shifted) and `position_ids`.

    The first token of every example has no label, so that nothing is predicted from the example in front of it. Packed
    rows come without an attention mask on purpose (see above); other rows come with one.
    """
    width = max(1, max(sum(map(len, row)) for row in rows))
    ids = torch.zeros((len(rows), width), dtype=torch.long)
    labels = torch.full_like(ids, IGNORED)
    positions = torch.arange(width).repeat(len(rows), 1)
    real = torch.zeros_like(ids)
    for line, row in enumerate(rows):
        at = 0
        for example in row:
            stop = at + len(example)
            ids[line, at:stop] = torch.tensor(example.ids)
            labels[line, at:stop] = torch.tensor(example.labels)
            positions[line, at:] -= positions[line, at].item()  # padding, too, starts anew
            at = stop
        if at < width:
            positions[line, at:] -= positions[line, at].item()
        real[line, : max(at, 1)] = 1  # a row that sees nothing would not be a number
    batch = {"input_ids": ids, "labels": labels}
    return {**batch, "position_ids": positions} if packed else {**batch, "attention_mask": real}


@torch.no_grad()
def keeps_apart(network: Any) -> bool:
    """Whether two texts in one row of this network (in evaluation mode, `use_cache` off) get the logits of each alone.

    Compared on random ids, to a thousandth of the largest logit: mixing moves them by far more, rounding by far less.
    """
    generator = torch.Generator().manual_seed(0)
    device = next(network.parameters()).device
    limit = network.get_input_embeddings().weight.shape[0]
    texts = [torch.randint(limit, (n,), generator=generator).tolist() for n in (9, 7, 8)]
    row = tuple(Example(tuple(text), (True,) * len(text)) for text in texts)
    together = collate([row], packed=True)
    del together["labels"]
    logits = network(**{name: value.to(device) for name, value in together.items()}).logits[0].float()
    alone = torch.cat([network(torch.tensor([text], device=device)).logits[0].float() for text in texts])
    return bool((logits - alone).abs().max() <= 1e-3 * alone.abs().max())


def _rows(pieces: Sequence[Example], length: int, packed: bool) -> list[Row]:
    if not packed:
        return [(piece,) for piece in sorted(pieces, key=len, reverse=True)]
    return [tuple(pieces[i] for i in members) for members in first_fit_decreasing(list(map(len, pieces)), length)]
