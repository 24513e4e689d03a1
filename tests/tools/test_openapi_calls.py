"""Calls of operations: a real server receives exactly the arguments, each in its place, or nothing at all."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from loopback_site import site
from openapi_descriptions import PETS, WEATHER, weather
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from recording_api import RecordingApi, recording_api
from toolwise.core.errors import (
    DeadlineExceeded,
    InvalidArguments,
    LimitExceeded,
    OutcomeUnknown,
    ToolFailed,
    ToolUnavailable,
    ToolwiseError,
)
from toolwise.core.jsonio import printable
from toolwise.core.limits import LIMITS
from toolwise.core.schema import Validator
from toolwise.core.types import Tool
from toolwise.tools.openapi import openapi_tools, yaml_text

# What a call's arguments may hold: no half characters and no NUL, which the gate refuses
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
WORD = st.text(st.characters(min_codepoint=0x21, exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
SCALARS = TEXT | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(SCALARS | st.none(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner))
MANY = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def api() -> Iterator[RecordingApi]:
    with recording_api() as made:
        yield made


def tool(api: RecordingApi, *parameters: dict[str, Any], url: str = "", **operation: Any) -> Tool:
    """A tool with these parameters, whose schema takes anything where they do not say otherwise."""
    options = {name: operation.pop(name) for name in ("slashes", "effects", "limits") if name in operation}
    listed = [{"schema": {}, "required": each.get("in") == "path", **each} for each in parameters]
    (made,) = openapi_tools(weather(parameters=listed, **operation), base_url=url or api.url, **options)
    return made


def run(tool: Tool, **arguments: Any) -> Any:
    """What the gate does with the arguments before it runs a tool, and the run."""
    return tool.run(**Validator(tool.parameters).validate(arguments))


def written(value: Any) -> str:
    """A scalar as a server reads it, by the slow road."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value == int(value) and abs(value) < 2**53:
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value)


# Arguments arrive


@MANY
@given(value=WORD | st.integers() | st.booleans())
def test_a_path_argument_arrives_exactly_and_in_its_segment(api: RecordingApi, value: Any) -> None:
    made = tool(api, {"name": "id", "in": "path"}, path="/a/{id}/b")
    before = len(api.received)
    try:
        run(made, id=value)
    except InvalidArguments:
        assert len(api.received) == before
        decoded = unquote(unquote(unquote(str(value))))
        assert decoded in (".", "..") or set(decoded) & set("/\\") or any(ord(c) < 32 or ord(c) == 127 for c in decoded)
        return
    first, second, segment, last = api.last.path.split("/")
    assert (first, second, last, unquote(segment)) == ("", "a", "b", written(value))
    assert api.last.query == ""


@pytest.mark.parametrize(
    "value",
    [
        *(
            "..",
            ".",
            "%2e%2e",
            "%2E.",
            "%252e%252e",
            "../admin",
            "..%2fadmin",
            "..%252fadmin",
            "a/b",
            "a\\b",
            "/",
            "a%2Fb",
        ),
        *("..;", "..;x=1", "%2e%2e%3b", ".;"),
        *("a%5cb", "%" + "25" * 40 + "2e", "", "a\nb", "a%0d%0aX: y", "a\x7f", "%00"),
    ],
)
def test_a_path_argument_that_could_leave_its_segment_is_refused(api: RecordingApi, value: str) -> None:
    before = len(api.received)
    with pytest.raises(InvalidArguments):
        run(tool(api, {"name": "id", "in": "path"}, path="/a/{id}"), id=value)
    assert len(api.received) == before


@pytest.mark.parametrize(
    "value", ["?admin=1", "#x", ";v=1", "a b", "a+b", "50%", "%zz", "ä/", "@evil.example", "...", "{id}"]
)
def test_what_means_something_in_an_address_means_nothing_in_an_argument(api: RecordingApi, value: str) -> None:
    run(tool(api, {"name": "id", "in": "path"}, path="/a/{id}", slashes=True), id=value)
    assert api.last.path.startswith("/a/")
    assert "/" not in api.last.path[3:]
    assert (unquote(api.last.path[3:]), api.last.query) == (value, "")


def test_slashes_stay_encoded_where_the_operator_allows_them_and_lead_nowhere(api: RecordingApi) -> None:
    made = tool(api, {"name": "id", "in": "path"}, path="/a/{id}/b", slashes=True)
    run(made, id="10.1000/xyz")
    assert api.last.path == "/a/10.1000%2Fxyz/b"
    for value in ("../x", "a/../b", "a%2f..%2fb", "a\\..", "/.", "./"):
        with pytest.raises(InvalidArguments):
            run(made, id=value)


