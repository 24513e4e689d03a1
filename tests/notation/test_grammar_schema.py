"""A schema in the words that can be masked: what it means stays, and what cannot be masked is named by its place."""

from functools import partial

import pytest

from toolwise.core.chat import ToolSpec
from toolwise.core.errors import BadInput
from toolwise.core.limits import Limits
from toolwise.notation.chat.hermes import HERMES
from toolwise.notation.grammar import call_grammar
from toolwise.notation.grammar.engine import refusal
from toolwise.notation.grammar.grammar import Downgrade
from toolwise.notation.grammar.inline import inline_grammar
from toolwise.notation.grammar.one_of import exclusive
from toolwise.notation.grammar.schema import masked, normalised
from toolwise.notation.markers import PLAIN


def of(x):
    return {"type": "object", "properties": {"x": x}, "required": ["x"], "additionalProperties": False}


CLOSED = {"type": "object", "properties": {"a": {}}, "additionalProperties": False}


def lost(schema):
    """(pointer, keyword) of all that is not masked, the engine asked."""
    return [(d.pointer, d.keyword) for d in masked(schema, "t", refusal).downgrades]


def kept(schema):
    return normalised(schema, "t").schema


def test_annotations_and_unknown_words_go_without_a_trace():
    notes = {"title": "T", "description": "d", "default": 1, "examples": [1], "x-order": 3, "nullable": True}
    assert kept(of({"type": "string", **notes})) == of({"type": "string"})
    assert lost(of({"type": "string", **notes, "format": "password"})) == []


@pytest.mark.case("R31")
@pytest.mark.parametrize(
    ("x", "keyword"),
    [
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "uniqueItems"),
        ({"type": "string", "not": {"const": "a"}}, "not"),
        ({"type": "integer", "if": {"minimum": 3}, "then": {"multipleOf": 2}}, "if"),
        ({"type": "array", "items": {"type": "string"}, "contains": {"const": "a"}}, "contains"),
        ({"type": "string", "format": "regex"}, "format"),
        ({"type": "string", "pattern": "(?=a)b"}, "pattern"),
        ({"type": "string", "pattern": r"(a)\1"}, "pattern"),
        ({"oneOf": [{"type": "integer", "minimum": 1}, {"type": "integer", "multipleOf": 2}]}, "oneOf"),
        ({"type": "number", "minimum": 0, "maximum": 1e17, "multipleOf": 1e-12}, "multipleOf"),
        ({"type": "integer", "multipleOf": 10_000_019}, "multipleOf"),  # minutes of the engine, under everybody's lock
        ({"type": "integer", "multipleOf": 2**64}, "multipleOf"),
    ],
)
def test_what_cannot_be_masked_is_left_out_at_its_place_and_named(x, keyword):
    schema = {"type": "object", "properties": {"x": x, "y": {"type": "string", "pattern": "^a+$"}}}
    found = masked(schema, "t", refusal)
    assert [*found.downgrades] == [Downgrade("t", "/properties/x", keyword)]
    assert found.schema["properties"]["x"]
    assert found.schema["properties"]["y"]["pattern"] == "^a+$"


@pytest.mark.case("R31")
@pytest.mark.parametrize(
    "word", [{"dependentRequired": {"a": ["b"]}}, {"propertyNames": {"maxLength": 3}}, {"unevaluatedProperties": False}]
)
def test_so_is_what_speaks_of_an_object_as_a_whole(word):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, **word}
    assert lost(schema) == [("", next(iter(word)))]


