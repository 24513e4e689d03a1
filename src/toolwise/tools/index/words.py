"""Text -> the terms by which it is found: words without case, accents and endings.

The same for passages and queries, so an index is good only for the code that made it: change `FORMAT` in `manifest`
with anything here.

Covered: any Unicode text. A character of Chinese or Japanese is a word of its own.
Not covered: scripts that write no spaces and are not those two (Thai), and vowel signs, at which words of Indic scripts
come apart, the same way in passages and queries.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any

from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS, Limits

_CHARACTERS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
WORD = re.compile(rf"[{_CHARACTERS}]|[^\W_{_CHARACTERS}]+")
_ACCENT = re.compile("[\u0300-\u036f]")

#: Snowball's stemmers by ISO 639-1 code. `none` leaves endings as they are, for any other language.
LANGUAGES = MappingProxyType(
    {
        **{"ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek", "en": "english"},
        **{"es": "spanish", "eu": "basque", "fi": "finnish", "fr": "french", "ga": "irish", "hu": "hungarian"},
        **{"id": "indonesian", "it": "italian", "lt": "lithuanian", "nl": "dutch", "no": "norwegian"},
        **{"pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish", "tr": "turkish"},
    }
)
NONE = "none"


class Words:
    """The words of one language. One object a thread: Snowball's stemmers are not safe to share."""

    def __init__(self, language: str, limits: Limits = LIMITS) -> None:
        """Raises BadInput for a language without a stemmer, or where the package is missing."""
        self._longest = limits.word_chars
        self._stem: Callable[[str], str] = str if language == NONE else _stemmer(language).stemWord
        # Endings of Spanish or French are told by their accents; in English only foreign names have any.
        self._fold_first = language == "en"

    def term(self, word: str) -> str:
        """What a word of `WORD` is found by; empty for one too long to be searched for."""
        if len(word) > self._longest:
            return ""
        plain = unicodedata.normalize("NFKC", word).casefold()
        return self._stem(_folded(plain)) if self._fold_first else _folded(self._stem(plain))

    def spans(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Each term with where its word stands in `text`."""
        return ((self.term(match[0]), match.start(), match.end()) for match in WORD.finditer(text))

    def terms(self, text: str) -> list[str]:
        """The terms of a text in their order, a repeated one repeatedly."""
        return [term for term, _, _ in self.spans(text) if term]


def _folded(word: str) -> str:
    """Without accents."""
    if word.isascii():
        return word
    return unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFD", word)))


def stemmer_version() -> str:
    """Another version may give other endings, so an index remembers this one."""
    return str(_snowball().version())


def _stemmer(language: str) -> Any:
    if language not in LANGUAGES:
        raise BadInput(f"There is no stemmer for {language!r}; use {', '.join(LANGUAGES)} or {NONE}.")
    stemmer = _snowball().Stemmer(LANGUAGES[language])
    stemmer.maxCacheSize = 0  # its cache helps nobody who asks for every word once
    return stemmer


def _snowball() -> Any:
    try:
        import Stemmer
    except ImportError as error:
        raise BadInput("Search needs more packages (PyStemmer): pip install 'toolwise[search]'.") from error
    return Stemmer