def test_two_arguments_of_one_segment_make_no_dots_together(api: RecordingApi) -> None:
    parts = [{"name": name, "in": "path"} for name in "ab"]
    made = tool(api, *parts, path="/x/{a}{b}/y")
    run(made, a="1", b="2")
    assert api.last.path == "/x/12/y"
    with pytest.raises(InvalidArguments, match="another path"):
        run(made, a=".", b=".")
    with pytest.raises(InvalidArguments, match="another path"):
        run(made, a="%2", b="e")
    run(tool(api, *parts, path="/{a}.{b}"), a="x", b="json")
    assert api.last.path == "/x.json"


@MANY
@given(one=TEXT, many=st.lists(SCALARS, min_size=1, max_size=5), name=WORD)
def test_query_arguments_arrive_exactly(api: RecordingApi, one: str, many: list[Any], name: str) -> None:
    assume(name not in ("one", "deep") and printable(name) == name)
    made = tool(
        api,
        {"name": "one", "in": "query"},
        {"name": name, "in": "query"},
        {"name": "deep", "in": "query", "style": "deepObject"},
    )
    run(made, **{"one": one, name: many, "deep": {"a": one, "b c": 1.5}})
    assert parse_qsl(api.last.query, keep_blank_values=True, strict_parsing=True) == [
        ("one", one),
        *((name, written(item)) for item in many),
        ("deep[a]", one),
        ("deep[b c]", "1.5"),
    ]


@MANY
@given(many=st.lists(TEXT, min_size=1, max_size=4), style=st.sampled_from(["form", "spaceDelimited", "pipeDelimited"]))
def test_a_delimited_list_arrives_exactly_however_a_server_takes_it_apart(
    api: RecordingApi, many: list[str], style: str
) -> None:
    delimiter = {"form": ",", "spaceDelimited": " ", "pipeDelimited": "|"}[style]
    made = tool(api, {"name": "n", "in": "query", "style": style, "explode": False})
    if any(delimiter in item for item in many):
        with pytest.raises(InvalidArguments, match="out of its items"):
            run(made, n=many)
        return
    run(made, n=many)
    name, _, value = api.last.query.partition("=")
    assert (name, unquote(value).split(delimiter)) == ("n", many)


@MANY
@given(value=VALUES)
def test_a_parameter_with_json_inside_arrives_exactly(api: RecordingApi, value: Any) -> None:
    run(tool(api, {"name": "q", "in": "query", "content": {"application/json": {"schema": {}}}}), q=value)
    ((name, text),) = parse_qsl(api.last.query, keep_blank_values=True)
    assert (name, json.loads(text)) == ("q", value)


@MANY
@given(value=VALUES)
def test_a_body_arrives_exactly(api: RecordingApi, value: Any) -> None:
    content = {"application/json": {"schema": {}}}
    run(tool(api, method="post", requestBody={"required": True, "content": content}), body=value)
    assert json.loads(api.last.body) == value
    assert api.last.headers["content-type"] == "application/json"
    assert int(api.last.headers["content-length"]) == len(api.last.body)


@MANY
@given(value=TEXT)
def test_a_header_arrives_exactly_or_is_refused(api: RecordingApi, value: str) -> None:
    made = tool(api, {"name": "X-Note", "in": "header"})
    try:
        run(made, **{"X-Note": value})
    except InvalidArguments:
        assert not value.strip() or value != value.strip() or not value.isascii() or not value.isprintable()
        return
    assert api.last.headers["x-note"] == value


@pytest.mark.parametrize(
    "value", ["a\r\nX-Admin: 1", "a\nb", "a\r", "\r\n\r\nGET /admin HTTP/1.1", "a\x85b", "a\u2028b"]
)
def test_a_header_argument_is_one_line(api: RecordingApi, value: str) -> None:
    before = len(api.received)
    for sent in (value, [value, "b"]):
        with pytest.raises(InvalidArguments, match="one line"):
            run(tool(api, {"name": "X-Note", "in": "header"}), **{"X-Note": sent})
    assert len(api.received) == before


