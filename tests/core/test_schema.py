"""Schemas from signatures, the one validator, and schemas that must not be compiled."""

import datetime
import time
from enum import Enum
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field

from toolwise.core.errors import BadInput, InvalidArguments
from toolwise.core.limits import LIMITS
from toolwise.core.schema import Validator, raw_argument, signature
from toolwise.core.types import ToolContext


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Place(BaseModel):
    title: str
    height: float = 0.0


class Tree(BaseModel):
    children: "list[Tree]"


def book(
    city: str,
    place: Place,
    when: datetime.date,
    context: ToolContext,
    nights: Annotated[int, Field(ge=1)] = 1,
    guests: Optional[list[str]] = None,  # noqa: UP045
    colour: Colour = Colour.RED,
    board: Literal["full", "half"] = "half",
) -> str:
    """Book a room
    in a hotel.

    It cannot be undone.

    Args:
        city: Where to
            stay.
        nights (int): How long.
        colour: Of the door.
    """
    return city


def object_with(**keywords: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": keywords}}


def problem(schema: dict[str, Any], arguments: dict[str, Any]) -> str:
    with pytest.raises(InvalidArguments) as caught:
        Validator(schema).validate(arguments)
    return str(caught.value)


# --- signature


def test_a_signature_becomes_a_closed_schema_without_titles():
    schema = signature(book).parameters
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["city", "place", "when"]
    assert schema["properties"]["city"] == {"type": "string", "description": "Where to stay."}
    assert schema["properties"]["nights"] == {
        "type": "integer",
        "minimum": 1,
        "default": 1,
        "description": "How long.",
    }
    assert schema["properties"]["board"]["enum"] == ["full", "half"]
    assert schema["$defs"]["Place"] == {
        "type": "object",
        "properties": {"title": {"type": "string"}, "height": {"type": "number", "default": 0.0}},
        "required": ["title"],
        "additionalProperties": False,
    }


def test_the_description_is_the_summary_of_the_docstring():
    assert signature(book).description == "Book a room in a hotel."


def test_the_context_is_named_and_not_part_of_the_schema():
    described = signature(book)
    assert described.context_parameter == "context"
    assert "context" not in described.parameters["properties"]


def test_a_function_without_parameters_takes_an_empty_object():
    def now() -> str:
        return ""

    schema = signature(now).parameters
    Validator(schema).validate({})
    assert problem(schema, {"zone": 1}) == 'unknown argument "zone"'


def test_arguments_are_bound_to_the_annotated_types_and_defaults_stay_the_functions_own():
    arguments = {"city": "Oslo", "place": {"title": "t"}, "when": "2023-01-30", "nights": 2.0, "colour": "blue"}
    described = signature(book)
    Validator(described.parameters).validate(arguments)
    bound = described.bind(arguments)
    assert bound == {
        "city": "Oslo",
        "place": Place(title="t"),
        "when": datetime.date(2023, 1, 30),
        "nights": 2,
        "colour": Colour.BLUE,
    }
    assert type(bound["nights"]) is int


def test_a_value_that_the_type_refuses_is_not_quoted():
    arguments = {"city": "Oslo", "place": {"title": "t"}, "when": "hunter2"}
    with pytest.raises(InvalidArguments, match='"when"') as caught:
        signature(book).bind(arguments)
    assert "hunter2" not in str(caught.value)


def test_names_that_pydantic_uses_itself_are_ordinary_parameters():
    def odd(json: str, model_config: int, title: str, _hidden: bool, schema: str = "s") -> None: ...

    described = signature(odd)
    assert list(described.parameters["properties"]) == ["json", "model_config", "title", "_hidden", "schema"]
    arguments = {"json": "a", "model_config": 1, "title": "b", "_hidden": True}
    assert described.bind(arguments) == arguments


def test_a_method_is_described_without_its_self():
    class Reader:
        def read(self, page: int) -> str:
            return str(page)

    assert list(signature(Reader().read).parameters["properties"]) == ["page"]


def test_a_parameter_that_cannot_be_described_is_named():
    def bare(one: int, two): ...
    def star(*rest: int): ...
    def stars(**rest: int): ...
    def positional(first: int, /): ...
    def unknown(thing: "Nowhere"): ...  # noqa: F821
    def callback(then: type): ...
    def default(thing: Any = object()): ...  # noqa: B008
    def twice(one: ToolContext, two: ToolContext): ...

    for function, name in [
        (bare, "two"),
        (star, "rest"),
        (stars, "rest"),
        (positional, "first"),
        (unknown, "thing"),
        (callback, "then"),
        (default, "thing"),
        (twice, "two"),
    ]:
        with pytest.raises(BadInput, match=f'parameter "{name}"'):
            signature(function)


def test_what_is_no_function_is_refused():
    with pytest.raises(BadInput, match="function or a method"):
        signature(Place)


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ({"properties": {"q": {"type": "string"}}, "required": ["q"]}, "q"),
        ({"properties": {"q": {"type": "string"}}}, None),
        ({"properties": {"q": {"type": "integer"}}, "required": ["q"]}, None),
        ({"properties": {"q": {"type": ["string", "null"]}}, "required": ["q"]}, None),
        ({"properties": {"q": {"type": "string"}, "n": {"type": "integer"}}, "required": ["q"]}, "q"),
        ({"properties": {"q": {"type": "string"}, "n": {"type": "integer"}}, "required": ["q", "n"]}, None),
        ({"properties": {"n": {"type": "integer"}}, "required": ["q"]}, None),
        ({"properties": {}}, None),
        ({"type": "object"}, None),
    ],
)
def test_only_a_string_that_alone_is_required_is_a_raw_argument(schema, name):
    assert raw_argument(schema) == name


