"""Mistral: a control token, then a JSON list (tokenizers v3 to v7) or name and arguments (from v11 on)."""

from __future__ import annotations

from toolwise.notation.chat.dialect import TemplateDialect
from toolwise.notation.chat.layout import Layout

MISTRAL = TemplateDialect(
    "mistral",
    Layout(
        trigger="[TOOL_CALLS]",
        open="[TOOL_CALLS][",
        before='{"name": "',
        middle='", "arguments": ',
        after="}",
        separator=", ",
        close="]",
    ),
    short_ids=9,
)
MISTRAL_ARGS = TemplateDialect(
    "mistral-args",
    Layout(trigger="[TOOL_CALLS]", before="[TOOL_CALLS]", middle="[ARGS]", after="", aside="[CALL_ID]"),
    short_ids=9,
)
