"""Apertium: rules and dictionaries from Debian's packages, no GPU, no download at run time, milliseconds a sentence.

What is installed is found when the translator is made; French and others reach English over Spanish, or over Catalan
where there is no Spanish.

Covered: any text. Paragraphs go through one by one; what the engine would take for its own marks, and the characters
that it ends a text at, come out as they went in. Words that it does not know stay as they are.

Not covered: soft hyphens and zero-width characters, which the engine may drop, and lone surrogates, which become `?`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from toolwise.core.clock import Clock, SystemClock
from toolwise.core.errors import LimitExceeded, ModelUnavailable, ToolFailed
from toolwise.core.limits import LIMITS, Limits
from toolwise.tools.translators.languages import ENGLISH, listed, named
from toolwise.tools.translators.modes import PACKAGES, Mode, Pair, Unusable, installed, read_mode, routes, steps
from toolwise.tools.translators.pipeline import Pipeline

FOLDER = Path("/usr/share/apertium")
#: Spanish first: its pairs are the largest (docs/experiments.md has the figures).
PIVOTS = ("es", "ca")

# The engine reads U+FFFF as the end of a text, like NUL; a blank line ends a sentence whatever stands before it.
_BETWEEN = re.compile("([\0\uffff]+|[ \t\r]*\n[ \t\r]*\n\\s*)")


class Apertium:
    """A translator over the pairs that are installed; `routes` says how each language reaches English.

    `sources` are the languages that there must be a way from; None takes what there is. Raises ModelUnavailable with
    the packages to install where something is missing.
    """

    def __init__(
        self,
        sources: Iterable[str] | None = None,
        *,
        pivots: Sequence[str] = PIVOTS,
        folder: Path = FOLDER,
        limits: Limits = LIMITS,
        clock: Clock | None = None,
    ) -> None:
        self._limits, self._clock = limits, clock or SystemClock()
        modes, refused = _modes(folder)
        found = routes(modes, pivots)
        wanted = sorted(found if sources is None else set(sources))
        _check(wanted, found, pivots, refused)
        self.routes: Mapping[str, tuple[str, ...]] = {code: found[code] for code in wanted}
        self._modes = {pair: modes[pair] for way in self.routes.values() for pair in steps(way)}
        self._pipelines = {pair: Pipeline(mode, limits, self._clock) for pair, mode in self._modes.items()}

    @property
    def sources(self) -> frozenset[str]:
        return frozenset(self.routes)

    @cached_property
    def identity(self) -> str:
        """A digest of the ways, and of every program and data file on them; the engine's shared libraries not."""
        digest = hashlib.sha256(repr(sorted(self.routes.items())).encode())
        for mode in self._modes.values():
            digest.update(repr(mode.programs).encode())
        for file in sorted({file for mode in self._modes.values() for file in mode.files}):
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        return f"apertium {digest.hexdigest()[:16]}"

    def translate(self, texts: Sequence[str], source: str) -> list[str]:
        """A translation of each text; see `Translator`. Raises ToolFailed, LimitExceeded, ToolUnavailable."""
        if source not in self.routes:
            raise ToolFailed(f"no translation from {named(source)} is installed, only from {listed(self.sources)}")
        return [self._translated(text, steps(self.routes[source])) for text in texts]

    def close(self) -> None:
        """Ends all processes. Another text starts new ones."""
        for pipeline in self._pipelines.values():
            pipeline.close()

    def pids(self) -> dict[Pair, list[int]]:
        """The processes of every pair that runs."""
        return {pair: pids for pair, pipeline in self._pipelines.items() if (pids := pipeline.pids())}

    def _translated(self, text: str, way: Sequence[Pair]) -> str:
        if len(text) > self._limits.translate_chars:
            raise LimitExceeded(f"give at most {self._limits.translate_chars} characters to translate")
        for pair in way:  # before time is taken: on a busy machine that is what takes long
            self._pipelines[pair].start()
        deadline = self._clock.monotonic() + self._limits.translate_seconds
        pieces = _BETWEEN.split(text)
        for at in range(0, len(pieces), 2):
            for pair in way:
                pieces[at] = self._piece(pieces[at], pair, deadline)
        return "".join(pieces)

    def _piece(self, text: str, pair: Pair, deadline: float) -> str:
        if not any(map(str.isalpha, text)):
            return text
        return self._pipelines[pair].translate(text, deadline)


def _modes(folder: Path) -> tuple[dict[Pair, Mode], list[str]]:
    """The modes that can be run, and why others cannot."""
    modes, refused = {}, []
    for pair, file in installed(folder).items():
        try:
            modes[pair] = read_mode(file, folder)
        except Unusable as why:
            refused.append(str(why))
    return modes, refused


def _check(wanted: Sequence[str], found: Mapping[str, object], pivots: Sequence[str], refused: Sequence[str]) -> None:
    missing = [code for code in wanted if code not in found]
    if wanted and not missing:
        return
    if ENGLISH in missing:
        raise ModelUnavailable("Everything is translated into English; leave English out of the sources.")
    possible = routes(PACKAGES, pivots)
    none = [code for code in missing if code not in possible]
    if none:
        raise ModelUnavailable(
            f"Apertium has no way from {', '.join(map(named, none))} into English; "
            "use a model: ct2:FOLDER or hf:NAME as translator."
        )
    ways = [possible[code] for code in missing or ["es"]]
    packages = dict.fromkeys(PACKAGES[pair] for way in ways for pair in steps(way))
    what = f"cannot translate from {', '.join(map(named, missing))}" if missing else "is not installed, or has no pair"
    why = f" ({refused[0]})" if refused else ""
    raise ModelUnavailable(f"Apertium {what}{why}; run `apt install apertium {' '.join(packages)}`.")
