"""The notation of running text as a dialect: for a model that was taught to call inside plain text.

The conversation is plain text too: what the system and the user say are paragraphs, what the assistant says follows
directly, and a call stands with its result where the model wrote it, piece by piece as in training. So an answer that
waited for its call goes on exactly there, whoever ran the call.

A turn ends with its first call: what stands behind the arrow is never the model's. Nor is a call that a message
spells: it is escaped, as it is in the documents of training, so that nobody's text passes for a result of a tool.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from toolwise.core.chat import CallDelta, ChatCall, ChatDelta, ChatRequest, Role, TextDelta, ToolSpec
from toolwise.core.errors import ToolwiseError
from toolwise.core.jsonio import loads
from toolwise.core.limits import LIMITS, Limits
from toolwise.notation.chat.base import CallReader
from toolwise.notation.chat.history import steps
from toolwise.notation.chat.ids import minted
from toolwise.notation.chat.layout import Layout
from toolwise.notation.grammar import Grammar
from toolwise.notation.grammar.inline import inline_grammar
from toolwise.notation.inline import read_arguments, read_body, weave, write_body
from toolwise.notation.markers import PLAIN, Notation, escape, guard
from toolwise.notation.pieces import call_segments
from toolwise.notation.segments import Ids, Segment, Tokenizer, encode
from toolwise.notation.watch import CallWatcher, Met


@dataclass(frozen=True, slots=True)
class InlineDialect:
    """`notation` is the tokenizer's own: how the model was taught to write calls."""

    notation: Notation = PLAIN
    name: str = "inline"

    @property
    def layout(self) -> Layout:
        """Where a call begins and ends. What stands between the parentheses is no JSON object; see `grammar`."""
        return Layout(trigger=self.notation.open, before=self.notation.open, middle="(", after=")")

    def render(self, request: ChatRequest, tokenizer: Tokenizer, template: str | None = None) -> Ids:
        tools = {tool.name: tool for tool in request.tools}
        segments: list[Segment] = []
        for step in steps(request.messages):
            gap = "\n\n" if segments and step.message.role is not Role.ASSISTANT else ""
            segments.append(Segment(gap + weave(step.message.text, (), self.notation)))
            results = {call.id: result.text for call, result in step.results}
            for call in step.message.calls:
                result = results.get(call.id)
                if call.name:
                    segments += call_segments(self._body(call, tools), result, self.notation)
                else:
                    told = weave(f"\n\n{result}", (), self.notation) if result else ""
                    segments += [Segment(call.arguments), Segment(told)]
        return tokenizer.begin + encode(segments, tokenizer)[0]

    def reader(self, request: ChatRequest) -> CallReader:
        return InlineReader(request, self.notation)

    def grammar(self, tools: Sequence[ToolSpec], parallel: bool) -> Grammar:
        """One call with its open marker, up to the arrow: what stands behind is not the model's."""
        return inline_grammar(tools, self.notation).behind(self.notation.open)

    def _body(self, call: ChatCall, tools: dict[str, ToolSpec]) -> str:
        """The call as its tool writes it; whatever cannot be written so stands there as it is, as text."""
        try:
            arguments = loads(call.arguments or "{}")
            if isinstance(arguments, dict):
                return write_body(tools.get(call.name) or ToolSpec(call.name, "", {}), arguments, self.notation)
        except ToolwiseError:
            pass
        return f"{call.name}({guard(escape(call.arguments, self.notation), lambda found: chr(92) + found)})"


class InlineReader:
    """Text and at most one call. `done` says that it has been read: what follows is nobody's, and is dropped."""

    def __init__(self, request: ChatRequest, notation: Notation = PLAIN, limits: Limits = LIMITS) -> None:
        self._tools = {tool.name: tool for tool in request.callable}
        self._notation = notation
        self._mint = minted(request)
        self._watcher = CallWatcher(notation, calls=bool(self._tools), limits=limits)
        self.done = False
        self.broken: tuple[int, ...] = ()

    def push(self, text: str) -> list[ChatDelta]:
        return [] if self.done else self._told(self._watcher.push(text))

    def flush(self) -> list[ChatDelta]:
        return [] if self.done else self._told(self._watcher.flush(), ended=True)

    def _told(self, found: Sequence[object], *, ended: bool = False) -> list[ChatDelta]:
        deltas: list[ChatDelta] = []
        for what in found:
            if isinstance(what, str):
                deltas.append(TextDelta(what))
            elif isinstance(what, Met) and (what.complete or ended):  # one that met its line's end comes as text too
                self.done = True
                deltas.append(self._call(what))
        return deltas

    def _call(self, met: Met) -> CallDelta:
        if not met.complete:
            self.broken = (0,)
            return CallDelta(0, self._notation.open + met.body, self._mint(0))
        try:
            name, raw = read_body(met.body, self._notation)
        except ToolwiseError:
            return CallDelta(0, self._notation.open + met.body + self._notation.close, self._mint(0))
        try:
            arguments = read_arguments(raw, self._tools.get(name) or ToolSpec(name, "", {}), self._notation)
        except ToolwiseError:
            return CallDelta(0, raw, self._mint(0), name)
        written = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
        return CallDelta(0, written, self._mint(0), name)


#: For a model that was taught the paper's notation.
INLINE = InlineDialect()
