"""Calls in running text as a grammar: from behind the open marker up to the arrow.

    call  = Name "(" ( raw | pairs ) ")" arrow
    raw   = { character | escape | "(" raw ")" }      the one text that a tool takes
    pairs = key "=" JSON { ", " key "=" JSON }        in the schema's order

What fits can be read: parentheses pair, no marker and no line end stands bare, escapes are known ones, and raw text
beside optional arguments does not begin like a pair.

Not covered: all that could be written. Pairs stand in the schema's order; parentheses that pair from one argument to
another do not fit, nor do parentheses in strings of which a schema says more than that they are strings, or that stand
deeper; nor raw text beside optional arguments that begins with a quotation mark, or with a word beyond ASCII and `=`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from toolwise.core import jsonio
from toolwise.core.errors import BadInput
from toolwise.core.jsonio import quote
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.schema import raw_argument
from toolwise.notation.arguments import Signature, guarded_json, write_key
from toolwise.notation.grammar.engine import refusal
from toolwise.notation.grammar.grammar import COMPACT, Downgrade, Grammar, Parts, quoted
from toolwise.notation.grammar.keywords import ANYTHING, Schema
from toolwise.notation.grammar.schema import masked
from toolwise.notation.grammar.tries import Tries
from toolwise.notation.markers import NAME, Notation, core_of, escapable, escape, guard, pairs

_NO_PARENTHESES = "^[^()]*$"
_STRING_RULES = (
    'string: "\\"" inside_string "\\""',
    'inside_string: STRING_TEXT? ("(" inside_string ")" STRING_TEXT?)*',
    r"STRING_TEXT: /([^\x00-\x1f\x22\\()]|\\[\x22\\\/bfnrt]|\\u([1-9a-cA-CefEF][0-9a-fA-F]{3}|0[1-9a-fA-F][0-9a-fA-F]"
    r"{2}|00[1-9a-fA-F][0-9a-fA-F]|000[1-9a-fA-F]|[dD][0-7][0-9a-fA-F]{2}|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F]"
    r"[0-9a-fA-F]{2}))+/",
)


def inline_grammar(tools: Sequence[Signature], notation: Notation, limits: Limits = LIMITS) -> Grammar:
    """One call to one of these tools. Raises BadInput as `call_grammar` does."""
    if not tools:
        raise BadInput("A call needs a tool: give at least one that may be called.")
    parts, rules, tries = Parts(), list[str](), Tries(limits.request_tries)
    for number, tool in enumerate(tools):
        if not NAME.fullmatch(tool.name):
            raise BadInput(f"tool name {quote(tool.name)}: inline names are up to 64 of A-Z, a-z, 0-9, '_', '.', '-'")
        rules += _Tool(tool, number, parts, notation, limits, tries).rules()
    start = f"start: ({' | '.join(f'call_{number}' for number in range(len(tools)))}) {parts.text(notation.arrow)}"
    return parts.grammar([start, *rules, *_raw_rules(notation), *_STRING_RULES])


class _Tool:
    """The rules of one tool's calls."""

    def __init__(
        self, tool: Signature, number: int, parts: Parts, notation: Notation, limits: Limits, tries: Tries
    ) -> None:
        self._tool, self._number, self._parts, self._notation = tool, number, parts, notation
        found = masked(tool.parameters, tool.name, partial(refusal, limits=limits), limits, tries)
        parts.downgrades.extend(found.downgrades)
        self._schema = found.schema
        self._properties: Schema = found.schema.get("properties") or {}
        if any(downgrade.pointer == "" and downgrade.keyword == "schema" for downgrade in found.downgrades):
            self._schema = ANYTHING
            self._properties = dict.fromkeys(tool.parameters.get("properties", ()), ANYTHING)

    def rules(self) -> list[str]:
        head, number = quoted(f"{self._tool.name}("), self._number
        parameter = raw_argument(self._tool.parameters)
        if parameter is None:
            return [f'call_{number}: {head} pairs_{number}_0 ")"', *self._pairs()]
        options = len(self._tool.parameters["properties"]) > 1
        raw = self._raw(parameter, "raw_alone" if options else "raw")
        if not options:
            return [f'call_{number}: {head} ({raw}) ")"']
        return [f'call_{number}: {head} ({raw} | pairs_{number}_0) ")"', *self._pairs()]

    def _raw(self, parameter: str, any_text: str) -> str:
        schema = self._properties.get(parameter, {})
        values = _constants(schema)
        if values is not None:
            texts = [value for value in values if isinstance(value, str)]
            return " | ".join(quoted(guard(escape(text, self._notation), lambda found: "\\" + found)) for text in texts)
        for word in sorted({"minLength", "maxLength", "pattern", "format", "$ref", "anyOf", "allOf"} & set(schema)):
            self._lost(f"/properties/{parameter}", word)
        return any_text

    def _pairs(self) -> list[str]:
        for word in sorted(set(self._schema) - {"type", "properties", "required", "additionalProperties", "$defs"}):
            self._lost("", word)
        number, required, rules = self._number, self._tool.parameters.get("required", ()), list[str]()
        names = [name for name, schema in self._properties.items() if schema is not False]
        for i, name in enumerate(names):
            key = quoted(guarded_json(write_key(name), self._notation) + "=")
            skip = "" if name in required else "| "
            first, rest = f"pairs_{number}_{i}", f"rest_{number}_{i}"
            after = f"rest_{number}_{i + 1}"
            rules += [
                f"item_{number}_{i}: {key} {self._value(name)}",
                f"{first}: item_{number}_{i} {after} {skip and f'| pairs_{number}_{i + 1}'}",
                f'{rest}: ", " item_{number}_{i} {after} {skip and f"| {after}"}',
            ]
        return [*rules, f'pairs_{number}_{len(names)}: ""', f'rest_{number}_{len(names)}: ""']

    def _value(self, name: str) -> str:
        schema = self._properties[name]
        values = _constants(schema)
        if schema == {"type": "string"}:
            return "string"
        if values is not None:
            return f"({' | '.join(quoted(guarded_json(jsonio.dumps(value), self._notation)) for value in values)})"
        definitions = self._schema.get("$defs", {})
        if any(map(_unguarded, (schema, *definitions.values()))):
            self._lost(f"/properties/{name}", "schema")
            schema, definitions = ANYTHING, {}
        whole = {**_guarded(schema), "$defs": {key: _guarded(part) for key, part in definitions.items()}}
        return self._parts.schema(self._tool.name, whole, (), instead=_guarded(ANYTHING), options=COMPACT)

    def _lost(self, pointer: str, keyword: str) -> None:
        self._parts.downgrades.append(Downgrade(self._tool.name, pointer, keyword))


