"""A dialect over a chat template: most families of models are one, and differ in their layout and a few habits.

How much the template knows decides how it is used: tools and calls (they are handed over as transformers does), tools
alone (calls and results are written by the layout), or neither (tools are told in the system's turn).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from toolwise.core.chat import ChatRequest, ToolSpec
from toolwise.core.clock import Clock, SystemClock
from toolwise.core.errors import BadInput
from toolwise.notation.chat.base import CallReader
from toolwise.notation.chat.history import as_text, declared, structured, told, with_system
from toolwise.notation.chat.ids import minted
from toolwise.notation.chat.layout import Layout
from toolwise.notation.chat.reader import Reader
from toolwise.notation.chat.template import render, special, to_ids, uses
from toolwise.notation.chat.traced import Traced
from toolwise.notation.grammar import Grammar, call_grammar
from toolwise.notation.segments import Ids, Tokenizer

#: What templates call the tools that they are given; the second is SmolLM3's.
_TOOLS = frozenset({"tools", "xml_tools"})
# `... + call.arguments + ...`: such a template wants the text of the arguments, where others want the object.
_AS_TEXT = re.compile(r"""arguments['"]?\]?\s*(?:\+|~|-?\}\})""")


@dataclass(frozen=True, slots=True)
class TemplateDialect:
    """What a family has of its own.

    short_ids    calls have ids of so many letters and digits, whoever made them (Mistral)
    system       there is a system's turn; otherwise its text goes to the user's first (Gemma)
    single       a message holds one call (Llama 3)
    result_role  of results where the template knows no calls (Granite); otherwise they are the user's turn
    """

    name: str
    layout: Layout
    short_ids: int = 0
    system: bool = True
    single: bool = False
    result_role: str = ""
    clock: Clock = field(default_factory=SystemClock)

    def render(self, request: ChatRequest, tokenizer: Tokenizer, template: str | None) -> Ids:
        if template is None:
            raise BadInput("The model has no chat template; name the dialect inline, or give a template.")
        variables = self.variables(request, tokenizer, template)
        try:
            text = render(template, variables, self.clock)
        except BadInput:
            if variables["tools"] is not None:
                raise
            text = render(template, {**variables, "tools": []}, self.clock)  # some look for tools without asking first
        return to_ids(text, tokenizer)

    def variables(self, request: ChatRequest, tokenizer: Tokenizer, template: str) -> dict[str, Any]:
        """What the template is given."""
        tools = request.tools if request.choice.mode != "none" else ()
        if "tool_calls" in template:
            as_object = not _AS_TEXT.search(template)
            messages = structured(request.messages, as_object=as_object, single=self.single, call_id=self._call_id)
        else:
            messages = as_text(request.messages, self.layout, self.result_role)
        names = uses(template) & _TOOLS
        told_here = told(tools, self.layout) if tools and not names else Traced()
        return {
            "messages": with_system(messages, told_here, turn=self.system),
            "tools": None,
            **{name: [declared(tool) for tool in tools] for name in names if tools},
            "documents": None,
            "add_generation_prompt": True,
            **special(tokenizer),
        }

    def reader(self, request: ChatRequest) -> CallReader:
        return Reader(self.layout, request, minted(request, "", self.short_ids) if self.short_ids else None)

    def grammar(self, tools: Sequence[ToolSpec], parallel: bool) -> Grammar:
        return call_grammar(self.layout, tools, parallel)

    def _call_id(self, given: str) -> str:
        size = self.short_ids
        if not size or re.fullmatch(rf"[A-Za-z0-9]{{{size}}}", given):
            return given
        return sha256(given.encode(errors="surrogatepass")).hexdigest()[:size]
