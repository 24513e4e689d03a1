"""Text that knows which of its characters the template wrote itself: `Traced`, a str with spans of trusted text.

Concatenation, joining, slicing, stripping, splitting and replacing keep the spans. Every other method of str gives a
plain string, which is data from end to end: whatever was forgotten here fails closed, by losing trust.

A template is a program that came with a model, so what it makes is counted: `Budget` bounds the characters and the
time of one rendering. It stands in a context variable, since operators have no other way to reach it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from contextvars import ContextVar
from typing import Any, SupportsIndex

from toolwise.core.clock import Clock
from toolwise.core.errors import BadInput

Spans = tuple[tuple[int, int], ...]


PIECE = 64  # characters of work that an iteration, a call or a small text counts as
_ITEM = 8  # characters that a value weighs beside its text: the place that refers to it
_DEEPEST = 128  # of a value; conversations are half as deep
_FLAT = 16  # parts of a list of texts and numbers that is rather weighed anew than remembered
_REMEMBERED = 256  # characters of work that it costs to remember a value, which then lives until the rendering's end


class Budget:
    """What one rendering may still make. `spend` and `weight` raise BadInput when it is used up.

    A list may hold one list twice, and so on: forty lines make a value of 2**40 parts, and whoever writes, compares or
    hashes it meets each. So a value has a weight, with every part as often as it stands there, and no heavy one is
    made.
    """

    def __init__(self, characters: int, seconds: float, clock: Clock, heaviest: int) -> None:
        self._left = characters
        self._clock = clock
        self._deadline = clock.monotonic() + seconds
        self._heaviest = heaviest
        self._known: dict[int, tuple[Any, int, int]] = {}  # by id; the value is kept, so that its id stays its own

    def spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0 or self._clock.monotonic() > self._deadline:
            raise BadInput("The chat template does not come to an end within its bounds; use another template.")

    def weight(self, value: Any) -> tuple[int, int]:
        """About how many characters a value takes where it is written out, and how deep it is."""
        if isinstance(value, str):
            return len(value) + _ITEM, 0
        if not isinstance(value, list | tuple | dict | KeysView | ValuesView | ItemsView):
            return _ITEM, 0
        known = self._known.get(id(value))
        if known is not None:
            return known[1], known[2]
        weight, depth, parts = _ITEM, 0, 0
        for part in (*value, *value.values()) if isinstance(value, dict) else value:
            own, below = self.weight(part)
            weight, depth, parts = weight + own, max(depth, below), parts + 1
            if weight > self._heaviest or depth >= _DEEPEST:
                raise BadInput("The chat template makes a value that is too large; use another template.")
        if depth or parts > _FLAT:
            self.spend(_REMEMBERED)
            self._known[id(value)] = (value, weight, depth + 1)
        return weight, depth + 1


BUDGET: ContextVar[Budget] = ContextVar("budget")


def spend(size: int) -> None:
    """Take from the rendering's budget, before anything of that size is made."""
    budget = BUDGET.get(None)
    if budget is not None:
        budget.spend(size)


def weight_of(value: Any) -> tuple[int, int]:
    """`Budget.weight` in the rendering that goes on."""
    budget = BUDGET.get(None)
    return (0, 0) if budget is None else budget.weight(value)


def written(value: Any) -> str:
    """`str(value)`, paid before it is made."""
    if isinstance(value, str):
        return value
    spend(weight_of(value)[0])
    return str(value)


