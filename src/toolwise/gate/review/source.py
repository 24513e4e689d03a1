"""A policy's text: its statements, and the place where one stops making sense.

Cedar says what is wrong and not where. Its parser complains at the first token that nothing can follow from, so the
shortest beginning of a statement that fails otherwise than by ending too early ends with the culprit.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass

import cedarpy

_SKIPPED = r"\s+|//[^\n]*"
_TOKEN = re.compile(rf'(?:{_SKIPPED})|(?P<token>"(?:[^"\\]|\\.)*"|\w+|::|[=!<>]=|&&|\|\||.)', re.DOTALL)
_ANNOTATED = re.compile(r'@id\(\s*"((?:[^"\\]|\\.)*)"')
_NAMED = re.compile(r"`([^`]+)`|'([^']+)'|: (\S+)$")  # the token in a message
_TOO_EARLY = "unexpected end of input"


@dataclass(frozen=True, slots=True)
class Statement:
    """One `permit` or `forbid` with what stands before it; `start` is where its first token stands in the text."""

    number: int
    text: str
    start: int

    @property
    def key(self) -> str:
        """What Cedar calls it."""
        return f"policy{self.number}"

    @property
    def annotated(self) -> str:
        """Its `@id`, or nothing."""
        found = _ANNOTATED.search(self.text)
        return found[1] if found else ""

    @property
    def effect(self) -> str:
        """`permit` or `forbid`; nothing where neither stands in it."""
        words = (match["token"] for match in _TOKEN.finditer(self.text))
        return next((word for word in words if word in ("permit", "forbid")), "")

    @property
    def name(self) -> str:
        """How people and the audit log call it."""
        return self.annotated or self.key


def statements(text: str) -> list[Statement]:
    """The statements of a policy, in order; what stands behind the last semicolon is one too."""
    found: list[Statement] = []
    start = None
    for match in _TOKEN.finditer(text):
        if match["token"] is None:
            continue
        start = match.start() if start is None else start
        if match["token"] == ";":
            found.append(Statement(len(found), text[start : match.end()], start))
            start = None
    return found if start is None else [*found, Statement(len(found), text[start:], start)]


def problem(statement: str) -> str:
    """What Cedar says against a statement; nothing when it says nothing."""
    try:
        cedarpy.PolicySet.from_str(statement)
    except ValueError as error:
        return str(error)
    return ""


def culprit(statement: str) -> int:
    """Where in a statement that does not parse the token stands that Cedar complains about."""
    tokens = [match for match in _TOKEN.finditer(statement) if match["token"] is not None]
    said = problem(statement)
    if said == _TOO_EARLY:
        return len(statement.rstrip())
    fails = bisect_left(tokens, True, key=lambda token: problem(statement[: token.end()]) not in ("", _TOO_EARLY))
    named = _NAMED.search(said)
    before = [token.start() for token in tokens[: fails + 1] if named and token["token"] == named[named.lastindex or 0]]
    if before:  # the parser may have read a little further before it noticed
        return before[-1]
    return tokens[fails].start() if fails < len(tokens) - 1 else 0


def place(text: str, offset: int) -> tuple[int, int]:
    """Line and column, counted from 1, of a character."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
