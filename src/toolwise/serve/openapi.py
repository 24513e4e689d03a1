"""The server's own description (OpenAPI 3.1): every path with what it takes, what it answers and how it refuses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from importlib import metadata
from typing import Any

from toolwise.serve import bodies
from toolwise.serve.bodies import COUNT, NULL, NUMBER, OBJECT, TEXT, Schema, either, listed, loose, one_of
from toolwise.serve.formats import APIS, COUNT_PATH, COUNTED, Api

Json = dict[str, Any]

_JSON, _EVENTS = "application/json", "text/event-stream"
_REFUSALS = {
    "400": "The request cannot be used, and the message says what of it.",
    "401": "The key is missing, or opens nothing here.",
    "403": "Another host was asked for, or another site asks.",
    "404": "No model has this name.",
    "408": "The request came too slowly.",
    "413": "The request is too large.",
    "415": "The request is no JSON.",
    "429": "What was given is used up.",
    "500": "Something failed here.",
    "503": "Too much is asked for at one time, or the model does not answer; Retry-After says when to come back.",
    "504": "The reply took too long.",
}
_KEYS = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    "x-goog-api-key": {"type": "apiKey", "in": "header", "name": "x-goog-api-key"},
    "key": {"type": "apiKey", "in": "query", "name": "key"},
}


def description(models: Sequence[str], *, keys: bool, tools: bool) -> Json:
    """`models` are the names that are served; `keys` says whether they are asked for, `tools` whether the server runs
    some itself."""
    made: Json = {
        "openapi": "3.1.0",
        "info": {
            "title": "Toolwise",
            "version": metadata.version("toolwise"),
            "description": "Chat APIs over one model, with tools.",
        },
        "paths": _looks(models)
        | dict(_counts(models))
        | {p: item for api in APIS for p, item in _asks(api, models, tools)},
    }
    if keys:
        made["components"] = {"securitySchemes": _KEYS}
        made["security"] = [{name: []} for name in _KEYS]
    return made


def _asks(api: Api, models: Sequence[str], tools: bool) -> list[tuple[str, Json]]:
    """The paths of one format."""
    named = one_of(*models)
    asked = _REQUESTS[api.name](named)
    told: list[tuple[str, Json]] = []
    for path in api.paths:
        reply: Json = {_JSON: {"schema": _REPLIES[api.name]}}
        parameters: list[Json] = []
        if "{model:path}" in path:
            parameters.append({"name": "model", "in": "path", "required": True, "schema": named})
        if path.endswith(":streamGenerateContent"):
            reply[_JSON] = {"schema": listed(either(_PIECE, _ERRORS["gemini"]))}
            parameters.append({"name": "alt", "in": "query", "schema": one_of("sse", "json")})
        if not path.endswith(":generateContent"):
            reply[_EVENTS] = {"schema": loose({"data": TEXT}, {"event": TEXT})}  # of each event
        if tools:
            key: Json = {"type": "string", "maxLength": 252, "pattern": "^[!-~]*$"}
            parameters.append({"name": "Idempotency-Key", "in": "header", "schema": key})
        told.append(
            (
                path.replace("{model:path}", "{model}"),
                {
                    "post": {
                        "summary": "One turn of the model, whole or as a stream.",
                        "operationId": path.strip("/").replace("{model:path}:", "").replace("/", "_"),
                        "parameters": parameters,
                        "requestBody": {"required": True, "content": {_JSON: {"schema": asked}}},
                        "responses": {"200": {"description": "The turn.", "content": reply}} | _refusals(api.name),
                    }
                },
            )
        )
    return told


def _counts(models: Sequence[str]) -> Iterator[tuple[str, Json]]:
    asked = bodies.messages(one_of(*models))
    asked["required"] = [name for name in asked["required"] if name != "max_tokens"]
    reply = {"200": {"description": "It.", "content": {_JSON: {"schema": loose({"input_tokens": COUNT})}}}}
    body = {"required": True, "content": {_JSON: {"schema": asked}}}
    told = {"summary": "How many tokens a request has.", "requestBody": body}
    yield COUNT_PATH, {"post": told | {"responses": reply | _refusals(COUNTED.name)}}


def _looks(models: Sequence[str]) -> Json:
    """What is only looked at."""
    named = [{"name": "model", "in": "path", "required": True, "schema": one_of(*models)}]
    model = loose(
        {"id": TEXT, "object": one_of("model"), "created": COUNT, "owned_by": TEXT}
        | {"type": one_of("model"), "display_name": TEXT, "created_at": TEXT}
        | {"name": TEXT, "displayName": TEXT, "supportedGenerationMethods": listed(TEXT)}
    )
    every = loose({"object": one_of("list"), "data": listed(model), "models": listed(model), "has_more": one_of(False)})
    health = loose({"status": one_of("ok")})
    paths: Json = {
        "/health": _look("Whether the server lives.", _JSON, health, "chat", codes=("403",)),
        "/metrics": _look("What it counts, for Prometheus.", "text/plain", TEXT, "chat", codes=("401", "403")),
        "/openapi.json": _look("This description.", _JSON, OBJECT, "chat", codes=("401", "403")),
    }
    for version, api in (("v1", "chat"), ("v1beta", "gemini")):
        codes = ("400", "401", "403", "404")
        paths[f"/{version}/models"] = _look("The models that are served.", _JSON, every, api, codes=codes)
        paths[f"/{version}/models/{{model}}"] = _look("One of them.", _JSON, model, api, named, codes)
    paths["/health"]["get"]["security"] = []
    return paths


def _look(
    summary: str, kind: str, schema: Schema, api: str, parameters: Sequence[Json] = (), codes: Collection[str] = ()
) -> Json:
    answer = {"200": {"description": "It.", "content": {kind: {"schema": schema}}}}
    return {
        "get": {"summary": summary, "parameters": list(parameters), "responses": answer | _refusals(api, codes)},
    }


def _refusals(api: str, codes: Collection[str] | None = None) -> Json:
    content = {_JSON: {"schema": _ERRORS[api]}}
    listed_ = {code: told for code, told in _REFUSALS.items() if codes is None or code in codes}
    return {code: {"description": told, "content": content} for code, told in listed_.items()}


_OPENAI_ERROR = loose(
    {"error": loose({"message": TEXT, "type": TEXT, "param": either(TEXT, NULL), "code": either(TEXT, NULL)})}
)
_ERRORS: dict[str, Schema] = {
    "chat": _OPENAI_ERROR,
    "responses": _OPENAI_ERROR,
    "messages": loose({"type": one_of("error"), "error": loose({"type": TEXT, "message": TEXT})}),
    "gemini": loose({"error": loose({"code": COUNT, "message": TEXT, "status": TEXT})}),
}
_REQUESTS: dict[str, Callable[[Schema], Schema]] = {
    "chat": bodies.chat,
    "responses": bodies.responses,
    "messages": bodies.messages,
    "gemini": lambda model: bodies.gemini(),  # whose path names the model
}
_USAGE = loose({"input_tokens": COUNT, "output_tokens": COUNT})
_CALL = loose({"id": TEXT, "type": one_of("function"), "function": loose({"name": TEXT, "arguments": TEXT})})
_CHOICE = loose(
    {
        "index": COUNT,
        "message": loose({"role": one_of("assistant"), "content": either(TEXT, NULL)}, {"tool_calls": listed(_CALL)}),
        "finish_reason": one_of("stop", "length", "tool_calls", "content_filter"),
    }
)
_CANDIDATE = loose({"content": loose({"role": one_of("model"), "parts": listed(OBJECT)})})
_PIECE = loose({"candidates": listed(_CANDIDATE, 1, 1), "modelVersion": TEXT})  # of a stream; only the last has usage
_REPLIES: dict[str, Schema] = {
    "chat": loose(
        {"id": TEXT, "object": one_of("chat.completion"), "created": COUNT, "model": TEXT}
        | {"choices": listed(_CHOICE, 1, 1), "usage": loose({"prompt_tokens": COUNT, "completion_tokens": COUNT})}
    ),
    "responses": loose(
        {"id": TEXT, "object": one_of("response"), "created_at": NUMBER, "model": TEXT, "usage": _USAGE}
        | {"status": one_of("completed", "incomplete"), "output": listed(loose({"type": TEXT, "id": TEXT}))}
    ),
    "messages": loose(
        {"id": TEXT, "type": one_of("message"), "role": one_of("assistant"), "model": TEXT, "usage": _USAGE}
        | {"content": listed(loose({"type": one_of("text", "tool_use")})), "stop_reason": TEXT}
    ),
    "gemini": loose({**_PIECE["properties"], "usageMetadata": OBJECT}),
}