# --- validate


@pytest.mark.case("R7")
@pytest.mark.case("A14")
@pytest.mark.parametrize("value", [True, "5", "5.0", 5.5, None, [5]])
def test_nothing_is_coerced_to_an_integer(value):
    assert problem(object_with(type="integer"), {"a": value}).startswith('argument "a"')


@pytest.mark.case("A14")
@pytest.mark.parametrize("value", [5, 5.0, -1, 2**80])
def test_a_whole_number_is_an_integer(value):
    Validator(object_with(type="integer")).validate({"a": value})


@pytest.mark.case("A15")
def test_unknown_and_missing_arguments_are_named():
    schema = object_with(type="string") | {"required": ["a"], "additionalProperties": False}
    assert problem(schema, {"b": 1}) == 'unknown argument "b"; missing argument "a"'


@pytest.mark.case("A15")
def test_at_most_three_problems_are_named():
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    assert problem(schema, {f"p{i}": 0 for i in range(200)}).count("unknown argument") == 3


@pytest.mark.case("A15")
def test_ten_thousand_properties_are_refused_with_the_first_three_names():
    many = {f"p{i}": 0 for i in range(10_000)}
    for arguments in (many, {"a": many}):
        text = problem({"type": "object"}, arguments)
        assert 'first "p0", "p1", "p2"' in text
        assert len(text) < 200


def test_a_message_never_quotes_a_value_and_is_short():
    secret = "hunter2" * 50
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "e": {"enum": ["a", "b"]},
            "c": {"const": "k"},
            "p": {"type": "string", "pattern": "^a"},
            "u": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "l": {"type": "string", "maxLength": 3},
        },
    }
    for name in schema["properties"]:
        text = problem(schema, {name: secret})
        assert f'"{name}"' in text
        assert "hunter" not in text
        assert len(text) < 150


def test_a_long_or_unprintable_name_is_cut_and_escaped():
    text = problem({"type": "object", "additionalProperties": False}, {"\u202e\n" + "x" * 10_000: 1})
    assert len(text) < 100
    assert text.isprintable()


def test_the_place_of_a_problem_inside_is_named():
    schema = object_with(type="array", items={"type": "object", "required": ["b"]})
    assert problem(schema, {"a": [{"b": 1}, {}]}) == 'missing argument "b" in "a.1"'


@pytest.mark.case("A8")
@pytest.mark.parametrize("arguments", [{"a": "a\0b"}, {"a\0": 1}, {"a": [{"b": "\0"}]}])
def test_a_nul_character_is_refused(arguments):
    assert problem({"type": "object"}, arguments).startswith("NUL")


