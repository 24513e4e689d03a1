"""The counts of all shards -> one matrix of BM25 scores, a column a term, in the files that bm25s memory-maps.

Each score is computed once, here (Lucene's BM25: Robertson and Zaragoza 2009, with Lucene's idf, which is never
negative):

    idf(t) = ln(1 + (N - n(t) + 0.5) / (n(t) + 0.5))
    score(t, p) = idf(t) * tf / (tf + k1 * (1 - b + b * |p| / avg))

bm25s' own builder holds every posting in lists; here one shard at a time is in memory, and the matrix is written in
place. A test holds that both make the same numbers.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap

from toolwise.core.durable import storage, sync_tree
from toolwise.tools.index.manifest import (
    COLUMNS,
    MATRIX,
    PARAMETERS,
    POSTINGS,
    SCORES,
    STARTS,
    TERM_ENDS,
    TERMS,
    IndexSettings,
)
from toolwise.tools.index.shard import Ints, Shard, read_counts


def write_matrix(
    folder: Path, shards: Sequence[Shard], settings: IndexSettings, step: Callable[[int], None]
) -> tuple[int, int]:
    """Write the matrix of all shards, over one that a killed build left; `step` is told how many shards are in it.

    The number of terms and of postings. Raises Corrupt for damaged counts, StorageUnavailable.
    """
    where = folder / MATRIX
    with storage(where):
        shutil.rmtree(where, ignore_errors=True)
        where.mkdir()
        columns = _write_vocabulary(folder, shards)
        found_in = np.diff(columns)
        total = sum(shard.passages for shard in shards)
        mean = max(1, sum(shard.words for shard in shards)) / total
        idf = np.log1p((total - found_in + 0.5) / (found_in + 0.5))
        scores = _room(where / SCORES, np.float32, int(columns[-1]))
        passages = _room(where / POSTINGS, np.int32, int(columns[-1]))
        starts = _room(where / STARTS, np.int64, total)
        free, first = columns[:-1].copy(), 0
        ids = _term_ids(where)
        for shard in shards:
            counts = read_counts(folder, shard)
            term = ids(counts.terms)
            of = np.repeat(term, counts.found_in)  # the term of each posting
            length = counts.lengths[counts.passages]
            weight = counts.times / (counts.times + settings.k1 * (1 - settings.b + settings.b * length / mean))
            place = np.repeat(free[term] - _begins(counts.found_in), counts.found_in) + np.arange(len(of))
            scores[place] = idf[of] * weight
            passages[place] = counts.passages + first
            starts[first : first + shard.passages] = counts.starts
            free[term] += counts.found_in
            first += shard.passages
            step(shard.number + 1)
        for written in (scores, passages, starts):
            written.flush()
        _write_parameters(where, settings, total)
        sync_tree(where)
    return len(found_in), int(columns[-1])


def _room(path: Path, kind: type[np.generic], count: int) -> np.memmap[Any, np.dtype[Any]]:
    """A mapped array, for which the disk has room: a mapped page that finds none would end the process."""
    made = open_memmap(path, "w+", kind, (count,))
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as stream:
            os.posix_fallocate(stream.fileno(), 0, path.stat().st_size)
    return made


def _write_vocabulary(folder: Path, shards: Sequence[Shard]) -> Ints:
    """Write all terms, sorted, and where the column of each begins; gives the latter, with the end behind them."""
    found_in: dict[bytes, int] = {}
    for shard in shards:
        counts = read_counts(folder, shard)
        for term, times in zip(counts.terms, counts.found_in.tolist(), strict=True):
            found_in[term] = found_in.get(term, 0) + times
    terms = sorted(found_in)
    columns = np.cumsum([0, *(found_in[term] for term in terms)], dtype=np.int64)
    where = folder / MATRIX
    (where / TERMS).write_bytes(b"".join(terms))
    np.save(where / TERM_ENDS, np.cumsum([len(term) for term in terms], dtype=np.int64))
    np.save(where / COLUMNS, columns)
    return columns


def _term_ids(where: Path) -> Callable[[Sequence[bytes]], Ints]:
    """Terms -> their numbers in the vocabulary."""
    data, ends = (where / TERMS).read_bytes(), np.load(where / TERM_ENDS).tolist()
    number = {data[start:end]: at for at, (start, end) in enumerate(zip([0, *ends], ends, strict=False))}
    return lambda terms: np.fromiter((number[term] for term in terms), np.int64, len(terms))


def _begins(sizes: Ints) -> Ints:
    """Where each of the runs of these sizes begins."""
    return np.cumsum(sizes, dtype=np.int64) - sizes


def _write_parameters(where: Path, settings: IndexSettings, passages: int) -> None:
    told = {
        **{"k1": settings.k1, "b": settings.b, "delta": 0.5, "method": "lucene", "idf_method": "lucene"},
        **{"dtype": "float32", "int_dtype": "int32", "num_docs": passages, "backend": "numpy"},
    }
    (where / PARAMETERS).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
