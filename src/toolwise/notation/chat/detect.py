"""Which dialect a model speaks, told from its chat template, since names of models say little.

Each rule asks for texts that a template of the family has and others have not. A template that writes calls in some
other way (XML parameters, Python, a JSON without a name) is nobody's: reading it as a similar one would be a guess.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from toolwise.core.errors import BadInput
from toolwise.notation.chat.base import Dialect
from toolwise.notation.chat.deepseek import DEEPSEEK, DEEPSEEK_V31
from toolwise.notation.chat.gemma import GEMMA
from toolwise.notation.chat.granite import GRANITE
from toolwise.notation.chat.hermes import HERMES
from toolwise.notation.chat.inline import INLINE
from toolwise.notation.chat.llama3 import LLAMA3
from toolwise.notation.chat.mistral import MISTRAL, MISTRAL_ARGS
from toolwise.notation.chat.smollm import SMOLLM2, SMOLLM3

DIALECTS: tuple[Dialect, ...] = (
    *(HERMES, LLAMA3, MISTRAL, MISTRAL_ARGS, GEMMA, SMOLLM2, SMOLLM3, GRANITE, DEEPSEEK, DEEPSEEK_V31, INLINE),
)


@dataclass(frozen=True, slots=True)
class _Rule:
    """A template that `has` all of these texts and `lacks` all of those."""

    dialect: Dialect
    has: tuple[str, ...]
    lacks: tuple[str, ...] = ()


_RULES = (
    _Rule(DEEPSEEK, ("<｜tool▁calls▁begin｜>", "```json")),
    _Rule(DEEPSEEK_V31, ("<｜tool▁calls▁begin｜>",)),
    _Rule(MISTRAL_ARGS, ("[TOOL_CALLS]", "[ARGS]")),
    _Rule(MISTRAL, ("[TOOL_CALLS]",)),
    _Rule(GRANITE, ("<|tool_call|>", "<|start_of_role|>")),
    _Rule(SMOLLM3, ("SmolLM", "Reasoning Mode")),
    _Rule(HERMES, ("<tool_call>", "arguments"), lacks=("<function=", "<arg_key>", "<parameter")),
    _Rule(LLAMA3, ("<|start_header_id|>", '"parameters": ')),
    _Rule(GEMMA, ("<start_of_turn>",), lacks=("tool_call>", "<start_function_call>")),
    _Rule(SMOLLM2, ("<|im_start|>", "SmolLM"), lacks=("tools",)),
)


#: Where a template says nothing of tools, a control token may still tell how its model was taught to call.
_TOKENS = (
    ("[ARGS]", MISTRAL_ARGS),
    ("[TOOL_CALLS]", MISTRAL),
    ("<｜tool▁calls▁begin｜>", DEEPSEEK),
    ("<tool_call>", HERMES),
)


def detect(template: str | None, control_texts: Container[str] = ()) -> Dialect | None:
    """The dialect of a model by its chat template and the texts of its control tokens; None for one that is not known
    to write calls."""
    if template is None:
        return None
    for rule in _RULES:
        if all(text in template for text in rule.has) and not any(text in template for text in rule.lacks):
            return rule.dialect
    if "tool" in template:
        return None
    return next((dialect for text, dialect in _TOKENS if text in control_texts), None)


def named(name: str) -> Dialect:
    """The dialect of that name. Raises BadInput for a name that there is not."""
    found = next((dialect for dialect in DIALECTS if dialect.name == name), None)
    if found is None:
        raise BadInput(f"There is no dialect {name!r}; use one of {', '.join(dialect.name for dialect in DIALECTS)}.")
    return found
