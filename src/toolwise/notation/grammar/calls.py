"""The calls of a dialect as a grammar, and JSON as one.

A call begins where the layout says, names a tool that exists, and has arguments that fit that tool's schema, as compact
JSON with properties in the schema's order. Text before the first call is free and no part of the grammar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from toolwise.core.chat import ToolSpec
from toolwise.core.errors import BadInput
from toolwise.core.jsonio import quote
from toolwise.core.limits import LIMITS, Limits
from toolwise.notation.chat.layout import Layout
from toolwise.notation.grammar.engine import refusal
from toolwise.notation.grammar.grammar import ANY_OBJECT, Grammar, Parts, joined, quoted
from toolwise.notation.grammar.schema import masked
from toolwise.notation.grammar.tries import Tries


def call_grammar(layout: Layout, tools: Sequence[ToolSpec], parallel: bool = True, limits: Limits = LIMITS) -> Grammar:
    """One call or, where `parallel`, up to `limits.calls_per_turn`, from the layout's `open` to its `close`.

    Raises BadInput where there is no tool, for names that cannot be written, for a schema that is too large or refers
    to something outside itself, and where the engine is not installed.
    """
    if not tools:
        raise BadInput("A call needs a tool: give the request at least one that may be called.")
    parts = Parts()
    before, middle, after = map(parts.text, (layout.before, layout.middle, layout.after))
    bodies, tries = [], Tries(limits.request_tries)
    for tool in tools:
        if not tool.name or not tool.name.isprintable() or set(tool.name) & set('"\\<>'):
            raise BadInput(f"tool name {quote(tool.name)}: use letters, digits, _ . and -")
        schema = masked(tool.parameters or ANY_OBJECT, tool.name, partial(refusal, limits=limits), limits, tries)
        arguments = parts.schema(tool.name, schema.schema, schema.downgrades)
        bodies.append(joined(quoted(tool.name), middle, arguments))
    more = joined(parts.text(layout.separator), "call")
    repeat = f"({more}){{0,{limits.calls_per_turn - 1}}}" if parallel else ""
    return parts.grammar(
        [
            f"start: {joined(parts.text(layout.open), 'call', repeat, parts.text(layout.close))}",
            f"call: {joined(before, 'body', after)}",
            *(f"body: {bodies[0]}" if i == 0 else f"    | {body}" for i, body in enumerate(bodies)),
        ]
    )


def json_grammar(schema: Mapping[str, Any] | None, limits: Limits = LIMITS) -> Grammar:
    """JSON of this schema, or any JSON object. Raises BadInput as `call_grammar` does."""
    parts = Parts()
    found = masked(ANY_OBJECT if schema is None else schema, "", partial(refusal, limits=limits), limits)
    return parts.grammar([f"start: {parts.schema('', found.schema, found.downgrades)}"])
