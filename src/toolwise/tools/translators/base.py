"""What translates: a small protocol, and the check that every back end has to pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Translator(Protocol):
    """Translates into English."""

    @property
    def identity(self) -> str:
        """Changes whenever its answers may: engine, data, weights. Part of a run's fingerprint."""

    @property
    def sources(self) -> frozenset[str]:
        """ISO 639-1 codes of the languages that it translates from."""

    def translate(self, texts: Sequence[str], source: str) -> list[str]:
        """A translation of each text, in the order of the texts.

        Safe to call from several threads. Ends within `limits.translate_seconds` a text. Raises ToolFailed for a
        source that it does not have, LimitExceeded for what is too long, ToolUnavailable where its engine gave no
        answer this time.
        """


def problems(translator: Translator, source: str, texts: Sequence[str]) -> list[str]:
    """What a back end gets wrong, in words; empty when it keeps the protocol. `texts`: some of the language `source`.

    Not covered: whether a translation is good, and what happens under several threads.
    """
    found = []
    identity = translator.identity
    if source not in translator.sources or "en" in translator.sources:
        found.append("sources lack the language, or hold English")
    alone = [translator.translate([text], source) for text in texts]
    if any(len(answers) != 1 for answers in alone):
        found.append("one text has not one answer")
    elif translator.translate(texts, source) != [answer for (answer,) in alone]:
        found.append("texts together are answered otherwise than one by one")
    elif translator.translate(list(reversed(texts)), source) != [answer for (answer,) in reversed(alone)]:
        found.append("answers depend on what was asked before, or are not in the order of the texts")
    if not identity or translator.identity != identity:
        found.append("identity is empty, or changes by itself")
    if translator.translate([], source) != []:
        found.append("no text has an answer")
    if translator.translate(["", " \n"], source) != ["", " \n"]:
        found.append("a text without a word does not stay as it is")
    return found
