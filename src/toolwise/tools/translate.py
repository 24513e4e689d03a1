"""Translate: `Translate(El perro duerme en el jardín.)` is `The dog sleeps in the garden.`; the language is recognised.

Covered: whatever a model writes is translated or refused within bounds, and a refusal names the language.

Not covered: whether the translation is right; a sentence that mixes languages; telling close languages apart in a few
words (docs/experiments.md has the figures).
"""

from __future__ import annotations

from toolwise.core.errors import BadInput, InvalidArguments, LimitExceeded, ToolFailed
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Effect, Tool
from toolwise.tools.language import Detector, FastText
from toolwise.tools.registry import tool
from toolwise.tools.translators import Translator
from toolwise.tools.translators.languages import ENGLISH, listed, named


def make_translate(
    translator: Translator, *, detect: Detector | None = None, sure: float = 0.5, limits: Limits = LIMITS
) -> Tool:
    """The tool `Translate`: from any language of `translator` into English.

    A text whose language is less likely than `sure` is refused. Raises ModelUnavailable where language detection is
    not installed, BadInput for a probability that is none.
    """
    if not 0 <= sure <= 1:
        raise BadInput(f"sure is a probability, from 0 to 1, not {sure}.")
    detector = detect or FastText(limits)

    def translate(text: str) -> str:
        """Translate a text into English; its language is recognised.

        Args:
            text: A phrase or a few sentences in one language.
        """
        source = _source(text, detector, sure, limits)
        if source not in translator.sources:
            raise ToolFailed(
                f"no translation from {named(source)} is installed, only from {listed(translator.sources)}"
            )
        (answer,) = translator.translate([text], source)
        if not answer.strip():
            raise ToolFailed(f"nothing was left of the text in {named(source)}: give another part of it")
        return answer

    return tool(name="Translate", effect=Effect.READ, bounded=True)(translate)


def _source(text: str, detect: Detector, sure: float, limits: Limits) -> str:
    """The code of the text's language. Raises where there is nothing to translate, or nobody can tell."""
    if len(text) > limits.translate_chars:
        raise LimitExceeded(f"give at most {limits.translate_chars} characters to translate")
    if sum(map(str.isalpha, text[: limits.language_chars])) < limits.language_letters:
        raise InvalidArguments("too short to tell its language: give a phrase of a few words")
    code, probability = detect(text)
    if probability < sure:
        raise ToolFailed(f"the language is not clear (perhaps {named(code)}): give a longer part in one language")
    if code == ENGLISH:
        raise InvalidArguments(f"the text is {named(code)} already: give the words in another language")
    return code
