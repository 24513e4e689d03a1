"""Hermes 2 and 3, Qwen 2.5 and 3, Granite 4, and many models that were tuned like them: a tagged object a call."""

from __future__ import annotations

from toolwise.notation.chat.dialect import TemplateDialect
from toolwise.notation.chat.layout import Layout

HERMES = TemplateDialect(
    "hermes",
    Layout(
        trigger="<tool_call>",
        before='<tool_call>\n{"name": "',
        middle='", "arguments": ',
        after="}\n</tool_call>",
        separator="\n",
    ),
)
