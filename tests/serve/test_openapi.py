"""The server's description of itself: what does not fit it is refused, and every answer fits it."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from itertools import islice
from typing import Any

import jsonschema_rs
import pytest
from api_server import ADD, Served, serving

from toolwise.core import jsonio
from toolwise.serve.formats import APIS
from toolwise.serve.openapi import description

#: Every so many of the bodies are tried; TOOLWISE_EXAMPLES has all of them tried.
STEP = 1 if "TOOLWISE_EXAMPLES" in os.environ else 11
ODD: list[Any] = [None, True, 0, -1, 1.5, 10**30, "", "odd", [], [None], ["odd"], {}, {"odd": 1}, [[]]]
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "model": "scripted",
        "messages": [
            {"role": "system", "content": "Be brief.", "name": "s"},
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "3"},
        ],
        "tools": [{"type": "function", "function": {"name": "add", "parameters": ADD, "strict": True}}],
        "tool_choice": {"type": "function", "function": {"name": "add"}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}},
        "parallel_tool_calls": False,
        **{"max_tokens": 9, "temperature": 1, "top_p": 0.5, "seed": 7, "stop": ["a"], "n": 1, "stream": False},
    },
    "/v1/responses": {
        "model": "scripted",
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "3"},
        ],
        "tools": [{"type": "function", "name": "add", "parameters": ADD, "strict": True}],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "add"}]},
        "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}}},
        **{"max_output_tokens": 9, "temperature": 1, "top_p": 0.5, "store": False, "truncation": "auto"},
    },
    "/v1/messages": {
        "model": "scripted",
        "max_tokens": 9,
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "3"}]},
        ],
        "tools": [{"name": "add", "description": "Adds.", "input_schema": ADD, "strict": True}],
        "tool_choice": {"type": "tool", "name": "add", "disable_parallel_tool_use": True},
        "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
        "output_format": {"type": "json_schema", "schema": {"type": "object"}},
        **{"temperature": 1, "top_p": 0.5, "stop_sequences": ["a"], "stream": False, "metadata": {"user_id": "x"}},
    },
    "/v1beta/models/scripted:generateContent": {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "add", "args": {"a": 1}}}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "add", "response": {"output": "3"}}}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "add", "parametersJsonSchema": ADD}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["add"]}},
        "generationConfig": {"maxOutputTokens": 9, "temperature": 1, "topP": 0.5, "stopSequences": ["a"], "seed": 7},
    },
}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as made:
        yield made


@pytest.fixture(scope="module")
def described(served: Served) -> dict[str, Any]:
    told: dict[str, Any] = served.get("/openapi.json").json()
    return told


def spoilt(value: Any) -> Iterator[Any]:
    """The value with one thing in it that is odd, that is missing, or that is too much."""
    yield from ODD
    if isinstance(value, dict):
        yield value | {"unknown": 1}
        for key in value:
            yield {name: part for name, part in value.items() if name != key}
            for odd in spoilt(value[key]):
                yield value | {key: odd}
    if isinstance(value, list):
        for place, part in enumerate(value):
            yield value[:place] + value[place + 1 :]
            for odd in spoilt(part):
                yield [*value[:place], odd, *value[place + 1 :]]


def test_every_path_is_described(described: dict[str, Any]) -> None:
    asked = {path.replace("{model:path}", "{model}") for api in APIS for path in api.paths}
    assert asked <= set(described["paths"])
    assert {"/v1/models", "/v1beta/models", "/health", "/metrics", "/openapi.json"} <= set(described["paths"])


def test_keys_and_the_servers_tools_are_described_where_there_are_any(described: dict[str, Any]) -> None:
    assert "security" not in described
    told = description(["a"], keys=True, tools=True)
    assert len(told["security"]) == 4
    assert told["paths"]["/health"]["get"]["security"] == []
    assert "Idempotency-Key" in str(told["paths"]["/v1/messages"])


@pytest.mark.case("L5")
@pytest.mark.parametrize("path", BODIES)
def test_what_does_not_fit_the_description_is_refused_and_every_answer_fits_it(
    path: str, served: Served, described: dict[str, Any]
) -> None:
    operation = described["paths"][path.replace("scripted", "{model}")]["post"]
    asked = jsonschema_rs.validator_for(operation["requestBody"]["content"]["application/json"]["schema"])
    answers = {
        code: jsonschema_rs.validator_for(told["content"]["application/json"]["schema"])
        for code, told in operation["responses"].items()
    }
    whole = BODIES[path]
    assert asked.is_valid(whole)
    tried = refused = 0
    with served.http() as client:
        assert client.post(path, json=whole).status_code == 200
        for body in islice(spoilt(copy.deepcopy(whole)), 0, None, STEP):
            if isinstance(body, dict) and body.get("stream") not in (None, False):
                continue
            answer = client.post(path, content=jsonio.dumps(body), headers={"content-type": "application/json"})
            status, fits = answer.status_code, asked.is_valid(body)
            assert status in ((200, 400) if fits else (400, 404)), (status, body, answer.text)
            answers[str(status)].validate(answer.json())
            tried, refused = tried + 1, refused + (not fits)
    assert refused > tried / 3
    assert tried > 300 / STEP


@pytest.mark.parametrize("path", BODIES)
def test_a_whole_number_is_an_integer_however_it_is_written(path: str, served: Served) -> None:
    config = BODIES[path].get("generationConfig", BODIES[path])
    (field,) = (name for name in config if name.lower().startswith("max"))
    told = config | {field: 9.0}
    body = told if config is BODIES[path] else BODIES[path] | {"generationConfig": told}
    assert served.post(path, body).status_code == 200
