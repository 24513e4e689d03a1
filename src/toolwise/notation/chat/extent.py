"""Where a JSON value ends that is still being written, without reading what it says.

A brace inside a string ends nothing (vllm #10395). Only brackets and quotation marks are looked at: whether the value
is JSON is for `core.jsonio` to say, once it is whole.
"""

from __future__ import annotations

import re

_IN_STRING = re.compile(r'[^"\\]*')
_BETWEEN = re.compile(r'[^"{}\[\]]*')
_WORD = re.compile(r"[-+.\w]*", re.ASCII)
_CLOSERS = {"{": "}", "[": "]"}


class Extent:
    """Fed piece by piece, with the value's first character first. `whole` says that the value has ended, `wrong` that
    it cannot be one: a bracket does not fit, or nothing that begins a value stood there."""

    def __init__(self) -> None:
        self.whole = self.wrong = False
        self._closers: list[str] = []
        self._in_string = self._escaped = self._in_word = False

    def feed(self, text: str) -> int:
        """How many characters of `text` belong to the value, or stand before what is wrong. Linear."""
        at = 0
        while at < len(text) and not (self.whole or self.wrong):
            if self._escaped:
                self._escaped = False
                at += 1
            elif self._in_string:
                at = self._string(text, at)
            elif self._in_word:
                at = _end(_WORD, text, at)
                self.whole = at < len(text)
            elif self._closers:
                at = self._inside(text, at)
            else:
                at = self._first(text, at)
        return at

    def _first(self, text: str, at: int) -> int:
        if text[at] in _CLOSERS or text[at] == '"':
            return self._opened(text[at], at)
        self._in_word = _end(_WORD, text, at) > at
        self.wrong = not self._in_word
        return at

    def _inside(self, text: str, at: int) -> int:
        at = _end(_BETWEEN, text, at)
        if at == len(text):
            return at
        if text[at] not in "}]":
            return self._opened(text[at], at)
        if text[at] != self._closers.pop():
            self.wrong = True
            return at
        self.whole = not self._closers
        return at + 1

    def _string(self, text: str, at: int) -> int:
        at = _end(_IN_STRING, text, at)
        if at == len(text):
            return at
        self._escaped = text[at] == "\\"
        self._in_string = self._escaped
        self.whole = not self._in_string and not self._closers
        return at + 1

    def _opened(self, character: str, at: int) -> int:
        if character == '"':
            self._in_string = True
        else:
            self._closers.append(_CLOSERS[character])
        return at + 1


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
