"""The kept calls woven into their passages: C*, the augmented corpus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from toolwise.notation.inline import PLAIN, Insertion, Notation, find, weave
from toolwise.teach.records import Augmented, Candidate, Passage, Span


def augment(
    passages: Iterable[Passage], candidates: Sequence[Candidate], notation: Notation = PLAIN
) -> list[Augmented]:
    """One row for every passage in which a call survived; the others are left out of C*, as in the paper."""
    kept: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        if candidate.reason is None:
            kept.setdefault(candidate.passage, []).append(candidate)
    return [_weave(passage, kept[passage.id], notation) for passage in passages if passage.id in kept]


def _weave(passage: Passage, calls: list[Candidate], notation: Notation) -> Augmented:
    calls = sorted(calls, key=lambda c: c.offset)
    text = weave(passage.text, [Insertion(c.offset, c.body, c.result) for c in calls], notation)
    spans = tuple(
        Span(found.start, found.end, found.result_start, found.result_end, call.tool)
        for found, call in zip(find(text, notation), calls, strict=True)
    )
    return Augmented(passage.id, passage.document, text, passage.text, spans)
