"""One shard: some thousand passages, with their words counted. It is whole once its record is there."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolwise.core import jsonio
from toolwise.core.durable import replace_file, storage
from toolwise.core.errors import Corrupt, ToolwiseError
from toolwise.core.sealed import read_sealed, seal
from toolwise.tools.index.manifest import COUNTS, PASSAGES, passages_file
from toolwise.tools.index.passages import Passage
from toolwise.tools.index.words import WORD, Words

Ints = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Shard:
    """What is remembered of a shard. `documents` have been read when it ends, those of earlier shards included."""

    number: int
    passages: int
    documents: int
    words: int
    passages_sha256: str
    counts_sha256: str

    @property
    def passages_file(self) -> str:
        return passages_file(self.number)

    @property
    def record_file(self) -> str:
        return f"{PASSAGES}/{self.number:05d}.json"

    @property
    def counts_file(self) -> str:
        return f"{COUNTS}/{self.number:05d}.npz"


class Counts(NamedTuple):
    """The words of a shard. A posting is (term, passage, how often), sorted by term and then by passage.

    `terms` are sorted as UTF-8, `found_in` says in how many passages each stands; `passages` and `times` have one value
    a posting; `lengths` and `starts` one a passage: its words, and where it begins in the shard's file.
    """

    terms: list[bytes]
    found_in: Ints
    passages: Ints
    times: Ints
    lengths: Ints
    starts: Ints


def write_shard(folder: Path, number: int, passages: Sequence[Passage], documents: int, words: Words) -> Shard:
    """Make a shard, durably; the record comes last. Raises StorageUnavailable."""
    lines = [(jsonio.canonical(asdict(passage)) + "\n").encode() for passage in passages]
    counts = _count(passages, lines, words)
    texts, packed = b"".join(lines), _pack(counts)
    digests = (sha256(data).hexdigest() for data in (texts, packed))
    shard = Shard(number, len(passages), documents, int(counts.lengths.sum()), *digests)
    replace_file(folder / shard.passages_file, texts)
    replace_file(folder / shard.counts_file, packed)
    replace_file(folder / shard.record_file, seal(asdict(shard)))
    return shard


def whole_shard(folder: Path, number: int) -> Shard | None:
    """The shard, if all of it is there, byte by byte."""
    record = folder / f"{PASSAGES}/{number:05d}.json"
    try:
        shard = Shard(**read_sealed(record))
        files = ((shard.passages_file, shard.passages_sha256), (shard.counts_file, shard.counts_sha256))
        for name, digest in files:
            if sha256((folder / name).read_bytes()).hexdigest() != digest:
                return None
    except (ToolwiseError, TypeError, OSError):
        return None
    return shard


def read_counts(folder: Path, shard: Shard) -> Counts:
    """Raises Corrupt when the file is not the one that was written."""
    path = folder / shard.counts_file
    with storage(path):
        data = path.read_bytes()
    if sha256(data).hexdigest() != shard.counts_sha256:
        raise Corrupt(f"{str(path)!r} is damaged; run the same toolwise index build again.")
    with np.load(io.BytesIO(data), allow_pickle=False) as found:
        terms = found["terms"].tobytes().split(b"\n") if found["found_in"].size else []
        return Counts(terms, *(found[name] for name in Counts._fields[1:]))


def _count(passages: Sequence[Passage], lines: Sequence[bytes], words: Words) -> Counts:
    ids = _Ids(words)
    rows = [[ids[word] for word in WORD.findall(f"{one.title} {one.text}")] for one in passages]
    flat = np.fromiter((one for row in rows for one in row), np.int64, sum(map(len, rows)))
    owner = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    flat, owner = flat[flat >= 0], owner[flat >= 0]
    terms = sorted(ids.terms)
    rank = np.empty(len(terms), np.int64)
    rank[[ids.terms[term] for term in terms]] = np.arange(len(terms))
    postings, times = np.unique(rank[flat] * len(rows) + owner, return_counts=True)
    return Counts(
        terms=terms,
        found_in=np.bincount(postings // max(1, len(rows)), minlength=len(terms)).astype(np.int32),
        passages=(postings % max(1, len(rows))).astype(np.int32),
        times=times.astype(np.int32),
        lengths=np.bincount(owner, minlength=len(rows)).astype(np.int32),
        starts=np.cumsum([0, *map(len, lines[:-1])], dtype=np.int64),
    )


class _Ids(dict[str, int]):
    """Word -> number of its term, asked of `words` once; -1 for a word without a term."""

    def __init__(self, words: Words) -> None:
        super().__init__()
        self._words = words
        self.terms: dict[bytes, int] = {}

    def __missing__(self, word: str) -> int:
        term = self._words.term(word).encode()
        self[word] = self.terms.setdefault(term, len(self.terms)) if term else -1
        return self[word]


def _pack(counts: Counts) -> bytes:
    packed = io.BytesIO()
    terms = np.frombuffer(b"\n".join(counts.terms), np.uint8)  # no term holds a line end
    np.savez(packed, terms=terms, **{name: getattr(counts, name) for name in Counts._fields[1:]})
    return packed.getvalue()
