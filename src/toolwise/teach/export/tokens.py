"""C* as token ids and labels, as this package's own training has them (`training.examples`).

For trainers that take tokens as they are (TRL takes `input_ids` and `labels`, axolotl `attention_mask` as well).
Nothing that a document or a result spells is a control token in them, which no text promises that others tokenise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from toolwise.core.jsonio import dumps
from toolwise.notation.segments import Tokenizer
from toolwise.teach.export.run import Run
from toolwise.teach.records import Augmented
from toolwise.teach.source import in_lists
from toolwise.teach.store.rows import write_parquet
from toolwise.teach.training.examples import Example, row_examples

_BATCH = 1_024  # passages in memory at one time, and rows of a row group


@dataclass(frozen=True, slots=True)
class Encoding:
    """Whose tokens, and which: `length`, `mask_results` and `end` are what `row_examples` takes.

    `model` and `fingerprint` name the tokenizer in the file's metadata.
    """

    tokenizer: Tokenizer
    model: str
    fingerprint: str
    length: int
    mask_results: bool = False
    end: int | None = None


@dataclass(frozen=True, slots=True)
class TokenSpan:
    """Tokens [start, end) of one call, its markers included."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One training example; a passage longer than `length` has several, numbered by `piece`.

    `loss_mask` says which tokens count. `labels` are the ids of these and -100 for the others; -100 for the first one
    as well, which is predicted from nothing.
    """

    id: str
    piece: int
    document: str
    input_ids: tuple[int, ...]
    attention_mask: tuple[int, ...]
    loss_mask: tuple[bool, ...]
    labels: tuple[int, ...]
    calls: tuple[TokenSpan, ...]


def write(run: Run, path: Path, encoding: Encoding) -> Mapping[str, int]:
    """Parquet of `TokenRow`s, with a JSON object under `toolwise` in its metadata. Returns how many passages were
    dropped for which reason."""
    dropped: Counter[str] = Counter()
    write_parquet(path, _batches(run, encoding, dropped), TokenRow, {"toolwise": dumps(_metadata(run, encoding))})
    return dropped


def _batches(run: Run, encoding: Encoding, dropped: Counter[str]) -> Iterator[Sequence[TokenRow]]:
    for rows in in_lists(run.rows, _BATCH):
        examples, lost = row_examples(
            rows, encoding.tokenizer, encoding.length, mask_results=encoding.mask_results, end=encoding.end
        )
        dropped.update(lost)
        yield [
            _token_row(rows[example.row], number, piece)
            for example in examples
            for number, piece in enumerate(example.pieces)
        ]


def _token_row(row: Augmented, number: int, piece: Example) -> TokenRow:
    spans = tuple(TokenSpan(start, end) for start, end in piece.calls)
    ones = (1,) * len(piece)
    return TokenRow(row.passage, number, row.document, piece.ids, ones, piece.mask, piece.labels, spans)


def _metadata(run: Run, encoding: Encoding) -> dict[str, object]:
    return {
        "format": 1,
        "run": run.fingerprint,
        "model": encoding.model,
        "tokenizer": encoding.fingerprint,
        "notation": asdict(encoding.tokenizer.notation),
        "length": encoding.length,
        "mask_results": encoding.mask_results,
        "end": encoding.end,
    }
