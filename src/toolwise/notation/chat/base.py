"""What a dialect is: how one family of chat models reads a conversation with tools and writes its calls.

A dialect is mostly data: a `Layout` says how calls are laid out, and from it follow what a reader looks for, what a
grammar allows and how history is told where the model's own template knows no tools. `render` gives the tokens that
the model reads, made from the model's own chat template where it has one.

What came from outside (a user, a document, a tool's result, a description) is data in every dialect: it becomes no
control token, and only what the model samples is ever read for calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from toolwise.core.chat import ChatDelta, ChatRequest, ToolSpec
from toolwise.notation.grammar.grammar import Grammar
from toolwise.notation.segments import Ids, Tokenizer


@dataclass(frozen=True, slots=True)
class Layout:
    """How calls are written, as the texts between their parts; a special token stands as its text.

        open  before NAME middle ARGUMENTS after  separator  before NAME middle ARGUMENTS after ...  close

    Hermes: before `<tool_call>\\n{"name": "`, middle `", "arguments": `, after `}\\n</tool_call>`, separator `\\n`.
    ARGUMENTS are a JSON object. `trigger` is what a model writes when it begins to call: the start of open +
    before, long enough not to be met in ordinary text. Where it is ordinary text all the same (Llama 3 writes bare
    JSON), the layout is `bare`: calls begin the turn or there are none, and what turns out to be no call was text.

    White space between the parts is the model's own affair when reading; NAME stands inside a JSON string where
    `before` ends in a quotation mark, and as it is otherwise.
    """

    trigger: str
    before: str
    middle: str
    after: str
    open: str = ""
    separator: str = ""
    close: str = ""
    bare: bool = False

    @property
    def quoted(self) -> bool:
        """Whether a call is one JSON object that holds name and arguments."""
        return self.before.endswith('"')


class CallReader(Protocol):
    """What a model samples -> the pieces of its turn. Never fed with anything that the model did not sample."""

    @property
    def in_call(self) -> bool:
        """Whether what comes next may belong to a call."""

    def push(self, text: str) -> list[ChatDelta]:
        """Text and pieces of calls, as soon as they are certain."""

    def flush(self) -> list[ChatDelta]:
        """What was held back when the sampling ended."""

    @property
    def broken(self) -> tuple[int, ...]:
        """The numbers of the calls that were not closed, for `ReplyEnded`."""


class Dialect(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def layout(self) -> Layout: ...

    def render(self, request: ChatRequest, tokenizer: Tokenizer, template: str | None) -> Ids:
        """The tokens of the conversation, up to where the model's turn begins.

        `template` is the Jinja text that came with the model. Raises BadInput for a conversation that the model's
        template refuses.
        """

    def reader(self, request: ChatRequest) -> CallReader:
        """Reads one turn. Ids of calls are minted here, unique in the conversation."""

    def grammar(self, tools: Sequence[ToolSpec], parallel: bool) -> Grammar:
        """What a turn's calls are held to from the first one's first character on."""
