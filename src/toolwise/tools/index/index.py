"""An index that was built, opened for searching: `Index.open`, `search`.

The matrix is memory-mapped, so opening costs a look at its bytes and little memory. A word that stands in more than
half of all passages tells hardly anything apart; it counts only in a query without rarer ones, so that "The Who" is
found as well. No list of stop words is needed for that, in any language.

Covered: any text as a query, in time that is bounded by `limits.search_chars` and the size of the index.
Not covered: files that change while they are open; Windows, where a mapped file cannot be replaced.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolwise.core.durable import storage
from toolwise.core.errors import BadInput, LimitExceeded
from toolwise.core.limits import LIMITS, Limits
from toolwise.tools.index.manifest import (
    MATRIX,
    TERM_ENDS,
    TERMS,
    Manifest,
    identity,
    read_manifest,
    read_settings,
)
from toolwise.tools.index.passages import Passage
from toolwise.tools.index.shard import Ints
from toolwise.tools.index.texts import Texts
from toolwise.tools.index.words import Words, stemmer_version


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found; the higher its score, the better."""

    id: str
    title: str
    text: str
    score: float
    date: str | None
    url: str | None


class Index:
    """Passages that can be searched. Any number of threads may do so.

    `identity` changes whenever an answer may; `manifest` holds the counts, `settings` what the index was made of.
    """

    def __init__(self, folder: Path, manifest: Manifest, settings: Mapping[str, Any], limits: Limits) -> None:
        """Use `Index.open`."""
        self.folder = folder
        self.manifest = manifest
        self.settings = settings
        self.passages = manifest.passages
        self.language: str = settings["settings"]["language"]
        self.identity = identity(folder, manifest)
        self._limits = limits
        self._bm25 = _bm25(folder / MATRIX)
        self._columns: Ints = self._bm25.scores["indptr"]
        self._vocabulary = _Vocabulary(folder / MATRIX)
        self._texts = Texts(folder, manifest)

    @classmethod
    def open(cls, folder: str | Path, *, verify: bool = True, limits: Limits = LIMITS) -> Index:
        """The index in `folder`. `verify` reads every byte once, about a second for a gigabyte.

        Raises BadInput where there is none, for one that is half-built or was built by another version, and where
        packages are missing; Corrupt for one that is damaged.
        """
        path = Path(folder)
        manifest, settings = read_manifest(path, verify=verify), read_settings(path)
        Words(settings["settings"]["language"])  # a missing package shows now
        if settings["stemmer"] != stemmer_version():
            raise BadInput(
                f"The index in {str(folder)!r} was built with version {settings['stemmer']} of the stemmers, and these "
                f"are {stemmer_version()}: install the PyStemmer that has them, or build it again in a new folder."
            )
        return cls(path, manifest, settings, limits)

    def search(self, query: str, top_k: int, *, offset: int = 0) -> list[Hit]:
        """The best passages for a query behind the first `offset`, at most `top_k`, best first.

        Passages that hold none of its words are not among them, and equal scores stand in the order of the corpus, so
        pages that follow each other are the whole ranking. Raises LimitExceeded for more than `limits.search_depth`
        passages or `limits.search_chars` characters, BadInput for a number below 0.
        """
        if top_k < 0 or offset < 0:
            raise BadInput("Ask for at least 0 passages, from passage 0 on.")
        if offset + top_k > self._limits.search_depth:
            raise LimitExceeded(f"only the first {self._limits.search_depth} passages of a search can be seen")
        terms = [term for term, _ in self._looked_up(query)]
        if not terms:
            return []
        scores = self._bm25.get_scores_from_ids(terms)
        ranked = _best(scores, offset + top_k)[offset:]
        return [self._hit(number, float(scores[number])) for number in ranked.tolist()]

    def passage(self, number: int) -> Passage:
        """Passage `number` of the corpus, from 0. Raises IndexError, Corrupt."""
        if not 0 <= number < self.passages:
            raise IndexError(f"there is no passage {number} among {self.passages}")
        return self._texts[number]

    def weights(self, query: str) -> dict[str, float]:
        """The terms of a query that count, each with the weight that its rarity gives it. Raises LimitExceeded."""
        found = [(term, self._found_in(number)) for number, term in self._looked_up(query)]
        return {term: float(np.log1p((self.passages - n + 0.5) / (n + 0.5))) for term, n in found}

    def _looked_up(self, query: str) -> list[tuple[int, str]]:
        """The numbers and terms of a query's words, each once; common ones if there are no others."""
        if len(query) > self._limits.search_chars:
            raise LimitExceeded(f"the query is too long: search with at most {self._limits.search_chars} characters")
        terms = dict.fromkeys(Words(self.language, self._limits).terms(query))
        found = [(number, term) for term in terms if (number := self._vocabulary.number(term)) is not None]
        rare = [each for each in found if self._found_in(each[0]) * 2 <= self.passages]
        return rare or found

    def _found_in(self, term: int) -> int:
        return int(self._columns[term + 1] - self._columns[term])

    def _hit(self, number: int, score: float) -> Hit:
        return Hit(score=score, **asdict(self._texts[number]))


def _best(scores: NDArray[np.float32], count: int) -> Ints:
    """The numbers of the `count` highest scores above 0, highest first, then by number."""
    found = np.flatnonzero(scores)
    if len(found) > count:
        if not count:
            return found[:0]
        least = np.partition(scores[found], -count)[-count]
        found = found[scores[found] >= least]
    return found[np.lexsort((found, -scores[found]))][:count]


class _Vocabulary:
    """The sorted terms, looked up where they lie."""

    def __init__(self, folder: Path) -> None:
        with storage(folder / TERMS), (folder / TERMS).open("rb") as stream:
            self._terms = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        self._ends = np.asarray(np.load(folder / TERM_ENDS, mmap_mode="r"))  # the same pages, indexed more quickly

    def number(self, term: str) -> int | None:
        wanted = term.encode()
        at = bisect_left(self, wanted)
        return at if at < len(self) and self[at] == wanted else None

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, at: int) -> bytes:
        return self._terms[int(self._ends[at - 1]) if at else 0 : int(self._ends[at])]


def _bm25(folder: Path) -> Any:
    try:
        import bm25s
    except ImportError as error:
        raise BadInput("Search needs more packages (bm25s): pip install 'toolwise[search]'.") from error
    opened = bm25s.BM25.load(folder, mmap=True, load_vocab=False)
    opened.scores |= {name: np.asarray(value) for name, value in opened.scores.items() if isinstance(value, np.ndarray)}
    return opened