def _constants(schema: Any) -> list[Any] | None:
    """The values that a schema lists, where it lists them."""
    if not isinstance(schema, dict):
        return None
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    return list(values) if isinstance(values, list) and set(schema) <= {"const", "enum", "type"} else None


def _may_be(kind: str, schema: Schema) -> bool:
    """Whether this place itself lets values of a type through, rather than those that it refers to."""
    kinds = schema.get("type")
    if kinds is None:
        return not {"const", "enum", "$ref", "anyOf", "allOf"} & set(schema)
    return kind in (kinds if isinstance(kinds, list) else [kinds]) and not {"const", "enum"} & set(schema)


def _unguarded(schema: Any) -> bool:
    """Whether parentheses without partners may come out of names and values that no pattern of ours can reach."""
    if isinstance(schema, list):
        return any(map(_unguarded, schema))
    if not isinstance(schema, dict):
        return False
    fixed = [*schema.get("properties", ()), schema.get("const"), *schema.get("enum", ())]
    if any(map(_has_stray, fixed)) or "patternProperties" in schema:
        return True
    if _may_be("object", schema) and "additionalProperties" not in schema:
        return True
    inside = [part for word, part in schema.items() if word not in ("const", "enum", "properties", "type", "required")]
    return any(map(_unguarded, (*inside, *schema.get("properties", {}).values())))


def _has_stray(value: Any) -> bool:
    texts = (part for part in jsonio.walk(value) if isinstance(part, str) and not {"(", ")"}.isdisjoint(part))
    return any(text.count("(") + text.count(")") != len(pairs(text)) for text in texts)


def _guarded(schema: Any) -> Any:
    """The schema whose strings and open names hold no parentheses; the names of objects in the order of JSON here."""
    if isinstance(schema, list):
        return [_guarded(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {word: part if word in ("const", "enum") else _guarded(part) for word, part in schema.items()}
    if "properties" in schema:
        found["properties"] = {name: _guarded(schema["properties"][name]) for name in sorted(schema["properties"])}
    if _may_be("string", schema):
        if "pattern" in found:
            found["allOf"] = [*found.get("allOf", ()), {"type": "string", "pattern": _NO_PARENTHESES}]
        else:
            found["pattern"] = _NO_PARENTHESES
    if isinstance(found.get("additionalProperties"), dict):
        if "properties" not in found:
            found["patternProperties"] = {_NO_PARENTHESES: found["additionalProperties"]}
        found["additionalProperties"] = False
    return found


def _raw_rules(notation: Notation) -> Iterable[str]:
    cores = "|".join(_regex(core_of(marker)) for marker in notation.markers)
    escapes = "".join(sorted(_regex(character) for character in escapable(notation)))
    yield 'raw: RAW? ("(" raw ")" RAW?)*'
    yield 'raw_alone: RAW_FIRST ("(" raw ")" RAW?)* | ("(" raw ")" RAW?)+'
    yield rf"RAW: /([^\\()\r\n\x00]|\\[{escapes}])+/ & ~/(?s:([^\\]|\\.)*({cores}).*)/"
    yield r"RAW_FIRST: RAW & ~/(?s:[ \t]*([A-Za-z_\u{80}-\u{10FFFF}][0-9A-Za-z_\u{80}-\u{10FFFF}]*[ \t]*=|\x22).*)/"


def _regex(text: str) -> str:
    """Text as it stands in a regular expression of Lark, in which `/` ends one."""
    return "".join(f"\\u{{{ord(c):x}}}" if not c.isalnum() else c for c in text)
