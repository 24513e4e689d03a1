"""The kept calls woven into their passages: C*, the augmented corpus. And where they stand in the plain text again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from toolwise.core.errors import BadInput
from toolwise.notation.inline import PLAIN, FoundCall, Insertion, Notation, find, strip, weave
from toolwise.teach.records import Augmented, Candidate, Earlier, Passage, Span


def augment(
    passages: Iterable[Passage], candidates: Sequence[Candidate], notation: Notation = PLAIN
) -> list[Augmented]:
    """One row for every passage in which a call survived, of this round or an earlier one; the others are left out of
    C*, as in the paper."""
    kept: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        if candidate.reason is None:
            kept.setdefault(candidate.passage, []).append(candidate)
    return [_weave(p, kept.get(p.id, []), notation) for p in passages if p.id in kept or p.calls]


def unweave(row: Augmented) -> list[tuple[int, FoundCall]]:
    """The calls of a row, each with the character of the plain text before which it stands.

    Raises BadInput when text, spans and plain text do not fit each other. Rows are in the plain notation.
    """
    calls = find(row.text)
    found = [(call.start, call.end, call.result_start, call.result_end) for call in calls]
    if found != [(span.start, span.end, span.result_start, span.result_end) for span in row.spans]:
        raise BadInput(f"The spans of passage {row.passage!r} are not its calls; weave it anew.")
    ends = [0, *(call.end for call in calls)]
    between = [strip(row.text[end:start]) for end, (start, *_) in zip(ends, found, strict=False)]
    if "".join([*between, strip(row.text[ends[-1] :])]) != row.plain:
        raise BadInput(f"The text of passage {row.passage!r} without its calls is not its plain text; weave it anew.")
    return list(zip(accumulate(map(len, between)), calls, strict=True))


def _weave(passage: Passage, calls: list[Candidate], notation: Notation) -> Augmented:
    both = [*passage.calls, *(Earlier(c.offset, c.body, c.result or "", c.tool) for c in calls)]
    both.sort(key=lambda call: call.offset)  # at one place the later call stands on the earlier one
    text = weave(passage.text, [Insertion(call.offset, call.body, call.result) for call in both], notation)
    spans = tuple(
        Span(found.start, found.end, found.result_start, found.result_end, call.tool)
        for found, call in zip(find(text, notation), both, strict=True)
    )
    return Augmented(passage.id, passage.document, text, passage.text, spans)
