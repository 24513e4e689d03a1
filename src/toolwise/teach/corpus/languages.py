"""Pieces of another language in an English text, and calls that translate them.

The paper's rule (appendix A): a chunk of ten tokens whose language is another with a probability above 0.8, between
English text. Here tokens are words, since language detection reads words.

Not covered: texts in scripts without spaces; foreign words inside an English sentence, which only the rule finds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from toolwise.documents.sentences import sentences
from toolwise.tools.language import Guess

Tell = Callable[[str], Guess]

CHUNK = 10  # words (the paper: tokens)
SURE = 0.8
_WORD = re.compile(r"\S+")
_ENGLISH = "en"
_FEWEST_WORDS = 4  # of a sentence whose language can be told


def mixes_languages(text: str, detect: Tell) -> bool:
    """Whether a chunk of another language stands in a text that has an English chunk, too."""
    words = [match.span() for match in _WORD.finditer(text)]
    starts = range(0, max(1, len(words) - CHUNK + 1), CHUNK // 2)
    found = {_language(text[words[i][0] : words[min(i + CHUNK, len(words)) - 1][1]], detect) for i in starts if words}
    return _ENGLISH in found and bool(found - {_ENGLISH, None})


def foreign_runs(text: str, detect: Tell) -> list[tuple[int, int]]:
    """Where sentences in one other language stand one behind the other: [start, end) of each run, spaces left out."""
    runs: list[tuple[int, int]] = []
    before = None
    for start, end in bare_sentences(text):
        language = _language(text[start:end], detect) if len(text[start:end].split()) >= _FEWEST_WORDS else None
        if language is not None and language != _ENGLISH:
            if language == before:
                runs[-1] = (runs[-1][0], end)
            else:
                runs.append((start, end))
        before = language
    return runs


def _language(text: str, detect: Tell) -> str | None:
    """The language, if it is sure."""
    code, probability = detect(text)
    return code if probability > SURE else None


def bare_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where each sentence stands, without the spaces around it."""
    for start, end in sentences(text):
        whole = text[start:end]
        if whole.strip():
            left = start + len(whole) - len(whole.lstrip())
            yield left, left + len(whole.strip())
