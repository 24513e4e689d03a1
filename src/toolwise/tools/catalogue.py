"""A catalogue of more tools than a prompt can hold: which of them fit a text, and `find_tools` to look for others.

A tool is found by BM25 over the words of its name (`getWeather_v2` is get, weather, v, 2), its description, and its
parameters with theirs; where an encoder is given, its ranking and BM25's are joined by reciprocal rank fusion (Cormack
et al. 2009), so that what either of them knows counts.

Covered: any text, in bounded time; equal scores stand in the catalogue's order, so the same text always chooses the
same tools. A result of `find_tools` is one line a tool, in which nothing steers a terminal.
Not covered: descriptions that were written to be found. What is shown may be called, and the gate decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from toolwise.core.chat import ToolSpec
from toolwise.core.errors import BadInput, InvalidArguments, LimitExceeded, ToolFailed
from toolwise.core.jsonio import one_line, quote
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Effect, Tool
from toolwise.tools.index.words import Words
from toolwise.tools.registry import tool

Floats = npt.NDArray[np.float32]

FIND = "find_tools"
_LANGUAGE = "en"  # in which tools are described
_HUMP = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z\d])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=\d)(?=[^\W\d_])")
_FUSION = 60  # of Cormack et al.: how little the first ranks differ


class Encoder(Protocol):
    """Texts as unit vectors; two that mean the same are near each other."""

    def vectors(self, texts: Sequence[str], *, query: bool = False) -> Floats:
        """[texts, width]. A `query` is what is looked for, where that is written otherwise."""


class Catalogue:
    """Tools that can be looked for. Any number of threads may do so.

    Raises BadInput for two tools of one name, and where packages are missing.
    """

    def __init__(self, tools: Sequence[ToolSpec], encoder: Encoder | None = None, limits: Limits = LIMITS) -> None:
        self.tools: Mapping[str, ToolSpec] = {each.name: each for each in tools}
        if len(self.tools) < len(tools):
            twice = next(one.name for at, one in enumerate(tools) if one.name in {each.name for each in tools[:at]})
            raise BadInput(f"Two tools are called {quote(twice)}: give one of them another name.")
        self._all = tuple(tools)
        self._limits = limits
        texts = [_text(each) for each in tools]
        self._numbers, self._bm25 = _indexed(texts, limits)
        self._found_in = np.diff(self._bm25.scores["indptr"]) if self._numbers else np.zeros(0, np.int64)
        self._encoder = encoder
        self._vectors = None if encoder is None or not texts else encoder.vectors(texts)
        self._ranked = lru_cache(limits.kept_choices)(self._rank)

    def choose(self, text: str, most: int) -> tuple[ToolSpec, ...]:
        """The tools that fit a text best, at most `most`, best first. Without an encoder, only such as share a word.

        Of a long text its beginning and its end are looked at.
        """
        half = self._limits.choosing_chars // 2
        seen = text if len(text) <= 2 * half else f"{text[:half]} {text[-half:]}"
        return tuple(self._all[at] for at in self._ranked(seen)[:most])

    def find(self, query: str, most: int) -> str:
        """What `find_tools` answers: a line a tool. Raises InvalidArguments, LimitExceeded, ToolFailed."""
        if len(query) > self._limits.search_chars:
            raise LimitExceeded(f"the query is too long: search with at most {self._limits.search_chars} characters")
        if not query.strip():
            raise InvalidArguments("there is no word in the query: say what the tool should do")
        found = self.choose(query, most)
        if not found:
            raise ToolFailed("no tool fits these words; say in others what it should do, or go on without one")
        return "\n".join(f"{one.name}: {_in_short(one.description)}" for one in found)

    def finder(self, most: int) -> Tool:
        """`find_tools` as a tool."""

        def find_tools(query: str) -> str:
            """Look for tools that are not shown yet. Those that are found can be called from then on.

            Args:
                query: What the tool should do, in a few words.
            """
            return self.find(query, most)

        return tool(name=FIND, effect=Effect.PURE, bounded=True)(find_tools)

    def _rank(self, text: str) -> tuple[int, ...]:
        words = self._best(self._by_words(text))
        if self._encoder is None or self._vectors is None or not text.strip():
            return words
        near = self._vectors @ self._encoder.vectors([text], query=True)[0]
        joined = np.zeros(len(self._all), np.float32)
        for ranking in (words, np.argsort(-near, kind="stable")[: self._limits.ranked_tools]):
            joined[list(ranking)] += 1 / (_FUSION + 1 + np.arange(len(ranking), dtype=np.float32))
        return self._best(joined)

    def _by_words(self, text: str) -> Floats:
        terms = dict.fromkeys(Words(_LANGUAGE, self._limits).terms(_apart(text)))
        known = [self._numbers[term] for term in terms if term in self._numbers]
        if not known:
            return np.zeros(len(self._all), np.float32)
        rare = [number for number in known if self._found_in[number] * 2 <= len(self._all)]  # as in `index`
        scores: Floats = self._bm25.get_scores_from_ids(rare or known)
        return scores

    def _best(self, scores: Floats) -> tuple[int, ...]:
        order = np.argsort(-scores, kind="stable")[: self._limits.ranked_tools]
        return tuple(int(at) for at in order if scores[at] > 0)


def _text(spec: ToolSpec) -> str:
    """All words by which a tool can be found."""
    return " ".join([_apart(spec.name), spec.description, *_parameters(spec.parameters)])


def _parameters(schema: Mapping[str, Any]) -> Iterator[str]:
    """Names and descriptions of a tool's own parameters; what is deeper says little about the tool."""
    properties = schema.get("properties")
    for name, part in properties.items() if isinstance(properties, Mapping) else ():
        yield _apart(name)
        if isinstance(part, Mapping) and isinstance(part.get("description"), str):
            yield part["description"]


def _apart(text: str) -> str:
    """The words of names written together: split at case, digits and underscores."""
    return _HUMP.sub(" ", text).replace("_", " ")


def _in_short(description: str) -> str:
    """The first line of a description, as one line."""
    line = one_line(next(iter(description.strip().splitlines()), ""))
    return line if len(line) <= 200 else f"{line[:199]}…"


def _indexed(texts: Iterable[str], limits: Limits) -> tuple[Mapping[str, int], Any]:
    """The numbers of all terms, and BM25 over them; None where there is no word."""
    try:
        import bm25s
    except ImportError as error:
        raise BadInput("A catalogue needs more packages (bm25s): pip install 'toolwise[search]'.") from error
    words = Words(_LANGUAGE, limits)
    numbers: dict[str, int] = {}
    counted = [[numbers.setdefault(term, len(numbers)) for term in words.terms(text)] for text in texts]
    if not numbers:
        return numbers, None
    bm25 = bm25s.BM25(k1=1.5, b=0.75)
    bm25.index((counted, numbers), show_progress=False)
    return numbers, bm25
