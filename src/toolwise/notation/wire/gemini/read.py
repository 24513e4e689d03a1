"""A request of the Gemini API -> a ChatRequest. The model, and whether to stream, its path says.

What is refused by name: pictures, sounds and files; several candidates; log-probabilities; tools that the API runs
itself; cached contents; whatever is not known. What is left changes no answer: labels, safety settings (there is no
filter here that they could set), thoughts and how long to think.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

from toolwise.core.chat import ChatCall, ChatRequest, Message, OutputSchema, Role, ToolChoice, ToolSpec
from toolwise.core.limits import LIMITS, Limits
from toolwise.notation.wire.calls import text_of
from toolwise.notation.wire.fields import Field, check_choice, check_tools
from toolwise.notation.wire.gemini.names import camel
from toolwise.notation.wire.gemini.results import read_result
from toolwise.notation.wire.gemini.schema import json_schema
from toolwise.notation.wire.history import paired

_READ = frozenset({"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "model"})
_LEFT = frozenset({"safetySettings", "labels", "serviceTier", "store"})
_CONFIG = frozenset(
    {"maxOutputTokens", "temperature", "topP", "seed", "stopSequences", "candidateCount", "responseMimeType"}
    | {"responseSchema", "responseJsonSchema", "_responseJsonSchema", "responseModalities"}
    | {"presencePenalty", "frequencyPenalty", "responseLogprobs"}
)
_CONFIG_LEFT = frozenset({"thinkingConfig", "mediaResolution", "enableEnhancedCivicAnswers"})
_PART = frozenset({"text", "functionCall", "functionResponse", "thought"})
_PART_LEFT = frozenset({"thoughtSignature", "partMetadata"})


def read_request(body: Any, limits: Limits = LIMITS) -> ChatRequest:
    """Raises BadInput, naming the field."""
    request = camel(Field(body))
    request.check_keys(_READ, _LEFT)
    config = camel(request["generationConfig"])
    config = Field({}, "generationConfig") if config.absent else config
    config.check_keys(_CONFIG, _CONFIG_LEFT)
    _check_neutral(config)
    choice, tools = _read_choice(camel(request["toolConfig"]), _read_tools(request["tools"]))
    return ChatRequest(
        _read_contents(request),
        model=request["model"].text("").removeprefix("models/"),
        tools=tools,
        choice=choice,
        output=_read_output(config),
        max_tokens=config["maxOutputTokens"].integer(1),
        temperature=config["temperature"].number(0, limits.temperature),
        top_p=config["topP"].number(0, 1),
        seed=config["seed"].integer(),
        stop=config["stopSequences"].stop_strings(limits),
    )


def _check_neutral(config: Field) -> None:
    """Options that are read only to see that they ask for nothing."""
    if config["candidateCount"].integer() not in (None, 1):
        raise config["candidateCount"].refused("send 1; an answer is one candidate")
    for name in ("presencePenalty", "frequencyPenalty"):
        if config[name].number():
            raise config[name].refused("is not supported; leave it out")
    if config["responseLogprobs"].flag():
        raise config["responseLogprobs"].refused("is not supported; leave it out")
    for item in config["responseModalities"].items():
        item.one_of("TEXT")


def _read_output(config: Field) -> OutputSchema | None:
    plain = [config[name] for name in ("responseJsonSchema", "_responseJsonSchema") if not config[name].absent]
    wants_json = not config["responseMimeType"].absent and (
        config["responseMimeType"].one_of("text/plain", "application/json") == "application/json"
    )
    if plain:
        return OutputSchema(dict(plain[0].object()))
    if not config["responseSchema"].absent:
        return OutputSchema(json_schema(config["responseSchema"]))
    return OutputSchema() if wants_json else None


# Tools


def _read_tools(places: Field) -> tuple[ToolSpec, ...]:
    tools: list[ToolSpec] = []
    declared: list[Any] = []
    for item in places.items():
        place = camel(item)
        place.check_keys({"functionDeclarations"})
        for declaration in place["functionDeclarations"].items():
            tools.append(_read_tool(camel(declaration)))
            declared.append(declaration.value)
    check_tools(tools, Field(declared, "tools.functionDeclarations"))
    return tuple(tools)


def _read_tool(place: Field) -> ToolSpec:
    place.check_keys(
        {"name", "description", "parameters", "parametersJsonSchema", "behavior"}, {"response", "responseJsonSchema"}
    )
    if not place["behavior"].absent:
        place["behavior"].one_of("BLOCKING", "UNSPECIFIED")
    own, plain = place["parameters"], place["parametersJsonSchema"]
    if not own.absent and not plain.absent:
        raise plain.refused("stands beside parameters; send one of them")
    schema = plain if own.absent else Field(json_schema(own), own.path)
    return ToolSpec(place["name"].tool_name(), place["description"].text(""), schema.tool_schema())


def _read_choice(config: Field, tools: tuple[ToolSpec, ...]) -> tuple[ToolChoice, tuple[ToolSpec, ...]]:
    """`ANY` and `VALIDATED` promise that calls fit their schemas: then the tools are strict."""
    if config.absent:
        return ToolChoice(), tools
    config.check_keys({"functionCallingConfig"}, {"retrievalConfig", "includeServerSideToolInvocations"})
    calling = camel(config["functionCallingConfig"])
    if calling.absent:
        return ToolChoice(), tools
    calling.check_keys({"mode", "allowedFunctionNames"}, {"streamFunctionCallArguments"})
    mode = Field(calling["mode"].text("AUTO").upper(), calling["mode"].path)
    word = mode.one_of("AUTO", "ANY", "NONE", "VALIDATED", "MODE_UNSPECIFIED")
    names = tuple(item.text() for item in calling["allowedFunctionNames"].items())
    if word not in ("ANY", "VALIDATED"):
        if names:
            raise calling["allowedFunctionNames"].refused('goes with the mode "ANY" or "VALIDATED" only')
        return ToolChoice("none" if word == "NONE" else "auto"), tools
    choice = ToolChoice("required" if word == "ANY" else "auto", names)
    place = calling["allowedFunctionNames" if names else "mode"]
    return check_choice(choice, tools, place), tuple(replace(tool, strict=True) for tool in tools)


# Contents


def _read_contents(request: Field) -> tuple[Message, ...]:
    messages: list[Message] = []
    places: list[str] = []
    system = request["systemInstruction"]
    if not system.absent:
        parts = [camel(part) for part in camel(system)["parts"].items()]
        messages.append(Message(Role.SYSTEM, "".join(_text(part) for part in parts)))
        places.append(system.path)
    contents = [camel(item) for item in request["contents"].items()]
    for content in contents:
        content.check_keys({"role", "parts"})
        role = content["role"].text("user")
        parts = [camel(part) for part in content["parts"].items()]
        if Field(role, content["role"].path).one_of("user", "model", "function") == "model":
            _add_turn(messages, places, content, parts)
            continue
        for message in _read_user(parts, messages):
            messages.append(message)
            places.append(content.path)
    if not any(message.role is not Role.SYSTEM for message in messages):
        raise request["contents"].refused("send at least one content, with parts")
    if messages[-1].role is Role.ASSISTANT and not messages[-1].calls:
        raise contents[-1]["role"].refused('end with a content of "user"; an answer that is begun is not supported')
    return paired(messages, places)


def _add_turn(messages: list[Message], places: list[str], content: Field, parts: list[Field]) -> None:
    """A turn of the model; clients that streamed it send each of its pieces as a content of its own."""
    texts: list[str] = []
    calls: list[ChatCall] = []
    before = messages[-1] if messages and messages[-1].role is Role.ASSISTANT else None
    given = [camel(part["functionCall"])["id"].text("") for part in parts if not part["functionCall"].absent]
    taken = {*given, *(call.id for message in messages for call in message.calls)}
    for part in parts:
        if part["thought"].flag():
            continue
        if part["functionCall"].absent:
            texts.append(_text(part))
            continue
        part.check_keys(_PART - {"text", "functionResponse"}, _PART_LEFT)
        call = camel(part["functionCall"])
        call.check_keys({"id", "name", "args"})
        id = call["id"].text("") or next(id for id in map("call_{}".format, count()) if id not in taken)
        taken.add(id)
        calls.append(ChatCall(id, call["name"].filled(), text_of(call["args"])))
    if before is not None:
        messages[-1] = replace(before, text=before.text + "".join(texts), calls=(*before.calls, *calls))
    elif texts or calls:
        messages.append(Message(Role.ASSISTANT, "".join(texts), tuple(calls)))
        places.append(content.path)


def _read_user(parts: list[Field], before: list[Message]) -> list[Message]:
    """The results, each as a message, and what the user says beside them."""
    texts: list[str] = []
    results: list[Message] = []
    for part in parts:
        if part["functionResponse"].absent:
            texts.append(_text(part))
        else:
            part.check_keys(_PART - {"text", "functionCall"}, _PART_LEFT)
            results.append(read_result(camel(part["functionResponse"]), [*before, *results]))
    return [*results, *([Message(Role.USER, "".join(texts))] if texts else [])]


def _text(part: Field) -> str:
    part.check_keys(_PART - {"functionCall", "functionResponse"}, _PART_LEFT)
    return part["text"].text()