class Traced(str):
    """A string of which `spans` are trusted: half-open, in order, apart from each other."""

    __slots__ = ("spans",)
    spans: Spans

    def __new__(cls, text: str = "", spans: Spans = ()) -> Traced:
        self = super().__new__(cls, text)
        self.spans = spans if spans or not isinstance(text, Traced) else text.spans
        return self

    def __str__(self) -> str:
        return self

    def __add__(self, other: str) -> Traced:
        return traced((self, other)) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str) -> Traced:
        return traced((other, self)) if isinstance(other, str) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> Traced:
        count = max(0, times.__index__())
        spend(len(self) * count)
        return traced([self] * count)

    __rmul__ = __mul__

    def __getitem__(self, key: SupportsIndex | slice) -> Traced:
        if not isinstance(key, slice):
            at = key.__index__()
            key = slice(at, at + 1 or None)
            if not -len(self) <= at < len(self):
                raise IndexError("string index out of range")
        start, stop, step = key.indices(len(self))
        text = super().__getitem__(key)
        spend(len(text))
        return Traced(text, _cut(self.spans, start, stop) if step == 1 else ())

    def __iter__(self) -> Iterator[str]:
        spend(len(self))
        return (self[at] for at in range(len(self)))

    def strip(self, characters: str | None = None) -> Traced:
        return self.lstrip(characters).rstrip(characters)

    def lstrip(self, characters: str | None = None) -> Traced:
        return self[len(self) - len(super().lstrip(characters)) :]

    def rstrip(self, characters: str | None = None) -> Traced:
        return self[: len(super().rstrip(characters))]

    def removeprefix(self, prefix: str) -> Traced:
        return self[len(prefix) :] if self.startswith(prefix) else self

    def removesuffix(self, suffix: str) -> Traced:
        return self[: len(self) - len(suffix)] if suffix and self.endswith(suffix) else self

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return self._located(super().split(sep, maxsplit), len(sep or ""))

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return self._located(super().rsplit(sep, maxsplit), len(sep or ""))

    def splitlines(self, keepends: bool = False) -> list[str]:
        lines, at = [], 0
        for whole, line in zip(super().splitlines(True), super().splitlines(keepends), strict=True):
            spend(PIECE)
            lines.append(self[at : at + len(line)])
            at += len(whole)
        return list[str](lines)

    def replace(self, old: str, new: str, count: SupportsIndex = -1) -> Traced:
        times = str.count(self, old) if count.__index__() < 0 else min(str.count(self, old), count.__index__())
        spend(len(self) + times * len(new))
        if not old:
            return Traced(super().replace(old, new, count))
        pieces, at = list[str](), 0
        for _ in range(times):
            spend(PIECE)
            found = self.find(old, at)
            pieces += [self[at:found], new]
            at = found + len(old)
        return traced([*pieces, self[at:]])

    def join(self, items: Iterable[str]) -> Traced:
        parts: list[str] = []
        for item in items:
            parts += [self, item] if parts else [item]
            spend(len(self) + len(item) + _ITEM)
        return traced(parts)

    def _located(self, pieces: list[str], gap: int) -> list[str]:
        """The same pieces with their spans. They stand in order, `gap` characters apart, or white space for 0."""
        spend(len(self))
        found: list[str] = []
        at = 0
        for piece in pieces:
            spend(PIECE)
            at = at if gap else self.find(piece, at)
            found.append(self[at : at + len(piece)])
            at += len(piece) + gap
        return found

    # Changes of all characters by a rule of their own: nothing of a wholly trusted text comes from elsewhere.

    def upper(self) -> Traced:
        return self._as_a_whole(super().upper())

    def lower(self) -> Traced:
        return self._as_a_whole(super().lower())

    def capitalize(self) -> Traced:
        return self._as_a_whole(super().capitalize())

    def _as_a_whole(self, text: str) -> Traced:
        spend(len(text))
        return literal(text) if self.spans == ((0, len(self)),) else Traced(text)


class Written(dict[str, Any]):
    """An object with the JSON that said it, as a model wrote it."""

    __slots__ = ("text",)

    def __init__(self, value: Mapping[str, Any], text: str) -> None:
        super().__init__(value)
        self.text = text


def literal(text: str) -> Traced:
    """Text that the template itself wrote."""
    return Traced(text, ((0, len(text)),) if text else ())


def data(text: str) -> Traced:
    return text if type(text) is Traced else Traced(text)


def traced(pieces: Iterable[str]) -> Traced:
    """The pieces as one text; trusted spans that meet become one."""
    parts = list(pieces)
    at, spans = 0, list[tuple[int, int]]()
    for part in parts:
        for start, end in part.spans if isinstance(part, Traced) else ():
            if spans and spans[-1][1] == at + start:
                spans[-1] = (spans[-1][0], at + end)
            else:
                spans.append((at + start, at + end))
        at += len(part)
    spend(at)
    return Traced("".join(parts), tuple(spans))


def _cut(spans: Spans, start: int, stop: int) -> Spans:
    """What of the spans lies in a slice, counted from its start."""
    first = bisect_right(spans, start, key=lambda span: span[1])
    found: list[tuple[int, int]] = []
    for at in range(first, len(spans)):
        a, b = spans[at]
        if a >= stop:
            break
        found.append((max(a, start) - start, min(b, stop) - start))
    return tuple(found)
