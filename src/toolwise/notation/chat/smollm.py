"""SmolLM2, whose template knows no tools and which was taught a JSON list in one tag; SmolLM3, which writes as Hermes
does, though its template knows tools alone.
"""

from __future__ import annotations

from toolwise.notation.chat.dialect import TemplateDialect
from toolwise.notation.chat.layout import Layout

SMOLLM2 = TemplateDialect(
    "smollm2",
    Layout(
        trigger="<tool_call>",
        open="<tool_call>[",
        before='{"name": "',
        middle='", "arguments": ',
        after="}",
        separator=", ",
        close="]</tool_call>",
    ),
)
SMOLLM3 = TemplateDialect(
    "smollm3",
    Layout(
        trigger="<tool_call>",
        before='<tool_call>\n{"name": "',
        middle='", "arguments": ',
        after="}\n</tool_call>",
        separator="\n",
    ),
)
