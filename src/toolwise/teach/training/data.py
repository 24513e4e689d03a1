"""What a training run reads: which texts it learns from, and which it is measured on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolwise.core.errors import BadInput
from toolwise.models.base import ScoreRequest, single_marker
from toolwise.models.tokenizers import HFTokenizer
from toolwise.teach.records import Augmented
from toolwise.teach.training.examples import RowExamples, row_examples
from toolwise.teach.training.likelihood import windows
from toolwise.teach.training.settings import TrainSettings


@dataclass(frozen=True, slots=True)
class TrainingData:
    """What a run reads: training examples, held-out texts in windows, and the open marker where it is one token."""

    examples: Sequence[RowExamples]
    held_out_rows: int
    held_out: Sequence[ScoreRequest]
    dropped: dict[str, int]
    marker: int | None

    @staticmethod
    def of(rows: Sequence[Augmented], tokenizer: HFTokenizer, settings: TrainSettings, plain: bool) -> TrainingData:
        everything, dropped = row_examples(
            rows,
            tokenizer,
            settings.length,
            plain=plain,
            mask_results=settings.mask_results,
            end=tokenizer.end_of_text,
        )
        if not everything:
            raise BadInput(f"No row can be trained on ({dict(dropped)}); annotate with this model's tokenizer.")
        measured = hold_out([rows[example.row].document for example in everything], settings)
        texts = [rows[everything[i].row].plain for i in sorted(measured)]
        requests = [w for t in texts for w in windows(tokenizer.encode(t), tokenizer.begin, settings.length)]
        return TrainingData(
            [example for i, example in enumerate(everything) if i not in measured],
            len(measured),
            requests,
            dict(dropped),
            single_marker(tokenizer, tokenizer.notation),
        )


def hold_out(documents: Sequence[str], settings: TrainSettings) -> frozenset[int]:
    """The indices of the rows to measure on, given every row's document: whole documents, at random, never all."""
    sizes = Counter(documents)
    if settings.held_out_share == 0 or len(sizes) < 2:
        return frozenset()
    target = min(settings.held_out_texts, round(settings.held_out_share * len(documents)))
    names = list(sizes)
    chosen: set[str] = set()
    count = 0
    for i in np.random.default_rng([settings.seed, 0, 0]).permutation(len(names)):
        if count + sizes[names[i]] <= target:
            chosen.add(names[i])
            count += sizes[names[i]]
    chosen = chosen or {min(names, key=lambda name: sizes[name])}
    return frozenset(i for i, document in enumerate(documents) if document in chosen)
