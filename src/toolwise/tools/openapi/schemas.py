"""OpenAPI's schemas as JSON Schema 2020-12, every `$ref` written out, ready to be shown to a model.

    nullable: true                  "null" among the types; around allOf, anyOf or oneOf an `anyOf` with null
    exclusiveMinimum: true          the number itself, as since draft 6
    example: x                      examples: [x]
    readOnly properties             left out, also of `required`: they stand in answers, not in requests
    a $ref with keywords beside it  3.0: they are ignored, as its specification says; 3.1: both hold
    a long example, a long format   left out
    title, xml, externalDocs, deprecated, discriminator, x-..., unknown keywords
                                    left out; none of them forbids or allows a value

Refused: references that lead elsewhere or back, keywords that change what a reference means (`$id`, `$anchor`,
`$dynamicRef`, ...), keywords of older drafts (`dependencies`, `additionalItems`), other dialects, and whatever
`core.schema_safety` refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolwise.core import jsonio
from toolwise.core.errors import BadInput
from toolwise.core.jsonio import printable, quote
from toolwise.core.limits import Limits
from toolwise.core.schema_safety import referred
from toolwise.tools.openapi.document import Description

_SCHEMA = (
    *("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else"),
    *("unevaluatedItems", "unevaluatedProperties"),
)
_SCHEMAS = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "dependentSchemas")
_KEPT = (
    *("type", "enum", "const", "default", "format", "pattern", "required", "dependentRequired", "examples"),
    *("multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength"),
    *("maxItems", "minItems", "uniqueItems", "maxContains", "minContains", "maxProperties", "minProperties"),
    *("contentEncoding", "writeOnly"),
)
_REFUSED = (
    *("$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary"),
    *("dependencies", "additionalItems"),
)
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_SAYS_NOTHING = frozenset({"description", "default", "examples", "writeOnly"})

Schema = dict[str, Any]


def json_schema(schema: Any, description: Description, limits: Limits) -> Schema:
    """The schema of a request's part; one that takes anything is empty. Raises BadInput."""
    written = _Writer(description, limits).schema(schema, 0)
    if isinstance(written, bool):
        if not written:
            raise BadInput("schema: it accepts nothing")
        return {}
    return written


def checked_name(name: str, limits: Limits) -> str:
    """A name that a model reads, and a person in an approval: one word that can be seen. Raises BadInput."""
    if not 0 < len(name) <= limits.name_chars or " " in name or printable(name) != name:
        raise BadInput(f"the name {quote(name)} is none: at most {limits.name_chars} characters that print, no spaces")
    return name


def shown_line(text: Any, chars: int) -> str:
    """What a description says, in one line that shows all that is in it; "" for what is no text."""
    return printable(" ".join(text[: 4 * chars].split()), chars) if isinstance(text, str) else ""


class _Writer:
    """One schema, written out. `parts` are left, and `inside` are the references that are being followed."""

    def __init__(self, description: Description, limits: Limits) -> None:
        self._description, self._limits = description, limits
        self._parts = limits.schema_parts
        self._inside: list[str] = []

    def schema(self, schema: Any, depth: int) -> Schema | bool:
        self._parts -= 1
        if self._parts < 0 or depth > self._limits.schema_depth:
            raise BadInput("schema: too large or too deep once every $ref is written out")
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise BadInput("schema: it is neither an object nor true or false")
        if "$ref" in schema:
            return self._referred(schema, depth)
        for keyword in _REFUSED:
            if keyword in schema:
                raise BadInput(f"schema: {keyword} is not supported")
        if schema.get("$schema", _DIALECT) != _DIALECT:
            raise BadInput("schema: use JSON Schema 2020-12")
        return _nullable(schema, self._written(schema, depth))

    def _referred(self, schema: Mapping[str, Any], depth: int) -> Schema | bool:
        reference = schema["$ref"]
        if not isinstance(reference, str) or reference in self._inside:
            raise BadInput("schema: a $ref leads back to itself; write the levels out")
        self._inside.append(reference)
        target = self.schema(referred(self._description.root, reference), depth + 1)
        self._inside.pop()
        if self._description.old:
            return target
        beside = self._written({key: value for key, value in schema.items() if key != "$ref"}, depth + 1)
        if beside.keys() <= _SAYS_NOTHING:
            return target | beside if isinstance(target, dict) else target
        return {"allOf": [target, beside]}

    def _written(self, schema: Mapping[str, Any], depth: int) -> Schema:
        written: Schema = {key: schema[key] for key in _KEPT if key in schema}
        for key in ("format", "contentEncoding"):
            if key in written and shown_line(written[key], self._limits.name_chars) != written[key]:
                del written[key]
        names = written.get("required", [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise BadInput("schema: required is no list of names")
        if text := shown_line(schema.get("description"), self._limits.openapi_text_chars):
            written["description"] = text
        if "example" in schema and "examples" not in schema:
            written["examples"] = [schema["example"]]
        if len(jsonio.canonical(written.get("examples"))) > self._limits.openapi_text_chars:
            del written["examples"]
        for bound in ("Minimum", "Maximum"):
            strict = written.get(f"exclusive{bound}")
            if isinstance(strict, bool):
                del written[f"exclusive{bound}"]
                if strict and bound.lower() in written:
                    written[f"exclusive{bound}"] = written.pop(bound.lower())
        for key in _SCHEMA:
            if key in schema:
                written[key] = self.schema(schema[key], depth + 1)
        for key in _SCHEMAS:
            if key in schema:
                written[key] = [self.schema(part, depth + 1) for part in _of_kind(schema, key, list)]
        for key in _NAMED:
            if key in schema:
                named = _of_kind(schema, key, Mapping)
                written[key] = {name: self.schema(named[name], depth + 1) for name in self._sent(named)}
        if names and "properties" in schema:
            answered = schema["properties"].keys() - written["properties"].keys()
            written["required"] = [name for name in names if name not in answered]
        return written

    def _sent(self, named: Mapping[str, Any]) -> list[str]:
        """The names of what a request may hold."""
        return [
            checked_name(name, self._limits)
            for name, part in named.items()
            if not (_read_only(part) or _read_only(self._description.followed(part)))
        ]


def _read_only(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("readOnly") is True


def _of_kind(schema: Mapping[str, Any], key: str, kind: type[Any]) -> Any:
    if not isinstance(schema[key], kind):
        raise BadInput(f"schema: {quote(key)} is not what OpenAPI says")
    return schema[key]


def _nullable(schema: Mapping[str, Any], written: Schema) -> Schema:
    if schema.get("nullable") is not True:
        return written
    kind = written.get("type")
    if isinstance(kind, str):
        return written | {"type": [kind, "null"]}
    if kind is None and any(key in written for key in ("allOf", "anyOf", "oneOf")):
        said = {key: written.pop(key) for key in _SAYS_NOTHING & written.keys()}
        return {**said, "anyOf": [written, {"type": "null"}]}
    return written