def test_what_no_style_can_write_is_refused_by_its_name(api: RecordingApi) -> None:
    for place, style, value in (
        ("query", "form", {"a": 1}),
        ("query", "form", [[1]]),
        ("query", "form", [None]),
        ("query", "deepObject", [1]),
        ("query", "deepObject", {"a": {"b": 1}}),
        ("query", "deepObject", {"a][b": 1}),
        ("header", "simple", {"a": 1}),
        ("header", "simple", ["a,b"]),
        ("path", "simple", ["a,b"]),
        ("path", "simple", []),
        ("path", "simple", None),
        ("path", "simple", {}),
    ):
        made = tool(api, {"name": "n", "in": place, "style": style}, path="/{n}" if place == "path" else "/x")
        with pytest.raises(InvalidArguments, match='argument "n"'):
            run(made, n=value)


def test_null_and_an_empty_list_are_left_out_where_they_may_be(api: RecordingApi) -> None:
    made = tool(api, {"name": "a", "in": "query"}, {"name": "X-B", "in": "header"})
    for value in (None, []):
        run(made, **{"a": value, "X-B": value})
        assert (api.last.query, "x-b" in api.last.headers) == ("", False)
        with pytest.raises(InvalidArguments, match='argument "a"'):
            run(tool(api, {"name": "a", "in": "query", "required": True}), a=value)


def test_an_address_that_grows_too_long_is_refused(api: RecordingApi) -> None:
    before = len(api.received)
    for place in ("query", "path"):
        made = tool(api, {"name": "n", "in": place}, path="/{n}" if place == "path" else "/x")
        with pytest.raises(InvalidArguments, match=r"longer than 8192|control characters"):
            run(made, n="%25" * 3_000)
    assert len(api.received) == before


def test_the_arguments_of_the_pet_shop_go_to_their_places(api: RecordingApi) -> None:
    pets = {each.name: each for each in openapi_tools(yaml_text.loads(PETS, LIMITS), base_url=f"{api.url}/v1/")}
    run(
        pets["listPets"], limit=5, tags=["a,b", "c"], kinds=["x", "y"], sold=None, filter={"age": 3}, **{"X-Trace": "t"}
    )
    assert (api.last.method, api.last.path) == ("GET", "/v1/pets")
    assert api.last.query == "limit=5&tags=a%2Cb&tags=c&kinds=x,y&filter%5Bage%5D=3"
    assert (api.last.headers["x-trace"], api.last.body) == ("t", b"")
    run(pets["replacePet"], path_id=7, body_id=8, name="Rex")
    assert (api.last.method, api.last.path, json.loads(api.last.body)) == (
        "PUT",
        "/v1/pets/7",
        {"id": 8, "name": "Rex"},
    )
    assert run(pets["hasPhoto"], shop="a b", id="7") == "status 200, no content"
    assert (api.last.method, api.last.path) == ("HEAD", "/v1/shops/a%20b/pets/7/photo")
    with pytest.raises(InvalidArguments, match="unknown argument"):
        run(pets["getPet"], id=7, verbose=True)


def test_a_body_that_is_left_out_is_none_and_one_that_is_needed_may_be_empty(api: RecordingApi) -> None:
    content = {"application/json": {"schema": {"type": "object", "properties": {"a": {}, "b": {}}}}}
    optional = tool(api, method="post", requestBody={"content": content})
    needed = tool(api, method="post", requestBody={"content": content, "required": True})
    run(optional)
    assert (api.last.body, "content-type" in api.last.headers) == (b"", False)
    run(optional, b=None)
    assert json.loads(api.last.body) == {"b": None}
    run(needed)
    assert json.loads(api.last.body) == {}


# Answers


def test_json_comes_back_compact_and_other_text_as_it_is(api: RecordingApi) -> None:
    made = tool(api, path="/answer")
    for answer, text in (
        ({"b": [1, 2], "a": None}, '{"a":null,"b":[1,2]}'),
        (PlainTextResponse("hej\nå"), "hej\nå"),
        (Response(b"caf\xe9", media_type="text/plain; charset=ISO-8859-1"), "café"),
        (Response(b"bad \xff", media_type="text/plain; charset=nonsense"), "bad \ufffd"),
        (Response(b'{"a":1,"a":2}', media_type="application/json"), '{"a":1,"a":2}'),
        (Response(b"<x/>", media_type="application/atom+xml"), "<x/>"),
        (Response(b"\x89PNG\r\n", media_type="image/png"), "image/png of 6 bytes, which is no text"),
        (Response(b"", 204), "status 204, no content"),
        (Response(b"", 304), "status 304, no content"),
    ):
        api.answers["GET /answer"] = answer
        assert run(made) == text


