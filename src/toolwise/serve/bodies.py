"""The bodies of the chat APIs as JSON Schema, for the server's description: what is read, and what is answered.

A schema says of one field what `notation.wire` says of it. What fields say of each other stays in words: that a result
answers a call of the turn before it, that a choice names a tool which is there.
"""

from __future__ import annotations

from typing import Any

from toolwise.core.limits import LIMITS

Schema = dict[str, Any]

ANY: Schema = {}
NULL: Schema = {"type": "null"}
TEXT: Schema = {"type": "string"}
FILLED: Schema = {"type": "string", "minLength": 1}
OBJECT: Schema = {"type": "object"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
TOOL_NAME: Schema = {"type": "string", "pattern": r"^[A-Za-z_][A-Za-z0-9_.:/\-]*$", "maxLength": LIMITS.name_chars}
PARAMETERS: Schema = {"type": "object", "properties": {"type": {"const": "object"}}}


def one_of(*words: Any) -> Schema:
    """One of these values."""
    return {"enum": list(words)}


def either(*schemas: Schema) -> Schema:
    """What fits one of these."""
    return {"anyOf": list(schemas)}


def maybe(schema: Schema) -> Schema:
    """A field that may be null, which is as if it were left out."""
    return either(schema, NULL) if schema else ANY


def listed(items: Schema, least: int = 0, most: int | None = None) -> Schema:
    """A list of these; its bounds are inclusive."""
    bounds = {"minItems": least} | ({} if most is None else {"maxItems": most})
    return {"type": "array", "items": items} | bounds


def record(needed: dict[str, Schema], more: dict[str, Schema] | None = None, left: str = "") -> Schema:
    """An object of these fields alone; those that are `left` (words with spaces between) are read by nobody."""
    may = {name: maybe(schema) for name, schema in (more or {}).items()} | dict.fromkeys(left.split(), ANY)
    return {
        "type": "object",
        "properties": needed | may,
        "required": list(needed),
        "additionalProperties": NULL,
    }


def loose(needed: dict[str, Schema], more: dict[str, Schema] | None = None) -> Schema:
    """An object that has these fields, and others of which nothing is said."""
    return {"type": "object", "properties": needed | (more or {}), "required": list(needed)}


FLAG: Schema = {"type": "boolean"}
TOP_P: Schema = {"type": "number", "minimum": 0, "maximum": 1}
TEMPERATURE: Schema = {"type": "number", "minimum": 0, "maximum": LIMITS.temperature}
TOKENS: Schema = {"type": "integer", "minimum": 1}
STOPS = listed(FILLED, most=LIMITS.stop_strings)


def parts(*kinds: str) -> Schema:
    """A text, or parts of it."""
    left = "annotations logprobs prompt_cache_breakpoint"
    told = [record({"type": one_of(kind), "text": TEXT}, left=f"refusal {left}") for kind in kinds if kind != "refusal"]
    if "refusal" in kinds:
        told.append(record({"type": one_of("refusal"), "refusal": TEXT}, left=f"text {left}"))
    return either(TEXT, listed(either(*told)))


# OpenAI's Chat Completions


def chat(model: Schema) -> Schema:
    """A request of OpenAI's Chat Completions; `model` is the schema of its name."""
    call = record(
        {"id": FILLED, "function": record({"name": FILLED}, {"arguments": TEXT})},
        {"type": one_of("function")},
        "index",
    )
    assistant = {"content": parts("text", "refusal"), "refusal": TEXT, "tool_calls": listed(call)}
    message = either(
        record({"role": one_of("system", "developer", "user"), "content": parts("text")}, left="name"),
        record({"role": one_of("assistant")}, assistant, "name annotations reasoning_content reasoning"),
        record({"role": one_of("tool"), "content": parts("text"), "tool_call_id": FILLED}, left="name"),
    )
    function = record({"name": TOOL_NAME}, {"description": TEXT, "parameters": PARAMETERS, "strict": FLAG})
    named = loose({"type": one_of("function"), "function": loose({"name": TEXT})})
    mode = one_of("auto", "none", "required")
    allowed = record({"mode": mode, "tools": listed(named, 1)})
    chosen = record({"type": one_of("function"), "function": loose({"name": TEXT})})
    form = {"name": FILLED, "schema": OBJECT}
    more = {
        "tools": listed(record({"type": one_of("function"), "function": function})),
        "tool_choice": either(mode, chosen, record({"type": one_of("allowed_tools"), "allowed_tools": allowed})),
        "parallel_tool_calls": FLAG,
        "response_format": either(
            loose({"type": one_of("text", "json_object")}),
            loose({"type": one_of("json_schema"), "json_schema": record(form, {"strict": FLAG, "description": ANY})}),
        ),
        "max_tokens": TOKENS,
        "max_completion_tokens": TOKENS,
        "temperature": TEMPERATURE,
        "top_p": TOP_P,
        "seed": {"type": "integer"},
        "stop": either(FILLED, STOPS),
        "stream": FLAG,
        "stream_options": record({}, {"include_usage": FLAG}, "include_obfuscation"),
        "n": one_of(1),
        "frequency_penalty": one_of(0),
        "presence_penalty": one_of(0),
        "logit_bias": {"type": "object", "maxProperties": 0},
        "logprobs": one_of(False),
        "top_logprobs": one_of(0),
        "modalities": listed(one_of("text")),
    }
    left = "metadata user store service_tier safety_identifier prediction prompt_cache_key prompt_cache_options "
    left += "prompt_cache_retention reasoning_effort verbosity"
    return record({"model": model, "messages": listed(message, 1)}, more, left)


# OpenAI's Responses


def responses(model: Schema) -> Schema:
    """A request of OpenAI's Responses."""
    said = parts("input_text", "output_text", "text", "refusal")
    role = one_of("user", "system", "developer", "assistant")
    call = {"type": one_of("function_call"), "call_id": FILLED, "name": FILLED}
    answer = {"type": one_of("function_call_output"), "call_id": FILLED, "output": said}
    item = either(
        record({"role": role, "content": said}, {"type": one_of("message")}, "id status phase"),
        record(call, {"arguments": TEXT}, "status id caller"),
        record(answer, left="id status name caller"),
        loose({"type": one_of("reasoning")}),
    )
    tool = record(
        {"type": one_of("function"), "name": TOOL_NAME},
        {"description": TEXT, "parameters": PARAMETERS, "strict": FLAG, "defer_loading": one_of(False)},
        "output_schema",
    )
    named = loose({"type": one_of("function"), "name": TEXT})
    mode = one_of("auto", "none", "required")
    form = record(
        {"type": one_of("json_schema"), "name": FILLED, "schema": OBJECT}, {"strict": FLAG, "description": ANY}
    )
    more = {
        "instructions": TEXT,
        "tools": listed(tool),
        "tool_choice": either(
            mode,
            record({"type": one_of("function"), "name": TEXT}),
            record({"type": one_of("allowed_tools"), "mode": mode, "tools": listed(named, 1)}),
        ),
        "parallel_tool_calls": FLAG,
        "text": record({}, {"format": either(loose({"type": one_of("text", "json_object")}), form)}, "verbosity"),
        "max_output_tokens": TOKENS,
        "temperature": TEMPERATURE,
        "top_p": TOP_P,
        "stream": FLAG,
        "stream_options": record({}, {}, "include_obfuscation"),
        "store": one_of(False),
        "include": listed(TEXT),
        "truncation": one_of("auto", "disabled"),
        "background": one_of(False),
        "top_logprobs": one_of(0),
    }
    left = "metadata user service_tier safety_identifier prompt_cache_key prompt_cache_options prompt_cache_retention "
    left += "reasoning max_tool_calls"
    return record({"model": model, "input": either(TEXT, listed(item, 1))}, more, left)


# Anthropic's Messages


def messages(model: Schema) -> Schema:
    """A request of Anthropic's Messages."""
    text = loose({"type": one_of("text"), "text": TEXT})
    texts = either(TEXT, listed(text))
    result = loose(
        {"type": one_of("tool_result"), "tool_use_id": FILLED}, {"content": maybe(texts), "is_error": maybe(FLAG)}
    )
    call = loose({"type": one_of("tool_use"), "id": FILLED, "name": FILLED}, {"input": maybe(OBJECT)})
    thought = loose({"type": one_of("thinking", "redacted_thinking")})
    message = either(
        record({"role": one_of("user"), "content": either(TEXT, listed(either(text, result)))}),
        record({"role": one_of("assistant"), "content": either(TEXT, listed(either(text, call, thought)))}),
        record({"role": one_of("system"), "content": texts}),
    )
    tool = record(
        {"name": TOOL_NAME},
        {"type": one_of("custom"), "description": TEXT, "input_schema": PARAMETERS, "strict": FLAG}
        | {"allowed_callers": {"type": "array", "contains": {"const": "direct"}}},
        "cache_control defer_loading eager_input_streaming input_examples",
    )
    several = {"disable_parallel_tool_use": FLAG}
    form = loose({"type": one_of("json_schema"), "schema": OBJECT})
    more = {
        "system": texts,
        "tools": listed(tool),
        "tool_choice": either(
            record({"type": one_of("auto", "any", "none")}, several, "name"),
            record({"type": one_of("tool"), "name": TEXT}, several),
        ),
        "stop_sequences": either(FILLED, STOPS),
        "stream": FLAG,
        "temperature": TOP_P,
        "top_p": TOP_P,
        "output_config": loose({}, {"format": maybe(form)}),
        "output_format": form,
    }
    left = "metadata service_tier cache_control inference_geo speed diagnostics thinking "
    left += "user_profile_id workspace_id"
    return record({"model": model, "max_tokens": TOKENS, "messages": listed(message, 1)}, more, left)


# Google's generateContent


def gemini() -> Schema:
    """A request of Google's, whose model stands in the path."""
    left, thought = "thoughtSignature partMetadata", {"thought": FLAG}
    text = record({"text": TEXT}, left=f"{left} thought")
    answer = record({}, {"id": TEXT, "name": TEXT, "response": OBJECT, "willContinue": one_of(False)}, "scheduling")
    result = record({"functionResponse": answer}, left=f"{left} thought")
    called = record({"name": FILLED}, {"id": TEXT, "args": OBJECT})
    said = either(record({"text": TEXT}, thought, left), record({"functionCall": called}, thought, left))
    contents = either(
        record({}, {"role": one_of("user", "function"), "parts": listed(either(text, result))}),
        record({"role": one_of("model")}, {"parts": listed(said)}),
    )
    declared = record(
        {"name": TOOL_NAME},
        {"description": TEXT, "parameters": OBJECT, "parametersJsonSchema": PARAMETERS}
        | {"behavior": one_of("BLOCKING", "UNSPECIFIED")},
        "response responseJsonSchema",
    )
    mode = one_of("AUTO", "ANY", "NONE", "VALIDATED", "MODE_UNSPECIFIED")
    calling = record({}, {"mode": mode, "allowedFunctionNames": listed(TEXT)}, "streamFunctionCallArguments")
    config = {
        "maxOutputTokens": TOKENS,
        "temperature": TEMPERATURE,
        "topP": TOP_P,
        "seed": {"type": "integer"},
        "stopSequences": either(FILLED, STOPS),
        "candidateCount": one_of(1),
        "responseMimeType": one_of("text/plain", "application/json"),
        "responseSchema": OBJECT,
        "responseJsonSchema": OBJECT,
        "_responseJsonSchema": OBJECT,
        "responseModalities": listed(one_of("TEXT")),
        "presencePenalty": one_of(0),
        "frequencyPenalty": one_of(0),
        "responseLogprobs": one_of(False),
    }
    config_left = "thinkingConfig mediaResolution enableEnhancedCivicAnswers"
    other = "retrievalConfig includeServerSideToolInvocations"
    more = {
        "systemInstruction": loose({}, {"parts": maybe(listed(text))}),
        "tools": listed(record({}, {"functionDeclarations": listed(declared)})),
        "toolConfig": record({}, {"functionCallingConfig": calling}, other),
        "generationConfig": record({}, config, config_left),
        "model": TEXT,
    }
    return record({"contents": listed(contents, 1)}, more, "safetySettings labels serviceTier store")
