"""Gemma 2 and 3, which were taught no calls of their own and know no system's turn: JSON in a fence, in our words."""

from __future__ import annotations

from toolwise.notation.chat.dialect import TemplateDialect
from toolwise.notation.chat.layout import Layout

GEMMA = TemplateDialect(
    "gemma",
    Layout(
        trigger="```tool_call",
        before='```tool_call\n{"name": "',
        middle='", "parameters": ',
        after="}\n```",
        separator="\n",
    ),
    system=False,
)
