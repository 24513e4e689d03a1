"""Llama 3.1 to 3.3: bare JSON in place of an answer. Their template takes one call a message."""

from __future__ import annotations

from toolwise.notation.chat.dialect import TemplateDialect
from toolwise.notation.chat.layout import Layout

LLAMA3 = TemplateDialect(
    "llama3",
    Layout(
        trigger='{"name": "',
        before='{"name": "',
        middle='", "parameters": ',
        after="}",
        separator="; ",
        bare=True,
    ),
    single=True,
)
