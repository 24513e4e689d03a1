"""Text that a model is writing -> text to show and calls that it wrote. Pure: no model, no tokens.

A bracket is not yet a call: what follows the open marker must begin like `Name(`, otherwise it was text all along
(`[1]`, `[citation needed]`) and is released. A call ends at its arrow or its close marker. One that meets a line end or
the bound on its length is never guessed to be complete: it is reported as broken off, and its text is released.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolwise.core.limits import LIMITS, Limits
from toolwise.notation.inline import Notation, scan
from toolwise.notation.markers import NAME
from toolwise.notation.matcher import Matcher

_CALL_SO_FAR = re.compile(rf"(?:{NAME.pattern}(?:\(.*)?)?\Z", re.DOTALL)
_CALL = re.compile(rf"{NAME.pattern}\(.*\)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Met:
    """A call: its body, whether it was closed, and the character of the watched text at which its marker began."""

    body: str
    complete: bool
    began: int


@dataclass(frozen=True, slots=True)
class Halt:
    """A stop string was written; the text before it has been released."""

    text: str


class CallWatcher:
    """Feed it text as it is written. After a complete `Met` or a `Halt` it must be thrown away."""

    def __init__(self, notation: Notation, stops: tuple[str, ...] = (), *, calls: bool = True, limits: Limits = LIMITS):
        self._notation = notation
        self._stops = stops
        self._limits = limits
        self._markers = (*stops, notation.open) if calls else stops
        self._matcher = Matcher(self._markers)
        self._call: str | None = None  # what was written behind the open marker
        self._read = 0  # characters that have gone through the matcher or into the call
        self._began = 0

    @property
    def in_call(self) -> bool:
        """Whether what is written now may belong to a call."""
        return self._call is not None

    def push(self, piece: str) -> list[str | Met | Halt]:
        """What this piece completes, in order."""
        found: list[str | Met | Halt] = []
        while True:
            if self._call is None:
                fed = self._matcher.feed(piece)
                self._read += len(piece) - len(fed.rest)
                if fed.text:
                    found.append(fed.text)
                if fed.marker is None:
                    return found
                if fed.marker in self._stops:
                    return [*found, Halt(fed.marker)]
                self._began, self._call, piece = self._read - len(fed.marker), "", fed.rest
            self._call += piece
            self._read += len(piece)
            no_call = self._judge(found)
            if no_call is None:
                return found
            piece = no_call

    def flush(self) -> list[str | Met | Halt]:
        """What is held back when the writing ends: text, or a call that was broken off."""
        if self._call is None:
            fed = self._matcher.flush()
            held: list[str | Met | Halt] = [fed.text] if fed.text else []
            return [*held, Halt(fed.marker)] if fed.marker in self._stops else held
        if _CALL_SO_FAR.match(self._call) and "(" in self._call:
            return [Met(self._call, False, self._began)]
        return [self._notation.open + self._call]

    def _judge(self, found: list[str | Met | Halt]) -> str | None:
        """Look at the call so far. Returns text that was taken for a call and must be read again as text, or None."""
        assert self._call is not None
        call, end = self._call, scan(self._call, self._notation)
        written = call if end is None else call[: end.at]
        begun, too_long = _CALL_SO_FAR.match(written), len(written) > self._limits.call_chars
        if end is None and begun and not too_long:
            return None
        if end is not None and end.kind != "newline" and not too_long and _CALL.match(written):
            found.append(Met(written, True, self._began))
            return None
        if begun and "(" in written:
            found.append(Met(written[: self._limits.call_chars], False, self._began))
        found.append(self._notation.open)
        self._call, self._matcher = None, Matcher(self._markers)
        self._read -= len(call)
        return call
