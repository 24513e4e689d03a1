"""Search: `Search(capital of Norway)` gives titles and snippets of the passages that fit best, `page=2` the next ones.

Covered: whatever a model writes as a query is answered or refused within bounds; a result is one line of text, in which
nothing steers a terminal or turns the reading direction.
Not covered: whether a passage is true, or was written to be found: its text is data, labelled untrusted by the gate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Protocol

from pydantic import Field

from toolwise.core.errors import BadInput, InvalidArguments, LimitExceeded, ToolFailed
from toolwise.core.jsonio import one_line
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Effect, Tool
from toolwise.tools.index import Hit, Index
from toolwise.tools.index.snippet import snippet
from toolwise.tools.index.words import Words
from toolwise.tools.registry import tool


class Reranker(Protocol):
    """Looks at what a search found once more. `identity` changes whenever its scores may."""

    @property
    def identity(self) -> str: ...

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """How well each text answers the query; the higher, the better."""


def make_search(
    index: Index, *, hits: int = 2, snippet_words: int = 32, rerank: Reranker | None = None, limits: Limits = LIMITS
) -> Tool:
    """The tool `Search` over an index: `hits` passages a page, at most `snippet_words` words of each.

    With `rerank` the first `limits.reranked` passages of a ranking are put into the order of its scores. Raises
    BadInput for sizes that are no sizes.
    """
    for size, most in ((hits, limits.search_hits), (snippet_words, limits.snippet_words)):
        if type(size) is int and 1 <= size <= most:  # an option may be anything that a person wrote
            continue
        raise BadInput(
            f"Search shows 1 to {limits.search_hits} hits with 1 to {limits.snippet_words} words each; "
            f"not {hits} with {snippet_words}."
        )

    def search(query: str, page: Annotated[int, Field(ge=1)] = 1) -> str:
        """Search the texts for passages about something, by words that stand in them.

        Args:
            query: Names and other rare words help most.
            page: 2 shows the next passages, and so on.
        """
        words, weights = Words(index.language), index.weights(query)
        if not words.terms(query):
            raise InvalidArguments("there is no word in the query: write what to search for")
        last = limits.search_depth // hits
        if page > last:
            raise LimitExceeded(f"only the first {last} pages of a search can be seen")
        found = _ranked(index, query, hits, (page - 1) * hits, rerank, limits)
        if not found and page == 1:
            raise ToolFailed("nothing was found: no passage holds these words, so search with others")
        if not found:
            raise ToolFailed(f"there is no page {page} of this search: it found less than that")
        return " | ".join(_shown(hit, snippet(hit.text, weights, snippet_words, words)) for hit in found)

    return tool(name="Search", effect=Effect.READ, bounded=True)(search)


def _ranked(
    index: Index, query: str, count: int, offset: int, rerank: Reranker | None, limits: Limits
) -> Sequence[Hit]:
    if rerank is None or offset >= limits.reranked:
        return index.search(query, count, offset=offset)
    first = index.search(query, limits.reranked)
    scores = rerank.scores(query, [f"{hit.title}\n{hit.text}" for hit in first])
    order = sorted(range(len(first)), key=lambda at: -scores[at])  # stable: equal scores stay in BM25's order
    behind = index.search(query, count, offset=limits.reranked) if offset + count > limits.reranked else []
    return [*(first[at] for at in order), *behind][offset : offset + count]


def _shown(hit: Hit, text: str) -> str:
    title = one_line(hit.title)
    return f"{title}: {text}" if title else text
