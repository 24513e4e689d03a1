"""Running text <-> calls and results: `[Calculator(18 / 24) -> 0.75]`. (Contract; the codec follows.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolwise.core.types import Tool


@dataclass(frozen=True, slots=True)
class Notation:
    """The three markers. Plain ones are the paper's (its `" ["`, `"->"`, `"]"`), special ones are added tokens.

    A call with its result is written `open + body + arrow + " " + result + close`, `open + body + arrow + close` with
    an empty result (the paper's e(c, eps)), `open + body + close` without one (its e(c)).
    """

    open: str = " ["
    arrow: str = " ->"
    close: str = "]"


PLAIN = Notation()


@dataclass(frozen=True, slots=True)
class Insertion:
    """A call to be woven into a text before the character `at`. `result` None means: written without an arrow."""

    at: int
    body: str
    result: str | None


@dataclass(frozen=True, slots=True)
class FoundCall:
    """A call found in woven text: `text[start:end]` is all of it, the open marker's space included."""

    start: int
    end: int
    body: str
    result: str | None
    result_start: int
    result_end: int


def write_body(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """`Calculator(18 / 24)`, or `Weather(city="Oslo", days=2)` for a tool without exactly one required string."""
    raise NotImplementedError


def read_body(body: str, notation: Notation = PLAIN) -> tuple[str, str]:
    """Name and raw arguments of a body. Raises MalformedCall."""
    raise NotImplementedError


def read_arguments(raw: str, tool: Tool, notation: Notation = PLAIN) -> dict[str, Any]:
    """The arguments that `raw` says, by the tool's schema. Raises MalformedCall."""
    raise NotImplementedError


def write_call(body: str, result: str | None, notation: Notation = PLAIN) -> str:
    """The whole call with its markers; the result is escaped."""
    raise NotImplementedError


def weave(text: str, calls: Sequence[Insertion], notation: Notation = PLAIN) -> str:
    """The text with the calls in it, what looked like a call already being escaped. `strip` undoes it."""
    raise NotImplementedError


def find(text: str, notation: Notation = PLAIN) -> list[FoundCall]:
    """The calls of a woven text, in order."""
    raise NotImplementedError


def strip(text: str, notation: Notation = PLAIN) -> str:
    """The text without its calls, escapes undone: `strip(weave(text, calls)) == text`."""
    raise NotImplementedError
