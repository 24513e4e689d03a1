"""Which pairs of languages Apertium has on this machine, which programs translate one, and which pairs lead to English.

A mode file holds a shell's pipeline, `lt-proc 'a.bin' | apertium-tagger -g $2 'b.prob' | lt-proc $1 'c.bin'`. No shell
ever sees it: it is cut into programs and arguments, each of which must be of a known kind.

Not covered: variants of a language (`eng_US`), and modes of packages that bring programs of their own.
"""

from __future__ import annotations

import heapq
import re
import shlex
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from toolwise.tools.translators.languages import ENGLISH, short

#: Each reads a text, writes what it makes of it, and flushes at a NUL when it is given `-z`.
PROGRAMS = frozenset(
    {
        *("lt-proc", "lrx-proc", "lsx-proc", "cg-proc", "rtx-proc"),
        *("apertium-tagger", "apertium-pretransfer", "apertium-posttransfer", "apertium-anaphora"),
        *("apertium-transfer", "apertium-interchunk", "apertium-postchunk"),
    }
)

#: Debian's packages: what to install for a pair that is missing.
PACKAGES = {
    ("es", "en"): "apertium-eng-spa",
    ("ca", "en"): "apertium-eng-cat",
    ("gl", "en"): "apertium-en-gl",
    ("eo", "en"): "apertium-eo-en",
    ("eu", "en"): "apertium-eu-en",
    ("is", "en"): "apertium-isl-eng",
    ("mk", "en"): "apertium-mkd-eng",
    ("sh", "en"): "apertium-hbs-eng",
    ("fr", "es"): "apertium-fr-es",
    ("pt", "es"): "apertium-es-pt",
    ("it", "es"): "apertium-spa-ita",
    ("ca", "es"): "apertium-spa-cat",
    ("gl", "es"): "apertium-es-gl",
    ("oc", "es"): "apertium-oc-es",
    ("ro", "es"): "apertium-es-ro",
    ("an", "es"): "apertium-spa-arg",
    ("fr", "ca"): "apertium-fra-cat",
    ("pt", "ca"): "apertium-por-cat",
    ("it", "ca"): "apertium-cat-ita",
    ("br", "fr"): "apertium-br-fr",
    ("sc", "it"): "apertium-srd-ita",
}

Pair = tuple[str, str]
Programs = tuple[tuple[str, ...], ...]

_NAME = re.compile(r"([a-z]{2,3})-([a-z]{2,3})")
_OPTION = re.compile(r"-[A-Za-z0-9]{1,3}")


class Unusable(Exception):
    """A mode that cannot be run; says why."""


@dataclass(frozen=True, slots=True)
class Mode:
    """One pair: `programs` with their arguments, each reading what the one before it writes."""

    name: str
    programs: Programs

    @property
    def files(self) -> list[Path]:
        """The programs and data that its answers depend on."""
        return [Path(word) for program in self.programs for word in program if word.startswith("/")]


def installed(folder: Path) -> dict[Pair, Path]:
    """The mode file of every pair, by ISO 639-1 codes. Of two for one pair the one with three-letter codes is newer."""
    found: dict[Pair, Path] = {}
    for file in sorted((folder / "modes").glob("*.mode"), key=lambda file: (len(file.name), file.name)):
        codes = [short(code) for code in match.groups()] if (match := _NAME.fullmatch(file.stem)) else [None]
        if None not in codes:
            found[codes[0] or "", codes[1] or ""] = file
    return found


def read_mode(file: Path, folder: Path) -> Mode:
    """The mode of a file, with programs found on the path and data below `folder`. Raises Unusable."""
    lexer = shlex.shlex(file.read_text(encoding="utf-8"), posix=True, punctuation_chars="|")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:
        raise Unusable(f"{file.name} is not a pipeline of programs") from None
    programs: list[list[str]] = [[]]
    for word in words:
        if word == "|":
            programs.append([])
        elif not programs[-1]:
            programs[-1] += [_program(word, file), "-z"]
        elif word == "$1":
            programs[-1].append("-n")  # words that are not known stand there as they are, without a mark
        elif word != "$2":
            programs[-1].append(_argument(word, file, folder))
    if not all(programs):
        raise Unusable(f"{file.name} is not a pipeline of programs")
    return Mode(file.stem, tuple(map(tuple, programs)))


def _program(word: str, file: Path) -> str:
    if word not in PROGRAMS:
        raise Unusable(f"{file.name} runs a program that is not known here")
    path = shutil.which(word)
    if path is None:
        raise Unusable(f"{file.name} needs {word}, which is not installed")
    return str(Path(path).resolve())


def _argument(word: str, file: Path, folder: Path) -> str:
    if _OPTION.fullmatch(word):
        return word
    path = Path(word).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise Unusable(f"{file.name} reads a file that is not there")
    return str(path)


def routes(pairs: Iterable[Pair], pivots: Sequence[str], target: str = ENGLISH) -> dict[str, tuple[str, ...]]:
    """The languages on the way from every language that reaches `target`, both included: the fewest steps, and of ways
    as long as one another the one over the earlier of `pivots`.
    """
    into: dict[str, list[str]] = {}
    for source, goal in pairs:
        into.setdefault(goal, []).append(source)
    rank = {code: at for at, code in enumerate(pivots)}
    waiting: list[tuple[int, tuple[int, ...], tuple[str, ...]]] = [(0, (), (target,))]
    best: dict[str, tuple[str, ...]] = {}
    while waiting:
        steps, ranks, way = heapq.heappop(waiting)
        if way[0] in best:
            continue
        best[way[0]] = way
        over = (rank.get(way[0], len(rank)), *ranks) if steps else ()
        for source in into.get(way[0], []):
            if source not in best:
                heapq.heappush(waiting, (steps + 1, over, (source, *way)))
    del best[target]
    return best


def steps(way: Sequence[str]) -> list[Pair]:
    """The pairs of a way."""
    return list(pairwise(way))
