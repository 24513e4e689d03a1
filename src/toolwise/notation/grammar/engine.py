"""The masking engine (llguidance), asked whether it takes a schema. Loaded when it is first needed.

It refuses what it cannot do instead of letting it pass, which is why it was chosen; nothing here makes it lenient.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS, Limits
from toolwise.notation.grammar.grammar import schema_text


def engine() -> Any:
    """The package. Raises BadInput where it is not installed."""
    try:
        import llguidance
    except ImportError as missing:
        raise BadInput("Strict decoding needs llguidance; install toolwise[strict].") from missing
    return llguidance


def parser_limits(limits: Limits = LIMITS) -> Any:
    """What the engine may spend on one grammar, and on one mask."""
    return engine().LLParserLimits(
        max_grammar_size=limits.grammar_symbols,
        initial_lexer_fuel=limits.grammar_fuel,
        step_lexer_fuel=limits.mask_fuel,
        max_items_in_row=limits.mask_items,
        step_max_items=10 * limits.mask_items,
        verbose_errors=False,
    )


def refusal(schema: Mapping[str, Any], limits: Limits = LIMITS) -> str:
    """Why the engine does not take a schema, or `""`."""
    lark = f"start: %json {schema_text(schema)}"
    said: str = engine().LLMatcher.validate_grammar(lark, limits=parser_limits(limits))
    return said
