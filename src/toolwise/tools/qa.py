"""QA: `QA(Who wrote Don Quixote?)` gives a few words and the title under which they stand: `Cervantes (Don Quixote)`.

The index finds passages, and a `Reader` answers out of them; `models.readers` has three. An answer stands in a passage,
word for word, or there is none: what a reader makes up is no answer.

Covered: whatever a model writes as a question is answered or refused within bounds; a result is one short line without
square brackets, which in running text would have to be escaped.
Not covered: whether a passage is true, and whether the words that a reader chose out of it are the right ones: its text
is data, labelled untrusted by the gate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from toolwise.core.errors import BadInput, InvalidArguments, LimitExceeded, ToolFailed
from toolwise.core.jsonio import one_line
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Effect, Tool
from toolwise.tools.index import Hit, Index
from toolwise.tools.index.words import NONE, Words
from toolwise.tools.registry import tool

_BRACKETS = str.maketrans("[]", "()")


@dataclass(frozen=True, slots=True)
class Answer:
    """`text` stands in `hit`; the higher its score, the surer the reader, on a scale of its own."""

    text: str
    hit: Hit
    score: float


class Reader(Protocol):
    """Answers out of passages. `identity` changes whenever its answers may."""

    @property
    def identity(self) -> str: ...

    def read(self, question: str, passages: Sequence[Hit]) -> Answer | None:
        """A short answer that stands in one of the passages; None where they give none.

        Raises ToolFailed or ToolUnavailable when it cannot read.
        """


def make_qa(index: Index, reader: Reader, *, passages: int = 3, limits: Limits = LIMITS) -> Tool:
    """The tool `QA`: the `passages` best passages of an index, read by `reader`.

    Raises BadInput for a number of passages that is none.
    """
    if not 1 <= passages <= limits.read_passages:
        raise BadInput(f"QA reads 1 to {limits.read_passages} passages, not {passages}.")

    def qa(question: str) -> str:
        """Answer a question with a few words of the texts, and say under which title they stand.

        Args:
            question: It names what it asks about, so that it can be understood alone.
        """
        if len(question) > limits.question_chars:
            raise LimitExceeded(f"the question is too long: ask with at most {limits.question_chars} characters")
        asked = one_line(question)
        if not Words(index.language).terms(asked):
            raise InvalidArguments("there is no word in the question: write what to ask")
        found = [replace(hit, text=hit.text[: limits.read_chars]) for hit in index.search(asked, passages)]
        answer = reader.read(asked, found) if found else None
        said = one_line(answer.text) if answer else ""
        if answer is None or not 0 < len(said) <= limits.answer_chars:
            raise ToolFailed("the texts give no answer to this question: ask with other words, or go on without one")
        return shown(said, one_line(answer.hit.title))

    return tool(name="QA", effect=Effect.READ, bounded=True)(qa)


def shown(answer: str, title: str) -> str:
    """An answer and where it stands, as a model reads it."""
    return (f"{answer} ({title})" if title else answer).translate(_BRACKETS)


def passage_of(answer: str, passages: Sequence[Hit]) -> Hit | None:
    """The first passage in whose text or title the answer stands: whole words, whatever their case and accents."""
    wanted = _words(answer)
    if not wanted.strip():
        return None
    return next((hit for hit in passages if wanted in _words(hit.text) or wanted in _words(hit.title)), None)


def repeats(answer: str, question: str) -> bool:
    """Whether all words of the answer stand in the question, in any order."""
    return set(_words(answer).split()) <= set(_words(question).split())


def _words(text: str) -> str:
    return f" {' '.join(Words(NONE).terms(text))} "
