"""The part of a passage that a query asks about, on one line."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping

from toolwise.core.jsonio import one_line
from toolwise.documents.sentences import SENTENCE_END
from toolwise.tools.index.words import Words

_CUT = "…"


def snippet(text: str, weights: Mapping[str, float], size: int, words: Words) -> str:
    """At most `size` words of `text` in which the terms of most weight stand; `…` where text is left out.

    Of windows that are equally good one that begins with a sentence is taken, then the first.
    """
    line = one_line(text)
    spans = list(words.spans(line))
    if len(spans) <= size:
        return line
    sentences = {0, *(match.end() for match in SENTENCE_END.finditer(line))}
    begins = [start in sentences or _opens(line, start, sentences) for _, start, _ in spans]
    places = [at for at, (term, _, _) in enumerate(spans) if term in weights]

    def fits(at: int) -> tuple[float, bool, int]:
        inside = {spans[place][0] for place in places[bisect_left(places, at) : bisect_left(places, at + size)]}
        return sum(sorted(weights[term] for term in inside)), begins[at], -at  # sorted: a set has no order to sum in

    best = max(range(len(spans)), key=fits)
    start, end = spans[best][1], spans[best : best + size][-1][2]
    if begins[best]:
        start = max(at for at in sentences if at <= start)
    if best + size >= len(spans):
        end = len(line)
    shown = re.sub(r"[\s(,;:–—-]+$", "", line[start:end]) if end < len(line) else line[start:end]
    return f"{_CUT if start else ''}{shown}{_CUT if end < len(line) else ''}"


def _opens(line: str, start: int, sentences: set[int]) -> bool:
    """Whether nothing but signs stands between the last sentence's end and this word."""
    at = start
    while at > 0 and not line[at - 1].isalnum() and at not in sentences:
        at -= 1
    return at in sentences
