"""Descriptions that others wrote: what is read of them, and what is refused before anything else happens."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openapi_descriptions import PETS, WEATHER, weather

from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS
from toolwise.tools.openapi import openapi_tools, yaml_text

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


def file(folder: Path, text: str | bytes, name: str = "api.yaml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(source: Any, **options: Any) -> str:
    """Why, in one line, and at once."""
    started = time.perf_counter()
    with pytest.raises(BadInput) as caught:
        openapi_tools(source, **options)
    assert time.perf_counter() - started < 2
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1_000
    return str(caught.value)


# YAML


@given(VALUES)
def test_json_is_yaml_and_is_read_the_same(value: Any) -> None:
    for indent in (None, 2):
        text = json.dumps(value, indent=indent)
        if re.search(r"\\ud[89ab]", text):  # two escapes for one character are JSON's alone
            with pytest.raises(BadInput):
                yaml_text.loads(text, LIMITS)
        else:
            assert yaml_text.loads(text, LIMITS) == value


@given(VALUES)
def test_what_another_writer_makes_of_a_value_is_read_as_that_value(value: Any) -> None:
    import yaml

    class Quoting(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))
    assert yaml_text.loads(yaml.dump(value, Dumper=Quoting, allow_unicode=True), LIMITS) == value


def test_an_alias_stands_for_what_it_names_however_often(tmp_path: Path) -> None:
    assert yaml_text.loads("a: &x {b: &y [1], c: *y}\nd: *x\ne: &z no\nf: *z\n*z : 1", LIMITS) == {
        **{"a": {"b": [1], "c": [1]}, "d": {"b": [1], "c": [1]}, "e": "no", "f": "no", "no": 1},
    }
    laughs = "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]\n" for n in range(1, 30))
    assert "too large" in refused(file(tmp_path, f"openapi: 3.1.0\nx0: &x0 ha\n{laughs}"))


def test_words_that_readers_disagree_about_are_text() -> None:
    text = "{a: no, b: 2024-01-01, c: 12:30, d: 007, e: 0x1F, f: .5, g: +1, h: 1_000, i: .inf, j: =, k: <<, on: off}"
    read = yaml_text.loads(text, LIMITS)
    assert list(read.values()) == [
        *("no", "2024-01-01", "12:30", "007", "0x1F", ".5", "+1", "1_000", ".inf", "=", "<<", "off"),
    ]
    assert yaml_text.loads("{200: 1, true: 2, null: 3, a: ~, b: , c: True, d: -1.5e3, e: 'true'}", LIMITS) == {
        **{"200": 1, "true": 2, "null": 3, "a": None, "b": None, "c": True, "d": -1500.0, "e": "true"},
    }
    assert yaml_text.loads("a: |\n  one\n  two\nb: >-\n  one\n  two\n", LIMITS) == {"a": "one\ntwo\n", "b": "one two"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\na: 2\n", "line 2: duplicate key"),
        ('{a: 1, "a": 2}', "duplicate key"),
        ("a: [1]\nb: *x\n", "not YAML, line 2|names nothing"),
        ("a: &a [*a]", "names nothing that is complete"),
        ("a: &a {b: {c: *a}}", "names nothing that is complete"),
        ("a: &a {x: 1}\nb: {<<: *a}", "merge key"),
        ("&a [x]: 1", "a key is not a text"),
        ("a: !!python/object/apply:os.system [id]", "tags"),
        ("a: !!str 1", "tags"),
        ("a: ! 1", "tags"),
        ("? [a]\n: 1", "a key is not a text"),
        ("a: 1\n---\nb: 2\n", "exactly one"),
        ("", "exactly one"),
        ("a: [1", "not YAML, line"),
        ("a: b: c", "not YAML, line 1"),
        ("\tx: 1", "not YAML"),
        ("a: \x00", "not YAML"),
        ("[" * 65, "nest at most 64"),
        ("[" * 100_000, "nest at most 64|not YAML"),
        ("- " * 5_000, "nest at most 64"),
        ("{a: " * 100_000, "nest at most 64"),
        ("a: " + "1" * 5_000, "integer too long"),
        ("a: 1e999", "out of range"),
    ],
)
def test_yaml_that_means_more_than_json_is_refused_with_its_line(text: str, words: str) -> None:
    started = time.perf_counter()
    with pytest.raises(BadInput, match=words):
        yaml_text.loads(text, LIMITS)
    assert time.perf_counter() - started < 1


def test_where_the_extra_is_missing_the_error_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file(tmp_path, PETS)
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert "pip install 'toolwise[openapi]'" in refused(path)
    assert openapi_tools(file(tmp_path, json.dumps(WEATHER), "api.json"))


# Documents


def test_a_description_is_read_from_yaml_json_and_a_value_alike(tmp_path: Path) -> None:
    value = yaml_text.loads(PETS, LIMITS)
    from_yaml, from_json = file(tmp_path, PETS), file(tmp_path, json.dumps(value), "api.json")
    as_yaml = file(tmp_path, json.dumps(value), "json_in.yml")
    told = [
        [(each.name, each.parameters) for each in openapi_tools(source)]
        for source in (from_yaml, str(from_json), as_yaml, value)
    ]
    assert told[0] == told[1] == told[2] == told[3]
    assert [name for name, _ in told[0]] == ["listPets", "addPet", "getPet", "replacePet", "delete_pets_id", "hasPhoto"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("swagger: '2.0'\n", "Swagger 2: convert it"),
        ("openapi: 2.0\n", "3.0 and 3.1 are read"),
        ("openapi: 3.2.0\n", "3.0 and 3.1 are read"),
        ("openapi: [3.1.0]\n", "3.0 and 3.1 are read"),
        ("openapi: 3.1.0\njsonSchemaDialect: http://x.example/\n", "jsonSchemaDialect"),
        ("- 1\n", "no OpenAPI description"),
        ("openapi: 3.1.0\n", "exactly one server"),
        ("openapi: 3.1.0\nservers: [{url: https://a.example}]\n", "no operations"),
        ("openapi: 3.1.0\nservers: [{url: https://a.example}]\npaths: []\n", "paths are no object"),
        (b"openapi: 3.1.0 # \xff", "not UTF-8 at byte 17"),
        ("openapi: 3.1.0\nopenapi: 3.0.0\n", "duplicate key"),
    ],
)
def test_a_file_that_is_no_description_is_one_sentence(text: str | bytes, words: str, tmp_path: Path) -> None:
    assert words in refused(file(tmp_path, text))


def test_a_file_that_is_not_there_or_too_large_is_one_sentence(tmp_path: Path) -> None:
    assert "cannot be read" in refused(tmp_path / "none.yaml")
    assert "cannot be read" in refused(tmp_path)
    huge = file(tmp_path, PETS + "x-more: [" + "1, " * 3_400_000 + "1]\n")
    assert huge.stat().st_size > 10_000_000
    assert "more than 4194304 bytes" in refused(huge)
    assert "too large" in refused({**WEATHER, "x-more": ["x" * 1_000_000] * 5})


def test_json_is_as_strict_as_everywhere(tmp_path: Path) -> None:
    for text, words in (
        ('{"openapi": "3.1.0", "openapi": "3.0.0"}', "duplicate key"),
        ('{"openapi": ' + "[" * 100_000, "too deep"),
        ('{"openapi": NaN}', "not JSON"),
        ("openapi: 3.1.0", "not JSON"),
    ):
        assert words in refused(file(tmp_path, text, "api.json"))
    circle: dict[str, Any] = {**WEATHER}
    circle["x-me"] = circle
    assert "cycles" in refused(circle)


# References


@pytest.mark.case("H5")
@pytest.mark.parametrize(
    "reference",
    [
        *("http://169.254.169.254/latest/", "https://evil.example/api.json#/x", "file:///etc/passwd", "/etc/passwd"),
        *(
            "./common.yaml#/components",
            "common.yaml",
            "#/nothing",
            "#nothing",
            "//evil.example/x",
            "",
            7,
            None,
            ["#/x"],
        ),
    ],
)
def test_a_reference_leads_to_a_place_in_the_document_or_nowhere(
    reference: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("something was fetched"))
    monkeypatch.setattr("socket.getaddrinfo", lambda *_: pytest.fail("something was looked up"))
    content = {"application/json": {"schema": {"$ref": reference}}}
    for place in (
        {"parameters": [{"$ref": reference}]},
        {"parameters": [{"name": "a", "in": "query", "schema": {"items": {"$ref": reference}}}]},
        {"method": "post", "requestBody": {"$ref": reference}},
        {"method": "post", "requestBody": {"content": content}},
    ):
        said = refused(weather(**place))
        assert "op (" in said
        assert "evil" not in said
    item = {**WEATHER, "paths": {"/a": {"$ref": reference}}}
    assert '"/a" cannot be read' in refused(item)


@pytest.mark.case("H5")
def test_references_in_a_circle_are_refused() -> None:
    tree = {
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#/components/schemas/T"}}},
    }
    for schemas in (
        {"T": tree},
        {"T": {"$ref": "#/components/schemas/T"}},
        {"T": {"$ref": "#/components/schemas/U"}, "U": {"$ref": "#/components/schemas/T"}},
        {"T": {"allOf": [{"$ref": "#/components/schemas/%54"}]}},  # the same place, spelled otherwise
    ):
        content = {"application/json": {"schema": {"$ref": "#/components/schemas/T"}}}
        said = refused(weather(method="post", requestBody={"content": content}, parts={"schemas": schemas}))
        assert "back to itself" in said or "too deep" in said
    parameters = {"P": {"$ref": "#/components/parameters/P"}}
    assert "back to itself" in refused(
        weather(parameters=[{"$ref": "#/components/parameters/P"}], parts={"parameters": parameters})
    )


@pytest.mark.case("H5")
def test_references_that_multiply_and_schemas_that_are_deep_or_large_are_refused() -> None:
    doubled = {f"S{n}": {"anyOf": [{"$ref": f"#/components/schemas/S{n + 1}"}] * 2} for n in range(14)} | {"S14": {}}
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(25):
        deep = {"type": "array", "items": deep}
    for schema, schemas, words in (
        ({"$ref": "#/components/schemas/S0"}, doubled, "too large"),
        (deep, {}, "too deep"),
        ({"enum": ["x" * 70_000]}, {}, "too large"),
        ({"type": "string", "pattern": "(a+)+$"}, {}, "repeats a repetition"),
        ({"type": "object", "required": ["a"], "properties": {"a": False}, "not": {}}, {}, "forbids everything"),
    ):
        content = {"application/json": {"schema": schema}}
        assert words in refused(weather(method="post", requestBody={"content": content}, parts={"schemas": schemas}))


def test_what_is_not_used_is_never_looked_at() -> None:
    described = weather(
        responses={"200": {"$ref": "http://169.254.169.254/"}},
        callbacks={"x": {"$ref": "file:///etc/passwd"}},
        parts={"schemas": {"Broken": {"$ref": "#/components/schemas/Broken"}}},
    )
    assert [each.name for each in openapi_tools(described)] == ["op"]


# Whatever stands in it


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in inner for found in places(item, (*path, key)))]


@given(st.data(), VALUES | st.sampled_from([{"$ref": "#"}, {"$ref": "#/paths"}, [[]], [{}], {"type": [{}]}]))
def test_a_value_of_any_kind_in_any_place_makes_tools_or_one_refusal(data: st.DataObject, strange: Any) -> None:
    described = json.loads(json.dumps(data.draw(st.sampled_from([WEATHER, yaml_text.loads(PETS, LIMITS)]))))
    *path, last = data.draw(st.sampled_from(places(described)[1:]))
    inside = described
    for step in path:
        inside = inside[step]
    inside[last] = strange
    said = "made"
    try:
        assert openapi_tools(described)
    except BadInput as error:
        said = str(error)
    assert said.isprintable()
    assert len(said) < 2_000
