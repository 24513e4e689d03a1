"""A row of C* -> the token ids and the loss mask of one training example.

The document is tokenised once, as a whole and without its calls; the ids of each call are then put between those of the
document. So a call never changes how the words around it are tokenised, the calls taken out leave exactly
`tokenizer.encode(row.plain)`, and the control run on plain text reads the same document tokens. A call is tokenised in
the pieces in which decoding feeds it (`notation.pieces`), between the markers of the tokenizer's notation. Rows are
written in the plain notation, whatever the model is taught: bodies stand as they are, since no marker counts inside
their parentheses, and results are escaped anew.

Not covered: rows whose calls do not stand between two tokens of this tokenizer, which happens when another model
annotated them. They are dropped and counted (`off_boundary`), never shifted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat

from toolwise.notation.pieces import call_segments
from toolwise.notation.segments import Ids, Tokenizer, encode
from toolwise.teach.prepare import offsets
from toolwise.teach.records import Augmented
from toolwise.teach.weave import unweave

IGNORED = -100  # the label that no loss counts, by torch's convention


@dataclass(frozen=True, slots=True)
class Example:
    """Token ids, for each whether it counts in the loss, and the token ranges [start, end) of the calls."""

    ids: Ids
    mask: tuple[bool, ...]
    calls: tuple[tuple[int, int], ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def labels(self) -> Ids:
        """The ids that count in the loss, IGNORED for the others and for the first one, predicted from nothing."""
        return tuple(
            id_ if counts and place else IGNORED
            for place, (id_, counts) in enumerate(zip(self.ids, self.mask, strict=True))
        )


@dataclass(frozen=True, slots=True)
class RowExamples:
    """The examples of one row of C* (several when it is longer than a training row), and the row's index."""

    row: int
    pieces: tuple[Example, ...]


def training_example(
    row: Augmented,
    tokenizer: Tokenizer,
    *,
    plain: bool = False,
    mask_results: bool = False,
    end: int | None = None,
) -> Example | None:
    """The example of one row, or None when a call stands inside a token of the document.

    `tokenizer.begin` stands in front, without loss, and `end` behind, with loss. `plain` leaves the calls out.
    `mask_results` takes the loss off what the runtime writes: everything behind the arrow. Raises BadInput when the
    row's text and spans do not fit each other.
    """
    document = tokenizer.encode(row.plain)
    wanted = [] if plain else unweave(row)
    cuts = {offset: i for i, offset in enumerate(offsets(row.plain, document, tokenizer))} if wanted else {}
    ids: list[int] = []
    mask: list[bool] = []
    calls: list[tuple[int, int]] = []

    def add(piece: Ids, losses: Iterable[bool]) -> None:
        ids.extend(piece)
        mask.extend(losses)

    add(tokenizer.begin, repeat(False, len(tokenizer.begin)))
    done = 0
    for offset, call in wanted:
        if offset not in cuts:
            return None
        add(document[done : cuts[offset]], repeat(True, cuts[offset] - done))
        done, start = cuts[offset], len(ids)
        pieces = call_segments(call.body, call.result, tokenizer.notation, mask_result=mask_results)
        add(*encode(pieces, tokenizer))
        calls.append((start, len(ids)))
    add(document[done:], repeat(True, len(document) - done))
    if end is not None:
        add((end,), (True,))
    return Example(tuple(ids), tuple(mask), tuple(calls))


def row_examples(
    rows: Sequence[Augmented],
    tokenizer: Tokenizer,
    length: int,
    *,
    plain: bool = False,
    mask_results: bool = False,
    end: int | None = None,
) -> tuple[list[RowExamples], Counter[str]]:
    """The examples of all rows, none longer than `length` tokens, and how many rows were dropped for which reason.

    `off_boundary`: a call inside a token; `call_too_long`: a call that no training row holds; `empty`: nothing to
    predict. A plain run drops the same rows as the run with calls, so that both read the same documents.
    """
    kept: list[RowExamples] = []
    dropped: Counter[str] = Counter()
    for index, row in enumerate(rows):
        woven = training_example(row, tokenizer, mask_results=mask_results, end=end)
        if woven is None:
            dropped["off_boundary"] += 1
            continue
        pieces = split(woven, length, len(tokenizer.begin))
        if pieces is None:
            dropped["call_too_long"] += 1
            continue
        if plain:
            without = training_example(row, tokenizer, plain=True, end=end)
            assert without is not None
            pieces = split(without, length, len(tokenizer.begin))
            assert pieces is not None
        if not any(any(piece.mask[1:]) for piece in pieces):
            dropped["empty"] += 1
            continue
        kept.append(RowExamples(index, pieces))
    return kept, dropped


def split(example: Example, length: int, begin: int) -> tuple[Example, ...] | None:
    """Pieces of at most `length` tokens, cut outside calls, each with the first `begin` tokens in front.

    None when a call is longer than a piece.
    """
    if len(example) <= length:
        return (example,)
    pieces: list[Example] = []
    start = begin
    while start < len(example):
        stop = min(start + length - begin, len(example))
        stop = next((first for first, last in example.calls if first < stop < last), stop)
        if stop <= start:
            return None
        shift = begin - start
        pieces.append(
            Example(
                example.ids[:begin] + example.ids[start:stop],
                example.mask[:begin] + example.mask[start:stop],
                tuple((a + shift, b + shift) for a, b in example.calls if start <= a < stop),
            )
        )
        start = stop
    return tuple(pieces)
