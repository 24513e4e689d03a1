"""The Gemini API's own words for a schema, as JSON Schema."""

from __future__ import annotations

from typing import Any

import pytest
from google.genai import types

from toolwise.core import jsonio
from toolwise.core.errors import BadInput, InvalidArguments
from toolwise.core.schema import Validator
from toolwise.notation.wire.fields import Field
from toolwise.notation.wire.gemini.schema import json_schema


def read(schema: Any) -> dict[str, Any]:
    return json_schema(Field(schema, "parameters"))


@pytest.mark.parametrize(
    ("told", "schema"),
    [
        ({}, {}),
        ({"type": "STRING"}, {"type": "string"}),
        ({"type": "string"}, {"type": "string"}),
        ({"type": "TYPE_UNSPECIFIED", "description": "any"}, {"description": "any"}),
        ({"type": "STRING", "format": "enum", "enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"type": "STRING", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"type": "INTEGER", "format": "int64", "minimum": 1.0}, {"type": "integer", "minimum": 1}),
        ({"type": "NUMBER", "maximum": 0.5}, {"type": "number", "maximum": 0.5}),
        ({"type": "INTEGER", "nullable": True}, {"type": ["integer", "null"]}),
        (
            {"type": "STRING", "enum": ["a"], "nullable": True},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}], "nullable": True},
            {"anyOf": [{"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"type": "null"}]},
        ),
        (
            {"type": "ARRAY", "items": {"type": "BOOLEAN"}, "minItems": "1", "maxItems": 3},
            {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3},
        ),
        (
            {"type": "OBJECT", "properties": {"nullable": {"type": "NULL"}}, "required": ["nullable"]},
            {"type": "object", "properties": {"nullable": {"type": "null"}}, "required": ["nullable"]},
        ),
        ({"any_of": [{"min_length": "2"}]}, {"anyOf": [{"minLength": 2}]}),
        ({"additionalProperties": False}, {"additionalProperties": False}),
        ({"additionalProperties": {"type": "STRING"}}, {"additionalProperties": {"type": "string"}}),
        ({"default": None, "example": 1}, {"default": None}),
        (
            {"ref": "#/$defs/A", "defs": {"A": {"type": "STRING"}}},
            {"$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}},
        ),
    ],
)
def test_every_word_has_its_meaning(told: Any, schema: Any) -> None:
    assert jsonio.dumps(read(told)) == jsonio.dumps(schema)  # 1 and 1.0 differ


def test_properties_stand_in_the_order_that_is_said() -> None:
    properties = {name: {"type": "STRING"} for name in "abc"}
    told = {"type": "OBJECT", "properties": properties, "propertyOrdering": ["c", "x", "a"]}
    assert list(read(told)["properties"]) == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("told", "place"),
    [
        ({"type": "TEXT"}, "parameters.type"),
        ({"type": ["STRING"]}, "parameters.type"),
        ({"oneOf": []}, "parameters.oneOf"),
        ({"items": []}, "parameters.items"),
        ({"properties": {"a": {"type": "X"}}}, "parameters.properties.a.type"),
        ({"anyOf": [{}, {"minItems": "-1"}]}, "parameters.anyOf[1].minItems"),
        ({"maxItems": "9" * 30}, "parameters.maxItems"),
        ({"minimum": "1"}, "parameters.minimum"),
        ({"nullable": "yes"}, "parameters.nullable"),
        ({"anyOf": [], "any_of": []}, "parameters.anyOf"),
    ],
)
def test_what_is_no_word_of_the_api_is_refused_by_its_place(told: Any, place: str) -> None:
    with pytest.raises(BadInput) as refused:
        read(told)
    assert refused.value.field == place


def test_what_the_official_type_writes_validates_arguments() -> None:
    told = types.Schema(
        type=types.Type.OBJECT,
        properties={
            "town": types.Schema(type=types.Type.STRING, min_length=1),
            "days": types.Schema(type=types.Type.INTEGER, nullable=True, maximum=7),
            "kind": types.Schema(any_of=[types.Schema(type=types.Type.BOOLEAN), types.Schema(type=types.Type.NUMBER)]),
        },
        required=["town"],
        property_ordering=["town", "days", "kind"],
    ).model_dump(mode="json", exclude_none=True, by_alias=True)
    validator = Validator(read(told))
    validator.validate({"town": "Bergen", "days": None, "kind": True})
    for wrong in ({}, {"town": ""}, {"town": "a", "days": 8}, {"town": "a", "kind": "x"}):
        with pytest.raises(InvalidArguments):
            validator.validate(wrong)