@pytest.mark.case("R31")
@pytest.mark.parametrize(
    "x",
    [
        {"type": "integer", "minimum": 0, "multipleOf": 5},
        {"type": "object", "patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": False},
        {"type": "string", "pattern": r"^\d{3}-\d{4}$", "maxLength": 8},
        {"type": "string", "format": "date-time"},
        {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
        {"type": ["string", "null"]},
    ],
)
def test_what_the_engine_can_do_is_not_given_up(x):
    assert {keyword for _, keyword in lost(of(x))} <= {"additionalProperties"}


def test_a_choice_by_a_constant_is_a_plain_choice():
    branch = {"type": "object", "properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}, "required": ["kind"]}
    other = {"type": "object", "properties": {"kind": {"enum": ["b", "c"]}}, "required": ["kind"]}
    found = masked(of({"oneOf": [branch, other]}), "t", refusal)
    assert not found.downgrades
    assert [*found.schema["properties"]["x"]] == ["anyOf"]


@pytest.mark.parametrize(
    ("branches", "apart"),
    [
        ([{"type": "string"}, {"type": ["integer", "null"]}], True),
        ([{"type": "integer"}, {"type": "number"}], False),
        ([{"const": 1}, {"const": 1.0}], False),
        ([{"enum": ["a", "b"]}, {"const": "c"}], True),
        ([{"type": "object", "properties": {"k": {"const": 1}}}, {"properties": {"k": {"const": 2}}}], False),
        ([{}, False], True),
        ([CLOSED, {"type": "object", "required": ["b"]}], True),
        ([CLOSED, {"type": "object", "required": ["a"]}], False),
        ([{"type": "string"}, True], False),
    ],
)
def test_branches_exclude_each_other_only_where_that_is_certain(branches, apart):
    assert exclusive(branches, lambda node: node) is apart


@pytest.mark.case("R34")
def test_a_reference_keeps_what_stands_beside_it():
    schema = {"$defs": {"S": {"type": "string"}}, **of({"$ref": "#/$defs/S", "description": "d", "maxLength": 2})}
    found = masked(schema, "t", refusal)
    assert not found.downgrades
    assert found.schema["properties"]["x"] == {"$ref": "#/$defs/d0", "maxLength": 2}


@pytest.mark.case("R34")
def test_in_old_drafts_nothing_counts_beside_a_reference():
    old = {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"S": {"type": "string"}}}
    found = masked({**old, **of({"$ref": "#/definitions/S", "maxLength": 2})}, "t", refusal)
    assert found.schema["properties"]["x"] == {"$ref": "#/$defs/d0"}


@pytest.mark.case("R34")
def test_a_schema_that_leads_back_to_itself_ends():
    part = {"$ref": "#/$defs/F", "description": "one of those that must hold"}
    names = {"and": {"type": "array", "items": part}, "key": {"type": "string"}}
    schema = {**of({"$ref": "#/$defs/F"}), "$defs": {"F": {"type": "object", "properties": names}}}
    assert lost(schema) == []
    names["and"]["items"] = {**part, "minProperties": 1}
    assert ("/$defs/F/properties/and/items", "$ref") in lost(schema)


@pytest.mark.case("R34")
def test_required_names_without_a_property_stay_required():
    found = masked({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["z"]}, "t", refusal)
    assert found.schema["required"] == ["z"]
    assert "z" in found.schema["properties"]
    assert {d.keyword for d in found.downgrades} == {"additionalProperties"}  # any JSON, so any object


@pytest.mark.case("R35")
@pytest.mark.parametrize("reference", ["file:///etc/passwd", "http://127.0.0.1/s.json", "other.json", "#nothing", 5])
def test_nothing_outside_a_schema_is_fetched(reference):
    with pytest.raises(BadInput):
        masked(of({"$ref": reference}), "t", refusal)


@pytest.mark.case("R35")
def test_references_that_multiply_are_refused_early():
    level = lambda i: {"$ref": f"#/$defs/d{i}", "minProperties": 0}  # noqa: E731
    levels = {f"d{i}": {"type": "object", "properties": {"a": level(i - 1), "b": level(i - 1)}} for i in range(1, 60)}
    with pytest.raises(BadInput, match="parts"):
        masked({**of(level(59)), "$defs": {"d0": {"type": "string"}, **levels}}, "t", refusal)


@pytest.mark.case("R35")
def test_patterns_that_must_all_fit_are_bounded():
    """The engine takes seconds to join twenty."""
    patterns = [{"type": "string", "pattern": f"a{{{i}}}.*b"} for i in range(20, 45)]
    assert ("/properties/x/allOf/24", "pattern") in lost(of({"allOf": patterns}))


@pytest.mark.case("R35")
def test_a_schema_with_too_many_places_to_try_is_any_object():
    x = {"allOf": [{"not": {}}, *({"type": "string", "pattern": f"(?={i})"} for i in range(40))]}
    tight = masked(of(x), "t", refusal, Limits(grammar_tries=3))
    assert tight.schema == {"type": "object"}
    assert tight.downgrades == (Downgrade("t", "", "schema"),)


@pytest.mark.case("R35")
@pytest.mark.parametrize("grammar_of", [partial(call_grammar, HERMES.layout), partial(inline_grammar, notation=PLAIN)])
def test_all_schemas_of_a_request_are_tried_so_often_together(grammar_of):
    odd = of({"allOf": [{"type": "string", "pattern": f"(?={i})"} for i in range(4)]})
    tools = [ToolSpec(f"t{i}", "", odd) for i in range(4)]
    (each,) = {len(grammar_of([tool], limits=Limits()).downgrades) for tool in tools}
    found = [(lost.tool, lost.keyword) for lost in grammar_of(tools, limits=Limits(request_tries=20)).downgrades]
    assert {tool for tool, keyword in found if keyword == "schema"} == {"t2", "t3"}
    assert [tool for tool, keyword in found].count("t0") == each > 1


def test_an_object_is_closed_only_where_nothing_else_speaks_of_it():
    a, b = {"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}
    assert kept({"type": "object", **a})["additionalProperties"] is False
    assert "additionalProperties" not in kept({"type": "object", **a, "allOf": [b]})
    assert "additionalProperties" not in kept({"type": "object", "allOf": [a, b]})["allOf"][0]
    need = {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    both = {"type": "object", "properties": {**a["properties"], **b["properties"]}, **need}
    assert kept(both)["additionalProperties"] is False
    union = kept(of({"anyOf": [{"type": "object", **a}, {"type": "object", **b}]}))
    assert all(branch["additionalProperties"] is False for branch in union["properties"]["x"]["anyOf"])


def test_what_an_alternative_leaves_open_is_lost_only_where_the_whole_does():
    both = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    assert lost({**both, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}) == []
    assert lost({"type": "object", "allOf": [both, {"required": ["c"]}]}) != []


def test_numbers_have_bounds_and_keep_their_own():
    bounds = kept(of({"type": "integer", "minimum": 3}))["properties"]["x"]
    assert bounds == {"type": "integer", "minimum": 3, "maximum": 10**18 - 1}
    assert "maximum" not in kept(of({"type": "integer", "minimum": 10**30}))["properties"]["x"]
    assert "minimum" not in kept(of({"type": "number", "enum": [1, 2]}))["properties"]["x"]


def test_steps_that_are_joined_stay_few_however_many_there_are():
    steps = [{"multipleOf": step} for step in (5, 0.25, 600, 23)]
    found = lost({"type": "object", "properties": {"x": {"type": "integer", "allOf": steps}}})
    assert found == [("/properties/x/allOf/3", "multipleOf")]
