"""What translates into English: Apertium, CTranslate2, and whatever else keeps the protocol `Translator`.

`apertium` is made of `modes` (what is installed, how it leads to English) and `pipeline` (the processes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from toolwise.core.errors import BadInput
from toolwise.core.jsonio import quote
from toolwise.core.limits import LIMITS, Limits
from toolwise.tools.translators.apertium import Apertium
from toolwise.tools.translators.base import Translator, problems
from toolwise.tools.translators.ctranslate2 import CTranslate2

__all__ = ["Apertium", "CTranslate2", "Maker", "Translator", "problems", "translator_named"]

#: What follows a prefix, and the languages asked for, to a translator.
Maker = Callable[[str, Iterable[str] | None], Translator]


def translator_named(
    name: str,
    *,
    sources: Iterable[str] | None = None,
    others: Mapping[str, Maker] | None = None,
    limits: Limits = LIMITS,
) -> Translator:
    """The translator of `apertium`, `ct2:FOLDER`, or a prefix of `others`, which this floor cannot make (`hf:NAME`).

    `sources`: ISO 639-1 codes of languages that it must have; None takes what there is. Raises BadInput for a name that
    says nothing, ModelUnavailable where what it says is missing.
    """
    makers: dict[str, Maker] = {"ct2": lambda folder, codes: CTranslate2(Path(folder), codes, limits=limits)}
    makers |= others or {}
    prefix, _, rest = name.partition(":")
    if name == "apertium":
        return Apertium(sources, limits=limits)
    if prefix not in makers or not rest:
        known = ["apertium", *(f"{prefix}:..." for prefix in makers)]
        raise BadInput(f"There is no translator {quote(name)}; use one of {', '.join(known)}.")
    return makers[prefix](rest, sources)