def test_a_refusal_of_the_server_is_a_failure_with_its_status_and_first_line(api: RecordingApi) -> None:
    made = tool(api, path="/fail")
    for answer, said in (
        (PlainTextResponse("no such pet\nTraceback: secret", 404), "The server answered 404: no such pet"),
        (Response(b'{\n "code": 1\n}', 400, media_type="application/json"), 'The server answered 400: {"code":1}'),
        (Response("<!DOCTYPE html><p>ignore all", 500, media_type="text/html"), "The server answered 500"),
        (PlainTextResponse("", 403), "The server answered 403"),
        (PlainTextResponse("\x1b[2J\u202e", 418), "The server answered 418: \\u001b[2J\\u202e"),
    ):
        api.answers["GET /fail"] = answer
        with pytest.raises(ToolFailed) as failed:
            run(made)
        assert str(failed.value) == said
    api.answers["GET /fail"] = PlainTextResponse("x" * 100_000, 400)
    with pytest.raises(ToolFailed) as failed:
        run(made)
    assert len(str(failed.value)) < 300


@pytest.mark.parametrize("method", ["get", "post", "put"])
def test_what_a_status_means_depends_on_whether_the_request_may_be_repeated(api: RecordingApi, method: str) -> None:
    made = tool(api, path="/status", method=method)
    for status, kinds in {
        400: (ToolFailed, ToolFailed, ToolFailed),
        429: (ToolUnavailable, ToolUnavailable, ToolUnavailable),
        500: (ToolFailed, ToolFailed, ToolFailed),
        502: (ToolUnavailable, OutcomeUnknown, ToolUnavailable),
        503: (ToolUnavailable, ToolUnavailable, ToolUnavailable),
        504: (ToolUnavailable, OutcomeUnknown, ToolUnavailable),
    }.items():
        api.answers[f"{method.upper()} /status"] = PlainTextResponse("x", status)
        with pytest.raises(kinds[["get", "post", "put"].index(method)], match=str(status)):
            run(made)


def test_a_redirect_is_followed_by_what_looks_and_never_by_what_changes(api: RecordingApi) -> None:
    for status, kind in ((302, OutcomeUnknown), (307, ToolFailed)):
        api.answers |= {f"{method} /moved": RedirectResponse("/there", status) for method in ("GET", "POST", "PUT")}
        run(tool(api, path="/moved"))
        assert api.last.path == "/there"
        for method, expected in (("post", kind), ("put", ToolFailed)):
            with pytest.raises(expected, match=str(status)):
                run(tool(api, path="/moved", method=method))
            assert api.last.path == "/moved"


def lost(made: Tool, **arguments: Any) -> type[ToolwiseError]:
    with pytest.raises(ToolwiseError) as caught:
        run(made, **arguments)
    return type(caught.value)


def test_a_request_that_may_have_had_its_effect_is_not_said_to_have_failed(api: RecordingApi) -> None:
    small = replace(LIMITS, response_bytes=100, fetch_seconds=0.3)
    long = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 200
    over = threading.Event()

    def silent() -> Iterator[bytes]:
        over.wait(5)
        yield b""

    with site(broken=b"nonsense", long=long, silent=silent) as there:
        for path, looked in (("/broken", ToolFailed), ("/long", LimitExceeded), ("/silent", DeadlineExceeded)):
            kinds = [lost(tool(api, url=there.url, path=path, method=m, limits=small)) for m in ("get", "post", "put")]
            again = OutcomeUnknown if path == "/long" else ToolUnavailable
            assert kinds == [looked, OutcomeUnknown, again], path
        read = tool(api, url=there.url, path="/broken", method="post", limits=small, effects="op=read")
        assert lost(read) is ToolFailed
        over.set()
    assert lost(tool(api, url=there.url, method="post")) is ToolFailed  # nobody is there: nothing was sent


def test_the_weather_takes_its_arguments(api: RecordingApi) -> None:
    found = {each.name: each for each in openapi_tools(WEATHER, base_url=api.url)}
    arguments = {"place": "São Tomé", "days": 2, "at": {"lat": 0.3}, "between": ["6h", "9h"], "Accept-Language": "pt"}
    run(found["forecast.forPlace"], **arguments)
    assert api.last.path == "/places/S%C3%A3o%20Tom%C3%A9/forecast"
    assert api.last.query == "days=2&at=%7B%22lat%22%3A0.3%7D&between=6h%7C9h"
    assert api.last.headers["accept-language"] == "pt"
    run(found["search_reports"], body=[1])
    assert api.last.headers["content-type"] == "application/vnd.weather+json; charset=utf-8"
    run(found["patch_reports"])
    assert (api.last.method, api.last.headers["content-length"]) == ("PATCH", "0")
