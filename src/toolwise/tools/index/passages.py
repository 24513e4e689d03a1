"""Documents cut into passages: whole sentences, as many as fit, of about equal length.

Not covered: paragraphs; a passage may hold the end of one and the beginning of the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Document
from toolwise.documents.sentences import sentences
from toolwise.tools.index.words import WORD


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document, with the document's title, or `""`; named `<document>#0` and on."""

    id: str
    title: str
    text: str
    date: str | None = None
    url: str | None = None


def cut(document: Document, words: int, limits: Limits = LIMITS) -> Iterator[Passage]:
    """The passages of a document, each of at most `words` words and `limits.passage_chars` characters."""
    title = document.metadata.get("title")
    name = " ".join(title.split())[: limits.title_chars] if isinstance(title, str) else ""
    for number, text in enumerate(_texts(document.text, words, limits.passage_chars)):
        yield Passage(f"{document.id}#{number}", name, text, document.date, document.url)


def _texts(text: str, words: int, chars: int) -> Iterator[str]:
    pieces = [piece for start, end in sentences(text) for piece in _pieces(text[start:end], words, chars)]
    counts = [len(WORD.findall(piece)) for piece in pieces]
    wanted = ceil(sum(counts) / max(1, ceil(sum(counts) / words)))  # equal parts, so that none is a mere rest
    taken: list[str] = []
    size = length = 0
    for piece, count in zip(pieces, counts, strict=True):
        if size >= wanted or size + count > words or length + len(piece) > chars:
            if size:
                yield "".join(taken).strip()
            taken, size, length = [], 0, 0
        taken.append(piece)
        size, length = size + count, length + len(piece)
    if size:
        yield "".join(taken).strip()


def _pieces(sentence: str, words: int, chars: int) -> Iterator[str]:
    """A sentence that fits is one piece; another is cut in front of words, and anywhere where there is none."""
    starts = [match.start() for match in WORD.finditer(sentence)]
    cuts = [0, *starts[words::words], len(sentence)]
    for start, end in pairwise(cuts):
        for at in range(start, end, chars):
            yield sentence[at : min(at + chars, end)]