@pytest.mark.parametrize(
    ("value", "saying"),
    [
        ("\ud800", "unpaired surrogate"),
        (float("inf"), "number out of range"),
        (10**400, "integer too long"),
        ({1, 2}, "not JSON"),
        ("x" * (LIMITS.string_bytes + 1), "string too long"),
        (["x" * 1000] * 100, "too large"),
    ],
)
def test_arguments_that_no_text_could_say_are_refused(value, saying):
    assert saying in problem({"type": "object"}, {"a": value})


def test_many_wrong_values_against_many_branches_are_refused_quickly():
    schema = object_with(items={"anyOf": [{"type": "string", "minLength": i} for i in range(1000)]})
    start = time.process_time()
    assert '"a.0"' in problem(schema, {"a": [1] * 10_000})
    assert time.process_time() - start < 2


# --- schemas from elsewhere

DOUBLING = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(20)} | {"d20": {}}
CYCLE = {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.case("H5")
@pytest.mark.parametrize(
    ("schema", "saying"),
    [
        (object_with(**{"$ref": "http://169.254.169.254/"}), "nothing is fetched"),
        ({"type": "object", "$ref": "file:///etc/passwd"}, "nothing is fetched"),
        (object_with(**{"$id": "http://evil.example/", "$ref": "other"}), "not supported"),
        ({"type": "object", "$schema": "http://evil.example/"}, "use JSON Schema"),
        (object_with(**{"$ref": "#"}), "leads back to itself"),
        ({"type": "object", "$defs": CYCLE}, "leads back to itself"),
        ({"type": "object", "$defs": DOUBLING, "$ref": "#/$defs/d0"}, "parts"),
        (object_with(**{"$ref": "#/nowhere"}), "points at nothing"),
        (object_with(**{"$ref": "#/required/" + "9" * 5000}) | {"required": []}, "points at nothing"),
        (nested(1000), "too deep"),
        ({"type": "object", "description": "x" * 10_000_000}, "too large"),
        ({"type": "object", "properties": {f"p{i}": {} for i in range(200_000)}}, "too large"),
        ({"type": "object", "enum": [[]] * 20_000}, "parts"),
        (object_with(pattern="(a+)+$"), "repeats a repetition"),
        ({"type": "object", "patternProperties": {r"(?:\w*)*": {}}}, "repeats a repetition"),
        (object_with(pattern="(?=a)b"), "properties.a.pattern"),
        (object_with(pattern="a{1000}{1000}"), "properties.a.pattern"),
        ({"type": "object", "not": {}}, "accepts nothing"),
        (object_with(**{"not": True}), "accepts nothing"),
        (object_with(type="strin"), "properties.a.type"),
        ({"type": "string"}, 'of type "object"'),
        ({}, 'of type "object"'),
        ([], 'of type "object"'),
        ({"type": "object", "default": float("nan")}, "out of range"),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_a_schema_that_cannot_be_used_safely_is_refused(schema, saying):
    start = time.process_time()
    with pytest.raises(BadInput, match="schema") as caught:
        Validator(schema)
    assert time.process_time() - start < 2
    assert saying in str(caught.value)
    assert len(str(caught.value)) < 250


def test_a_recursive_model_is_refused():
    def plant(tree: Tree) -> None: ...

    with pytest.raises(BadInput, match="leads back to itself"):
        Validator(signature(plant).parameters)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"not": {}, "$ref": {"type": "string"}, "pattern": {}, "title": {}}},
        object_with(pattern="^[a-z0-9]+(-[a-z0-9]+)*$"),
        {
            "type": "object",
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"a/b": {"type": "string"}},
            "properties": {"a": {"$ref": "#/definitions/a~1b"}},
        },
        {"type": "object", "$id": "https://example.com/a", "$defs": {"a": True}, "$ref": "#/$defs/a"},
    ],
    ids=["names that are keywords", "slug", "draft 7", "identified"],
)
def test_an_ordinary_schema_is_accepted(schema):
    Validator(schema).validate({"a": "b"})


def test_a_format_is_an_annotation():
    Validator(object_with(type="string", format="date")).validate({"a": "not a date"})
