"""The three markers, and how data is written between them so that it cannot be taken for one.

A backslash makes the next character literal; `\\n` and `\\r` are the line breaks. Data is written with a backslash
before every backslash, before every place where a marker starts (its core, that is, without its leading space) and, in
arguments, before a parenthesis without a partner. So a call always stands on one line, and its outer parentheses
always pair.

Not covered: tokens. That text such as `</API>` inside data does not become an added token is `segments.encode_data`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from toolwise.core.errors import BadInput, MalformedCall

#: A tool's name as it can be written inline.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")

_LETTERS = {"\n": "n", "\r": "r"}
_LINE_BREAKS = {letter: character for character, letter in _LETTERS.items()}
_CORE = re.compile(r'[^\sA-Za-z0-9\\"()](?:[^\r\n\\"()]*[^\s\\"()])?')
_NAME_CHARACTERS = re.compile(r"[A-Za-z0-9_.-]*")
_PARENTHESES = re.compile(r"\\[^\r\n]|[()\r\n]")


def core_of(marker: str) -> str:
    """The marker without its leading space."""
    return marker.lstrip(" \t")


@dataclass(frozen=True, slots=True)
class Notation:
    """The three markers. Plain ones are the paper's (its `" ["`, `"->"`, `"]"`), `special` ones are added tokens.

    A call with its result is written `open + body + arrow + " " + result + close`, `open + body + arrow + close` with
    an empty result (the paper's e(c, eps)), `open + body + close` without one (its e(c)).

    A marker is spaces or tabs, then its core. Raises BadInput for a core that is empty, starts with an ASCII letter or
    digit, holds a quote, a backslash, a parenthesis or a line break, ends in white space, or could be part of a name;
    for an open marker that a name could lengthen; and when arrow and close contain one another.
    """

    open: str = " ["
    arrow: str = " ->"
    close: str = "]"
    special: bool = False

    def __post_init__(self) -> None:
        for marker in self.markers:
            core = core_of(marker)
            if not _CORE.fullmatch(core) or _NAME_CHARACTERS.fullmatch(core):
                raise BadInput(f"{marker!r} cannot be a marker; use brackets, an arrow, or tokens such as '<API>'.")
        if _NAME_CHARACTERS.fullmatch(self.open[-1]):
            raise BadInput(f"The open marker {self.open!r} must end in a character that no tool's name can hold.")
        arrow, close = core_of(self.arrow), core_of(self.close)
        if arrow in close or close in arrow:
            raise BadInput(f"Neither of {self.arrow!r} and {self.close!r} may contain the other.")

    @property
    def markers(self) -> tuple[str, str, str]:
        return self.open, self.arrow, self.close

    @property
    def tokens(self) -> tuple[str, ...]:
        """The markers that are tokens of their own: all, or none."""
        return self.markers if self.special else ()


#: The package's own: run folders are written in it, and so is what a model writes that was taught no other.
PLAIN = Notation()
#: The same calls between tokens of their own, which no document, prompt or result can spell.
SPECIAL = Notation("<call>", "<result>", "</call>", special=True)


def notation_named(name: str) -> Notation:
    """The notation `plain` or `special`. Raises BadInput for another name."""
    if name not in ("plain", "special"):
        raise BadInput(f"There is no notation {name!r}; use plain or special.")
    return SPECIAL if name == "special" else PLAIN


def escape(data: str, notation: Notation, after: str = "") -> str:
    """The data on one line, without a bare marker, even across the seam to what will stand `after` it."""
    size = len(data)

    def write(found: re.Match[str]) -> str:
        return found[0] if found.start() >= size else "\\" + _LETTERS.get(found[0], found[0])

    written = _to_escape(notation).sub(write, data + after)
    return written[: len(written) - len(after)]


def escapable(notation: Notation) -> frozenset[str]:
    """The characters that may stand behind a backslash."""
    return frozenset("\\nr()").union(core_of(marker)[0] for marker in notation.markers)


def unescape(written: str, notation: Notation, *, strict: bool = True) -> str:
    """The data that was written. An escape that `escape` cannot have made raises MalformedCall; if not `strict`, it
    means its two characters."""
    known = escapable(notation)

    def read(found: re.Match[str]) -> str:
        character = found[1]
        if character not in known:
            if not strict:
                return found[0]
            raise MalformedCall(f"Write a backslash as two backslashes; {found[0]!r} means nothing.")
        return _LINE_BREAKS.get(character, character)

    return re.sub(r"\\(.?)", read, written, flags=re.DOTALL)


def marker_starts(notation: Notation) -> str:
    """A regular expression for one character with which the core of a marker starts, overlapping ones included."""
    cores = map(core_of, notation.markers)
    return f"(?={'|'.join(map(re.escape, cores))})."


def pairs(text: str) -> dict[int, int]:
    """Where the partner of each unescaped parenthesis stands, in both directions. Pairs do not reach over lines."""
    partners: dict[int, int] = {}
    waiting: list[int] = []
    for found in _PARENTHESES.finditer(text):
        here = found.start()
        if found[0] == "(":
            waiting.append(here)
        elif found[0] == ")" and waiting:
            opened = waiting.pop()
            partners[opened], partners[here] = here, opened
        elif found[0] in "\r\n":
            waiting.clear()
    return partners


def guard(arguments: str, spell: Callable[[str], str]) -> str:
    """The arguments with every parenthesis that has no partner spelled in another way."""
    partners = pairs(arguments)

    def write(found: re.Match[str]) -> str:
        stray = found[0] in "()" and found.start() not in partners
        return spell(found[0]) if stray else found[0]

    return _PARENTHESES.sub(write, arguments)


@lru_cache(maxsize=64)
def _to_escape(notation: Notation) -> re.Pattern[str]:
    return re.compile(r"[\\\r\n]|" + marker_starts(notation))
