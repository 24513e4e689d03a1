"""A row of C* -> the token ids and the loss mask of one training example.

The document is tokenised once, as a whole and without its calls; the ids of each call are then put between those of the
document. So a call never changes how the words around it are tokenised, the calls taken out leave exactly
`tokenizer.encode(row.plain)`, and the control run on plain text reads the same document tokens.

Not covered: rows whose calls do not stand between two tokens of this tokenizer, which happens when another model
annotated them. They are dropped and counted (`off_boundary`), never shifted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat

from toolwise.core.errors import BadInput
from toolwise.notation.inline import PLAIN, Notation, strip
from toolwise.notation.segments import Ids, Segment, Tokenizer, encode
from toolwise.teach.records import Augmented, Span


@dataclass(frozen=True, slots=True)
class Example:
    """Token ids, for each whether it counts in the loss, and the token ranges [start, end) of the calls."""

    ids: Ids
    mask: tuple[bool, ...]
    calls: tuple[tuple[int, int], ...] = ()

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Prepared:
    """The examples of one row (several when it is longer than a training row), and the row's index."""

    row: int
    pieces: tuple[Example, ...]


def training_example(
    row: Augmented,
    tokenizer: Tokenizer,
    *,
    plain: bool = False,
    mask_results: bool = False,
    end: int | None = None,
    notation: Notation = PLAIN,
) -> Example | None:
    """The example of one row, or None when a call stands inside a token of the document.

    `tokenizer.begin` stands in front, without loss, and `end` behind, with loss. `plain` leaves the calls out.
    `mask_results` takes the loss off what the runtime writes: everything behind the arrow. Raises BadInput when the
    row's text and spans do not fit each other.
    """
    document = tokenizer.encode(row.plain)
    ids: list[int] = []
    mask: list[bool] = []
    calls: list[tuple[int, int]] = []

    def add(piece: Ids, losses: Iterable[bool]) -> None:
        ids.extend(piece)
        mask.extend(losses)

    add(tokenizer.begin, repeat(False, len(tokenizer.begin)))
    done = 0
    for span, offset in () if plain else zip(row.spans, _offsets(row, notation), strict=True):
        cut = _token_index(document, row.plain[:offset], tokenizer)
        if cut is None:
            return None
        add(document[done:cut], repeat(True, cut - done))
        done, start = cut, len(ids)
        add(*encode(_call_segments(row, span, mask_results, notation), tokenizer))
        calls.append((start, len(ids)))
    add(document[done:], repeat(True, len(document) - done))
    if end is not None:
        add((end,), (True,))
    return Example(tuple(ids), tuple(mask), tuple(calls))


def prepare(
    rows: Sequence[Augmented],
    tokenizer: Tokenizer,
    length: int,
    *,
    plain: bool = False,
    mask_results: bool = False,
    end: int | None = None,
    notation: Notation = PLAIN,
) -> tuple[list[Prepared], Counter[str]]:
    """The examples of all rows, none longer than `length` tokens, and how many rows were dropped for which reason.

    `off_boundary`: a call inside a token; `call_too_long`: a call that no training row holds; `empty`: nothing to
    predict. A plain run drops the same rows as the run with calls, so that both read the same documents.
    """
    prepared: list[Prepared] = []
    dropped: Counter[str] = Counter()
    for index, row in enumerate(rows):
        woven = training_example(row, tokenizer, mask_results=mask_results, end=end, notation=notation)
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
        prepared.append(Prepared(index, pieces))
    return prepared, dropped


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


def _offsets(row: Augmented, notation: Notation) -> list[int]:
    """Where each call stands in the plain text, in characters. Escapes make the woven text longer than it looks."""
    bare = _without_spans(row)
    offsets: list[int] = []
    taken = 0
    for span in row.spans:
        offset = span.start - taken if bare == row.plain else len(strip(row.text[: span.start], notation))
        offsets.append(offset)
        taken += span.end - span.start
    if bare != row.plain and strip(row.text, notation) != row.plain:
        raise BadInput(f"The text of passage {row.passage!r} without its calls is not its plain text; weave it anew.")
    return offsets


def _without_spans(row: Augmented) -> str:
    parts, last = [], 0
    for span in row.spans:
        if not last <= span.start <= span.result_start <= span.result_end <= span.end <= len(row.text):
            raise BadInput(f"The spans of passage {row.passage!r} overlap or leave its text; weave it anew.")
        parts.append(row.text[last : span.start])
        last = span.end
    return "".join([*parts, row.text[last:]])


def _call_segments(row: Augmented, span: Span, mask_results: bool, notation: Notation) -> list[Segment]:
    """open + body, arrow, " " + result, close: each a piece of its own, as the runtime feeds them while decoding."""
    call, before = row.text[span.start : span.end], row.text[span.start : span.result_start]
    inside = call.removesuffix(notation.close)
    # Without a result, whether there is an arrow is seen from the right: nothing but spaces stands behind it.
    before = before if span.result_end > span.result_start else inside
    body, arrow, rest = before.rpartition(notation.arrow)
    if not arrow or rest.strip(" "):
        body, arrow = inside, ""
    if not call.startswith(notation.open) or inside == call or (span.result_end > span.result_start and not arrow):
        raise BadInput(f"A span of passage {row.passage!r} is not a call in this notation; give the notation it has.")
    pieces = (
        Segment(body),
        Segment(arrow),
        Segment(inside[len(body) + len(arrow) :], loss=not mask_results),
        Segment(notation.close, loss=not (mask_results and arrow)),
    )
    return [piece for piece in pieces if piece.text]


def _token_index(ids: Ids, prefix: str, tokenizer: Tokenizer) -> int | None:
    """The k for which `ids[:k]` spells `prefix`, or None when `prefix` ends inside a token."""
    guess = tokenizer.encode(prefix)
    if ids[: len(guess)] == guess:
        return len(guess)
    # A prefix can be tokenised otherwise than inside its text; then the tokens themselves are read.
    for k in range(len(ids) + 1):
        text = tokenizer.decode(ids[:k])
        if text == prefix:
            return k
        if len(text) > len(prefix) + 3:  # a character cut in its middle shows as up to three replacement characters
            return None
    return None
