"""DeepSeek V3 and R1 (the arguments in a fence), and V3.1 (without one)."""

from __future__ import annotations

from toolwise.notation.chat.dialect import TemplateDialect
from toolwise.notation.chat.layout import Layout

DEEPSEEK = TemplateDialect(
    "deepseek",
    Layout(
        trigger="<｜tool▁calls▁begin｜>",
        open="<｜tool▁calls▁begin｜>",
        before="<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
        middle="\n```json\n",
        after="\n```<｜tool▁call▁end｜>",
        separator="\n",
        close="<｜tool▁calls▁end｜>",
    ),
)
DEEPSEEK_V31 = TemplateDialect(
    "deepseek-v3.1",
    Layout(
        trigger="<｜tool▁calls▁begin｜>",
        open="<｜tool▁calls▁begin｜>",
        before="<｜tool▁call▁begin｜>",
        middle="<｜tool▁sep｜>",
        after="<｜tool▁call▁end｜>",
        close="<｜tool▁calls▁end｜>",
    ),
)
