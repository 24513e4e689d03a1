"""Documents cut into passages that a model can read whole: at paragraph ends, else sentence ends, else white space.

The passages of a document add up to it, character by character; the white space behind a cut stays in front of it.
The work is linear in the text: where to cut is guessed from characters, and only what was cut is turned into tokens.

Not covered: abbreviations other than the usual English ones, behind which a cut may fall; filling a passage to its last
token.
"""

from __future__ import annotations

import re

from toolwise.core.errors import BadInput
from toolwise.core.types import Document
from toolwise.documents.sentences import SENTENCE_END
from toolwise.notation.segments import Tokenizer
from toolwise.teach.records import Passage

_PARAGRAPH = re.compile(r"\n\s*\n")
_SPACE = re.compile(r"\s+")


def cut(document: Document, tokenizer: Tokenizer, max_tokens: int) -> list[Passage]:
    """The document's passages, each of at most `max_tokens` tokens by `tokenizer.encode`, named `<document>#0` and on.

    `"".join(p.text for p in passages) == document.text`. A paragraph end is preferred when it leaves the passage at
    least half full; white space inside a sentence, and then any place, are taken only where there is no sentence end.
    Raises BadInput when a single character has more tokens than that.
    """
    if max_tokens < 1:
        raise BadInput(f"passages of {max_tokens} tokens are not possible; use at least 1")
    passages: list[Passage] = []
    text, start = document.text, 0
    chars = 4 * max_tokens  # what English has; then what the passage before had
    while start < len(text):
        end, tokens = _fitting(text, start, chars, tokenizer, max_tokens)
        # At most doubled, so that a run of spaces does not make the next passage search through a whole book.
        chars = max(1, min((end - start) * max_tokens // max(1, tokens), 2 * chars))
        passages.append(
            Passage(
                id=f"{document.id}#{len(passages)}",
                document=document.id,
                start=start,
                text=text[start:end],
                date=document.date,
                url=document.url,
                language=document.language,
            )
        )
        start = end
    return passages


def _fitting(text: str, start: int, chars: int, tokenizer: Tokenizer, max_tokens: int) -> tuple[int, int]:
    """Where a passage that begins at `start` ends, and its tokens: some `chars` characters on, fewer until it fits."""
    while True:
        end = _end(text, start, chars)
        tokens = len(tokenizer.encode(text[start:end]))
        if tokens <= max_tokens:
            return end, tokens
        if end - start == 1:
            raise BadInput(
                f"one character has {tokens} tokens for this model; set passages to more than {max_tokens} tokens"
            )
        chars = min((end - start) * max_tokens // tokens, end - start - 1) or 1


def _end(text: str, start: int, chars: int) -> int:
    """The best place to cut at most `chars` characters after `start`."""
    most = start + chars
    if most >= len(text):
        return len(text)
    for pattern, least in ((_PARAGRAPH, start + chars // 2), (SENTENCE_END, start + 1), (_SPACE, start + 1)):
        ends = [match.end() for match in pattern.finditer(text, start, most) if match.end() >= least]
        if ends:
            return ends[-1]
    return most
