"""What a dialect is: how one family of chat models reads a conversation with tools and writes its calls.

A dialect is mostly data: a `Layout` says how calls are laid out, and from it follow what a reader looks for, what a
grammar allows and how history is told where the model's own template knows no tools. `render` gives the tokens that
the model reads, made from the model's own chat template where it has one.

What came from outside (a user, a document, a tool's result, a description) is data in every dialect: it becomes no
control token, and only what the model samples is ever read for calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from toolwise.core.chat import ChatDelta, ChatRequest, ToolSpec
from toolwise.notation.chat.layout import Layout
from toolwise.notation.grammar.grammar import Grammar
from toolwise.notation.segments import Ids, Tokenizer


class CallReader(Protocol):
    """What a model samples -> the pieces of its turn. Never fed with anything that the model did not sample."""

    @property
    def done(self) -> bool:
        """Whether no call can come any more, so that sampling on is in vain."""

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
