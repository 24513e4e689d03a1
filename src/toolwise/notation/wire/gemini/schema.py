"""The API's own words for a schema, a part of OpenAPI 3.0's -> JSON Schema.

What differs: types in capitals, `nullable`, an order of the properties beside them, `defs` and `ref` without a dollar
sign, and counts that may be strings, as protocol buffers write 64-bit integers.

Left out, since they bound nothing: examples, and formats that only name the width of a number.
"""

from __future__ import annotations

from typing import Any

from toolwise.notation.wire.fields import Field
from toolwise.notation.wire.gemini.names import camel

_TYPES = ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL")
_COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_NUMBERS = ("minimum", "maximum")
_TEXTS = ("title", "description", "pattern")
_WIDTHS = frozenset({"", "enum", "int32", "int64", "float", "double"})
_READ = frozenset(
    {"type", "nullable", "format", "enum", "items", "properties", "propertyOrdering", "required", "anyOf", "default"}
    | {"additionalProperties", "defs", "$defs", "ref", "$ref", *_COUNTS, *_NUMBERS, *_TEXTS}
)
_LEFT = frozenset({"example", "examples"})


def json_schema(place: Field) -> dict[str, Any]:
    """Raises BadInput that names the place of what is no schema of the API."""
    part = camel(place)
    part.check_keys(_READ, _LEFT)
    schema = _scalars(part)
    schema |= {name: json_schema(part[name]) for name in ("items",) if not part[name].absent}
    for name in ("defs", "$defs"):
        if not part[name].absent:
            schema["$defs"] = _named(part[name])
    if not part["properties"].absent:
        schema["properties"] = _ordered(_named(part["properties"]), part["propertyOrdering"])
    if not part["required"].absent:
        schema["required"] = [item.text() for item in part["required"].items()]
    if not part["anyOf"].absent:
        schema["anyOf"] = [json_schema(item) for item in part["anyOf"].items()]
    more = part["additionalProperties"]
    if not more.absent:
        schema["additionalProperties"] = more.flag() if isinstance(more.value, bool) else json_schema(more)
    return _nullable(schema) if part["nullable"].flag() else schema


def _scalars(part: Field) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    kind = part["type"]
    if not kind.absent and kind.value != "TYPE_UNSPECIFIED":
        word = Field(kind.text().upper(), kind.path).one_of(*_TYPES)
        schema["type"] = word.lower()
    for name in ("ref", "$ref"):
        if not part[name].absent:
            # The API's examples also name a definition alone.
            reference = part[name].filled()
            schema["$ref"] = reference if reference.startswith("#") else f"#/$defs/{reference}"
    schema |= {name: part[name].text() for name in _TEXTS if not part[name].absent}
    schema |= {name: _plain(part[name].value) for name in _NUMBERS if part[name].number() is not None}
    schema |= {name: _count(part[name]) for name in _COUNTS if not part[name].absent}
    if part["format"].text("") not in _WIDTHS:
        schema["format"] = part["format"].text()
    if not part["enum"].absent:
        schema["enum"] = [item.value for item in part["enum"].items()]
    if "default" in part.object():
        schema["default"] = part["default"].value
    return schema


def _plain(number: float) -> float:
    """Clients write every number as a double; 1.0 is the integer 1 again, as readers of schemas want it."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _count(place: Field) -> int:
    value = place.value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    count = Field(value, place.path).integer(0)
    assert count is not None
    return count


def _named(place: Field) -> dict[str, Any]:
    return {name: json_schema(place[name]) for name in place.object()}


def _ordered(properties: dict[str, Any], order: Field) -> dict[str, Any]:
    first = [item.text() for item in order.items()]
    names = [*(name for name in first if name in properties), *(name for name in properties if name not in first)]
    return {name: properties[name] for name in names}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, or null."""
    if "type" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    if "enum" in schema and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    return schema | {"type": [schema["type"], "null"]}
