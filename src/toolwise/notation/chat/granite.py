"""Granite 3: a JSON list behind one control token. Granite 4 writes as Hermes does."""

from __future__ import annotations

from toolwise.notation.chat.dialect import TemplateDialect
from toolwise.notation.chat.layout import Layout

GRANITE = TemplateDialect(
    "granite",
    Layout(
        trigger="<|tool_call|>",
        open="<|tool_call|>[",
        before='{"name": "',
        middle='", "arguments": ',
        after="}",
        separator=", ",
        close="]",
    ),
    result_role="tool_response",
)
