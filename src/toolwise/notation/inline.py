"""Running text <-> calls and results: `[Calculator(18 / 24) -> 0.75]`.

    call   = open NAME "(" inside ")" [arrow [" " result]] close
    inside = { escape | "(" inside ")" | any character but a parenthesis or a line break }
    result = { escape | any character but a line break, not starting a close marker }

What stands inside the parentheses never ends a call: `[A([B(1)])]` is one call to A with the text `[B(1)]`, and
`[Calculator((1+2)*3) -> 9]` needs no escape. Outside them, the first arrow or close marker does. Spaces before an arrow
or a close marker do not matter when reading. `markers.py` says how data is written, `arguments.py` what is inside.

In a document, what looks like the start of a call gets a backslash between open marker and name: ` [\\QA("x") -> y]`.
There, and not in front of the marker, it cannot be mistaken for a backslash with which the text before a call ends.

Covered: `strip(weave(text, calls)) == text` for any text, calls and results; every function is linear.
Not covered: bounds (the caller's, `limits.call_chars`), and whether a call may run (the gate's).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from toolwise.core.errors import MalformedCall
from toolwise.notation.arguments import read_arguments, write_body
from toolwise.notation.markers import NAME, PLAIN, Notation, core_of, pairs, unescape
from toolwise.notation.pieces import call_segments

__all__ = [
    "PLAIN",
    "End",
    "FoundCall",
    "Insertion",
    "Notation",
    "find",
    "read_arguments",
    "read_body",
    "scan",
    "strip",
    "weave",
    "write_body",
    "write_call",
]

_HEAD = re.compile(rf"({NAME.pattern})\(")


@dataclass(frozen=True, slots=True)
class Insertion:
    """A call to be woven into a text before the character `at`. `result` None means: written without an arrow."""

    at: int
    body: str
    result: str | None


@dataclass(frozen=True, slots=True)
class FoundCall:
    """A call found in woven text: `text[start:end]` is all of it, the open marker's space included.

    `text[result_start:result_end]` is the result as written, escapes and all; both ends stand behind the body when
    there is none.
    """

    start: int
    end: int
    body: str
    result: str | None
    result_start: int
    result_end: int


@dataclass(frozen=True, slots=True)
class End:
    """Where a call that is being written ends: `text[:at]` is its body, and the marker with the spaces before it is
    `length` characters long."""

    kind: Literal["arrow", "close", "newline"]
    at: int
    length: int


def read_body(body: str, notation: Notation = PLAIN) -> tuple[str, str]:
    """Name and raw arguments of a body. Raises MalformedCall.

    The same for every notation, since inside the parentheses no marker counts.
    """
    head = _HEAD.match(body)
    if not head:
        raise MalformedCall("Write the call as Name(arguments).")
    if pairs(body).get(head.end() - 1) != len(body) - 1:
        raise MalformedCall(
            "End the call with the parenthesis that closes its arguments, on the same line; "
            "write a parenthesis without a partner with a backslash before it."
        )
    return head[1], body[head.end() : -1]


def write_call(body: str, result: str | None, notation: Notation = PLAIN) -> str:
    """The whole call with its markers; the result is escaped. Raises MalformedCall when the body is not one."""
    read_body(body, notation)
    return "".join(piece.text for piece in call_segments(body, result, notation))


def weave(text: str, calls: Sequence[Insertion], notation: Notation = PLAIN) -> str:
    """The text with the calls in it, what looked like a call already being escaped. `strip` undoes it.

    Calls at one place keep their order. Raises ValueError for a place outside the text, MalformedCall for a body that
    is not one.
    """
    literal = _grammar(notation).literal
    parts: list[str] = []
    last = 0
    for call in sorted(calls, key=lambda call: call.at):
        if not 0 <= call.at <= len(text):
            raise ValueError(f"A call cannot stand at {call.at} in a text of {len(text)} characters.")
        parts += [literal.sub(r"\1\\\2", text[last : call.at]), write_call(call.body, call.result, notation)]
        last = call.at
    return "".join([*parts, literal.sub(r"\1\\\2", text[last:])])


def find(text: str, notation: Notation = PLAIN) -> list[FoundCall]:
    """The calls of a woven text, in order: whatever stands unescaped behind an open marker and is closed properly.

    A call that was cut off in its result hides what its arguments hold and the rest of its line.
    """
    grammar, partners = _grammar(notation), pairs(text)
    calls: list[FoundCall] = []
    at = 0
    while start := grammar.start.search(text, at):
        at = start.end()
        shut = partners.get(start.end() - 1)
        tail = grammar.tail.match(text, shut + 1) if shut is not None else None
        if tail and tail["close"]:
            calls.append(_found(text, start, tail, notation))
            at = tail.end()
        elif tail and tail["arrow"]:
            at = tail.end()  # no close marker stands before the end of the line
    return calls


def strip(text: str, notation: Notation = PLAIN) -> str:
    """The text without its calls, escapes undone: `strip(weave(text, calls)) == text`."""
    escaped = _grammar(notation).escaped
    parts: list[str] = []
    last = 0
    for call in find(text, notation):
        parts.append(escaped.sub(r"\1\2", text[last : call.start]))
        last = call.end
    return "".join([*parts, escaped.sub(r"\1\2", text[last:])])


def scan(text: str, notation: Notation = PLAIN) -> End | None:
    """Where a call ends of which `text` is written so far, without its open marker; None while it is still open.

    The stop rule of sampling and of decoding: more text never changes an answer that is not None. An unescaped line
    break ends the call anywhere, so that a parenthesis without a partner costs one line at most.
    """
    depth = 0
    for token in _grammar(notation).token.finditer(text):
        match token.lastgroup:
            case "opened":
                depth += 1
            case "shut":
                depth = max(0, depth - 1)
            case "newline":
                return End("newline", token.start(), 1)
            case ("arrow" | "close") as kind if depth == 0:
                at = len(text[: token.start()].rstrip(" \t"))
                return End(kind, at, token.end() - at)
    return None


def _found(text: str, start: re.Match[str], tail: re.Match[str], notation: Notation) -> FoundCall:
    """The call whose beginning and whose end, from behind its parenthesis on, have been found."""
    body = text[start.end("open") : tail.start()]
    if tail["arrow"] is None:
        return FoundCall(start.start(), tail.end(), body, None, tail.start(), tail.start())
    first, last = tail.span("result")
    space = notation.close.removesuffix(core_of(notation.close))
    last -= len(space) if text.endswith(space, first, last) else 0
    first += text.startswith(" ", first, last)
    result = unescape(text[first:last], notation, strict=False)
    return FoundCall(start.start(), tail.end(), body, result, first, last)


@dataclass(frozen=True, slots=True)
class _Grammar:
    """The regular expressions of one notation."""

    start: re.Pattern[str]
    tail: re.Pattern[str]
    token: re.Pattern[str]
    literal: re.Pattern[str]
    escaped: re.Pattern[str]


@lru_cache(maxsize=64)
def _grammar(notation: Notation) -> _Grammar:
    opened = re.escape(notation.open)
    arrow, close = (re.escape(core_of(marker)) for marker in (notation.arrow, notation.close))
    result = rf"(?P<result>(?:\\[^\r\n]|(?!{close})[^\\\r\n])*+)"
    return _Grammar(
        start=re.compile(rf"(?P<open>{opened}){_HEAD.pattern}"),
        tail=re.compile(rf"[ \t]*(?:(?P<arrow>{arrow}){result})?(?P<close>{close})?"),
        token=re.compile(
            rf"\\[^\r\n]|(?P<opened>\()|(?P<shut>\))|(?P<newline>[\r\n])|(?P<arrow>{arrow})|(?P<close>{close})"
        ),
        literal=re.compile(rf"({opened})(\\*{_HEAD.pattern})"),
        escaped=re.compile(rf"({opened})\\(\\*{_HEAD.pattern})"),
    )
