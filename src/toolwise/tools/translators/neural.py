"""What translators with a neural model share: how such a model names languages, and how a text is cut for it.

Not covered: mBART, whose names of languages follow no rule; abbreviations of four letters and more, which are taken for
the end of a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from toolwise.core.errors import BadInput, ModelUnavailable
from toolwise.core.jsonio import quote
from toolwise.tools.translators.languages import ENGLISH, LANGUAGES, Language, named, short

#: `spa_Latn` of NLLB, `__es__` of M2M-100.
_STYLES: tuple[Callable[[Language], str], ...] = (lambda one: one.nllb, lambda one: f"__{one.code}__")
_OPUS = re.compile(r"(?:^|[/_-])opus-mt-(?:tc-big-)?([a-z]{2,3})-en(?:g)?(?![a-z])")

# These models are made for sentences. Only a stop behind four letters ends one, since a sentence that is cut off at an
# abbreviation comes out worse than two sentences at once.
_BETWEEN = re.compile(r"((?<=\w\w\w\w[.!?…])[ \t]+|\s*\n\s*)")


def language_marks(known: Callable[[str], bool]) -> dict[str, str]:
    """The token that stands for each language; empty for a model of one direction, which has none."""
    for style in _STYLES:
        if known(style(LANGUAGES[ENGLISH])):
            return {code: style(language) for code, language in LANGUAGES.items() if known(style(language))}
    return {}


def languages_read(name: str, marks: Mapping[str, str], wanted: Iterable[str] | None) -> frozenset[str]:
    """The languages that the model `name` translates from: those of its marks, or of a name like `opus-mt-es-en`.

    Of a model that tells neither, what is `wanted` is believed. Raises BadInput where nothing is, ModelUnavailable
    where something wanted is not there.
    """
    asked = frozenset(wanted or ())
    match = _OPUS.search(name)
    if marks:
        has = frozenset(marks) - {ENGLISH}
    elif match and (code := short(match[1])):
        has = frozenset({code})
    elif asked:
        has = asked
    else:
        raise BadInput(f"The model {quote(name)} does not say what it translates from; name the languages (sources).")
    if missing := sorted(asked - has):
        raise ModelUnavailable(f"The model {quote(name)} does not translate from {', '.join(map(named, missing))}.")
    return has


def sentence_by_sentence(text: str, translate: Callable[[str], str]) -> str:
    """`text` with every sentence translated, and what stands between them as it is."""
    pieces = _BETWEEN.split(text)
    for at in range(0, len(pieces), 2):
        if any(map(str.isalpha, pieces[at])):
            pieces[at] = translate(pieces[at])
    return "".join(pieces)
