"""Words as they are compared: what counts in an answer, and what does not.

Two readings of a word stand side by side, since neither is right everywhere: punctuation parts it (`Paris-Berlin` holds
`Paris`), or punctuation between letters is nothing (`U.S.` is `US`). Both are compared with and without articles.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

Tokens = tuple[str, ...]

_ARTICLES = frozenset({"a", "an", "the"})
_MARKS = re.compile("[\u0300-\u036f]")
_BETWEEN_LETTERS = re.compile(r"(?<=[^\W\d_])[^\w\s](?=[^\W\d_])")
_TOKEN = re.compile(
    r"(?P<minus>(?<![^\W_])[-\u2212](?=[$€£¥]?\d))?[$€£¥]?"
    r"(?:(?P<number>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+\.\d+|(?<![^\W_])\.\d+)|(?P<word>[^\W_]+))"
)


class Written:
    """What was written so far, and whether one of the answers stands in it."""

    def __init__(self, answers: Sequence[str]) -> None:
        self._answers = _by_kind(tuple(answers))
        self._written: list[list[str]] = [[], [], [], []]
        self.answered = False

    def add(self, word: str) -> bool:
        """Add what stands between two spaces; False where that is no word, but punctuation alone."""
        readings = _readings(word)
        if not readings[0]:
            return False
        for answers, written, tokens in zip(self._answers, self._written, readings, strict=True):
            for token in tokens:
                written.append(token)
                self.answered |= any(tuple(written[-size:]) in same for size, same in answers.items())
        return True


@lru_cache(maxsize=64)  # an answer is judged again with every token that is written
def _by_kind(answers: tuple[str, ...]) -> list[dict[int, set[Tokens]]]:
    """For each reading, the answers by how many tokens they are."""
    found: list[dict[int, set[Tokens]]] = [{}, {}, {}, {}]
    for answer in answers:
        for by_size, tokens in zip(found, _readings(answer), strict=True):
            if tokens:
                by_size.setdefault(len(tokens), set()).add(tokens)
    return found


@lru_cache(maxsize=1 << 14)
def _readings(text: str) -> tuple[Tokens, Tokens, Tokens, Tokens]:
    folded = _folded(text)
    apart, joined = _tokens(folded), _tokens(_BETWEEN_LETTERS.sub("", folded))
    return apart, _without_articles(apart), joined, _without_articles(joined)


def _folded(text: str) -> str:
    """Without case, accents and Unicode's other ways to write a letter; a superscript stays one: 5² is not 52."""
    plain = "".join(c if unicodedata.category(c) == "No" else unicodedata.normalize("NFKD", c) for c in text)
    return _MARKS.sub("", unicodedata.normalize("NFD", plain.casefold()))


def _tokens(text: str) -> Tokens:
    return tuple(_token(match) for match in _TOKEN.finditer(text))


def _token(match: re.Match[str]) -> str:
    sign = "-" if match["minus"] else ""
    if match["number"] is None:
        return sign + match["word"]
    whole, _, decimals = match["number"].replace(",", "").partition(".")
    decimals = decimals.rstrip("0")
    return f"{sign}{whole or '0'}.{decimals}" if decimals else sign + whole


def _without_articles(tokens: Tokens) -> Tokens:
    return tuple(token for token in tokens if token not in _ARTICLES)
