"""The same passages behind one function: query -> numbers of the best passages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import bm25s
import numpy as np
import Stemmer
from rank_bm25 import BM25Okapi

from toolwise.tools.index.words import Words

Search = Callable[[str, int], Sequence[int]]


def bm25s_plain(passages: Sequence[str]) -> Search:
    """The package's defaults: Lucene's idf, k1 1.5, b 0.75, English stop words, no stemmer."""
    return _bm25s(passages, None)


def bm25s_stemmed(passages: Sequence[str]) -> Search:
    """The same with the stemmer of its README."""
    return _bm25s(passages, Stemmer.Stemmer("english"))


def _bm25s(passages: Sequence[str], stemmer: object) -> Search:
    retriever = bm25s.BM25()
    retriever.index(bm25s.tokenize(passages, stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False)

    def search(query: str, k: int) -> Sequence[int]:
        tokens = bm25s.tokenize(query, stopwords="en", stemmer=stemmer, show_progress=False)
        return retriever.retrieve(tokens, k=k, show_progress=False).documents[0].tolist()

    return search


def rank_bm25_plain(passages: Sequence[str]) -> Search:
    """As in its README: words between spaces, case and signs kept; BM25Okapi, k1 1.5, b 0.75."""
    return _rank_bm25(passages, lambda text: text.split(" "))


def rank_bm25_terms(passages: Sequence[str]) -> Search:
    """The same over our terms."""
    return _rank_bm25(passages, Words("en").terms)


def _rank_bm25(passages: Sequence[str], tokenise: Callable[[str], list[str]]) -> Search:
    engine = BM25Okapi([tokenise(one) for one in passages])

    def search(query: str, k: int) -> Sequence[int]:
        scores = engine.get_scores(tokenise(query))
        best = np.argpartition(-scores, k)[:k]
        return best[np.argsort(-scores[best])].tolist()

    return search
