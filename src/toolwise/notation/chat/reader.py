"""What a model samples -> text and calls, by its dialect's layout: one strict reader for all of them.

It is written as a parser that waits where the text ends (`yield`), so that cutting the stream elsewhere changes
nothing. A call is told as soon as its name is known and its arguments begin; from then on its arguments are passed on
as they are written, exactly.

Nothing is repaired and nothing guessed. What began like a call and is none has no name, and all of it is its arguments;
where the name had been told before, what went wrong stands in the arguments, which then are no JSON, so that the gate
refuses them. Behind that nothing of the turn is read for calls: where its strings end is not known. A call that was cut
off, or is longer than a call may be, is `broken`.

White space next to a call belongs to the layout and is dropped; all other text is passed on as it is.

Not covered: whether a tool of that name exists, and what the arguments say. That is the gate's question.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import TypeVar

from toolwise.core.chat import CallDelta, ChatDelta, ChatRequest, TextDelta
from toolwise.core.errors import ToolwiseError
from toolwise.core.jsonio import loads
from toolwise.core.limits import LIMITS, Limits
from toolwise.notation.chat.extent import Extent
from toolwise.notation.chat.ids import Mint, minted
from toolwise.notation.chat.layout import Layout
from toolwise.notation.matcher import Matcher

T = TypeVar("T")
#: A part of the parser: it yields where it needs more text, and returns what it read.
Reading = Generator[None, None, T]

SPACE = " \t\r\n"
_PIECE = 4_096
_ARGUMENTS = frozenset({"arguments", "parameters"})
_IGNORED = frozenset({"id", "type"})
# A control token's text, `[TOOL_CALLS]` or `[`: between such words a model may write white space.
_WORDS = re.compile(r"\[[A-Z_]+\]|[\[\]{},;]|[^\s\[\]{},;]+")
_CONTROL_BEHIND = re.compile(r"(?:<[|｜][^<>]*[|｜]>|</?\w+>|\[/?[A-Z_]+\])+\Z")


class _NoCall(Exception):
    """What stands here is no call by the layout."""


class _TooLong(Exception):
    """The call is longer than a call may be."""


class _Ended(Exception):
    """The turn ended inside a call."""


class Reader:
    """Reads one turn. `done`: more text can bring no call that would be kept; `dropped` counts those that were not.

    Without a tool that may be called, everything is text.
    """

    def __init__(self, layout: Layout, request: ChatRequest, mint: Mint | None = None, limits: Limits = LIMITS) -> None:
        self._layout = layout
        self._head = layout.before[: layout.before.rindex("{")] if layout.quoted else layout.before
        self._tail = layout.after.removeprefix("}") if layout.quoted else layout.after
        self._tools = frozenset(tool.name for tool in request.callable)
        self._mint = mint or minted(request)
        self._most = limits.calls_per_turn if request.parallel else 1
        self._longest, self._longest_name = limits.argument_bytes, limits.id_chars
        self._calls = 0
        self._broken: list[int] = []
        self._text, self._space, self._ended = "", "", False
        self._out: list[ChatDelta] = []
        self._in_call = False
        self._index = 0
        self._begin()
        self._reading = self._turn()
        next(self._reading)

    @property
    def done(self) -> bool:
        return self._calls >= self._most and not self._in_call

    @property
    def dropped(self) -> int:
        return max(0, self._calls - self._most)

    @property
    def broken(self) -> tuple[int, ...]:
        return tuple(self._broken)

    def push(self, text: str) -> list[ChatDelta]:
        for start in range(0, len(text), _PIECE):  # what is read is cut off in front, which costs what is left
            self._text += text[start : start + _PIECE]
            next(self._reading)
        return self._taken()

    def flush(self) -> list[ChatDelta]:
        self._ended = True
        next(self._reading, None)
        return self._taken()

    def _taken(self) -> list[ChatDelta]:
        out, self._out = self._out, []
        return out

    # The turn: text, and blocks of calls.

    def _turn(self) -> Reading[None]:
        try:
            while (yield from self._to_a_call()):
                self._in_call = True
                yield from self._block()
                self._in_call = False
        except _NoCall:
            yield from self._no_call()
        except (_TooLong, _Ended) as why:
            self._broke(why)
        self._in_call = False
        while True:
            self._say(self._text)
            self._text = ""
            if self._ended:
                break
            yield
        if self._space and not self._calls:
            self._out.append(TextDelta(self._space))

    def _to_a_call(self) -> Reading[bool]:
        """Passes text on. True where a call begins, False at the end of the turn or where none can come any more."""
        if not self._tools:
            return False
        if self._layout.bare:
            return (yield from self._first_is_brace())
        matcher = Matcher([self._layout.trigger])
        while True:
            fed = matcher.feed(self._text)
            self._say(fed.text)
            self._text = fed.rest
            if fed.marker:
                self._begin(fed.marker)
                return True
            if self._ended:
                self._say(matcher.flush().text)
                return False
            yield

    def _first_is_brace(self) -> Reading[bool]:
        if self._calls:
            return False
        while not self._text.lstrip(SPACE) and not self._ended:
            yield
        if not self._text.lstrip(SPACE).startswith("{"):
            return False
        self._begin()
        return True

    def _block(self) -> Reading[None]:
        """The calls behind one trigger."""
        layout = self._layout
        yield from self._literal((layout.open + self._head)[len(self._raw) :])
        if layout.quoted and layout.close and (yield from self._stands(_first(layout.close))):
            yield from self._literal(layout.close)  # a list without calls
            return
        while True:
            yield from self._call()
            if layout.bare:
                if not (yield from self._next_bare()):
                    return
            elif not layout.close:
                return
            elif (yield from self._stands(_first(layout.close))):
                yield from self._literal(layout.close)
                return
            yield from self._literal(layout.separator)
            self._begin()
            yield from self._literal(self._head)

    def _next_bare(self) -> Reading[bool]:
        try:
            return (yield from self._stands(self._layout.separator.strip()))
        except _Ended:
            return False

    # One call.

    def _call(self) -> Reading[None]:
        yield from (self._object() if self._layout.quoted else self._named())
        self._whole = True
        yield from self._literal(self._tail)

    def _object(self) -> Reading[None]:
        """`{"name": ..., "arguments": ...}`, the keys in any order."""
        yield from self._literal("{")
        name, arguments, keys = "", "", set[str]()
        while True:
            key = yield from self._string()
            if key in keys or (key in _ARGUMENTS and keys & _ARGUMENTS):
                raise _NoCall
            keys.add(key)
            yield from self._literal(":")
            yield from self._skip()
            if key == "name":
                name = self._without_control((yield from self._string()))
                if arguments:
                    self._tell(name, arguments)
            elif key in _ARGUMENTS:
                if name:
                    self._tell(name)
                arguments = yield from self._value(told=bool(name))
            elif key in _IGNORED:
                yield from self._string()
            else:
                raise _NoCall
            if not (yield from self._stands(",")):
                break
            yield from self._literal(",")
        yield from self._literal("}")
        if not arguments:
            if not name:
                raise _NoCall
            self._tell(name, "{}")
        elif not name:
            raise _NoCall

    def _named(self) -> Reading[None]:
        """NAME middle ARGUMENTS, with nothing around them."""
        first, *others = _WORDS.findall(self._layout.middle)
        while (at := self._text.find(first, 0, self._longest_name + len(first))) < 0:
            if len(self._text) >= self._longest_name + len(first):
                raise _NoCall
            yield from self._more()
        name = self._consume(at).strip(SPACE)
        yield from self._literal(" ".join([first, *others]))
        yield from self._skip()
        if self._layout.aside:
            name = name.partition(self._layout.aside)[0]
        self._tell(self._without_control(name))
        yield from self._value(told=True)

    def _without_control(self, name: str) -> str:
        """The name without control tokens that leaked behind it, if that is the name of a tool (vllm #32587)."""
        if not name:
            raise _NoCall
        rest = _CONTROL_BEHIND.sub("", name)
        return rest if rest in self._tools else name

    # What becomes of it. `_raw` is what was read of the call and not passed on.

    def _begin(self, raw: str = "") -> None:
        self._raw, self._space, self._left = raw, "", self._longest - len(raw)
        self._told = self._whole = False

    def _tell(self, name: str, arguments: str = "") -> None:
        self._index, self._told, self._raw = self._calls, True, ""
        self._calls += 1
        self._emit(CallDelta(self._index, arguments, self._mint(self._index), name))

    def _emit(self, delta: CallDelta) -> None:
        if delta.index < self._most:
            self._out.append(delta)

    def _say(self, text: str) -> None:
        """Passes text on, but for the white space at its end, behind which a call may begin."""
        text = self._space + text
        said = text.rstrip(SPACE)
        self._space = text[len(said) :]
        if said:
            self._out.append(TextDelta(said))

    def _no_call(self) -> Reading[None]:
        """All that follows belongs to what began like a call, up to the size of one."""
        if self._layout.bare and not self._told:
            self._say(self._raw)
            return
        while True:
            piece = self._raw + self._take(len(self._text))
            if not self._told:
                self._tell("", piece)
            elif piece:
                self._emit(CallDelta(self._index, piece))
            self._raw = ""
            if self._text:
                self._note_broken()
            if self._text or self._ended:
                return
            yield

    def _broke(self, why: Exception) -> None:
        if self._whole and isinstance(why, _Ended):
            return
        if not self._told:
            raw = self._raw + self._take(len(self._text))
            if self._layout.bare:
                self._say(raw)
                return
            if not raw:  # only a comma announced it
                return
            self._tell("", raw)
        self._note_broken()

    def _note_broken(self) -> None:
        if self._index < self._most:
            self._broken.append(self._index)

    # Parts of a call.

    def _value(self, *, told: bool) -> Reading[str]:
        """The text of a JSON value, passed on as arguments if `told`."""
        extent, read = Extent(), ""
        while True:
            size = extent.feed(self._text)
            piece = self._take(size)
            read += piece
            if told and piece:
                self._emit(CallDelta(self._index, piece))
            elif not told:
                self._raw += piece
            if len(piece) < size:
                raise _TooLong
            if extent.wrong:
                raise _NoCall
            if extent.whole:
                return read
            yield from self._more()

    def _string(self) -> Reading[str]:
        yield from self._skip()
        written = yield from self._value(told=False)
        try:
            value = loads(written)
        except ToolwiseError:
            raise _NoCall from None
        if not isinstance(value, str):
            raise _NoCall
        return value

    def _literal(self, text: str) -> Reading[None]:
        for word in _WORDS.findall(text):
            if not (yield from self._stands(word)):
                raise _NoCall
            self._consume(len(word))

    def _stands(self, word: str) -> Reading[bool]:
        """Whether this word comes next, behind white space."""
        yield from self._skip()
        while not self._text.startswith(word):
            if not word.startswith(self._text):
                return False
            yield from self._more()
        return True

    def _skip(self) -> Reading[None]:
        while not (rest := self._text.lstrip(SPACE)):
            self._consume(len(self._text))
            yield from self._more()
        self._consume(len(self._text) - len(rest))

    def _more(self) -> Reading[None]:
        if self._ended:
            raise _Ended
        yield

    def _consume(self, size: int) -> str:
        taken = self._take(size)
        self._raw += taken
        if len(taken) < size:
            raise _TooLong
        return taken

    def _take(self, size: int) -> str:
        """So many characters, or as many as the call may still have."""
        size = min(size, self._left)
        taken, self._text = self._text[:size], self._text[size:]
        self._left -= size
        return taken


def _first(literal: str) -> str:
    found: str = _WORDS.findall(literal)[0]
    return found
