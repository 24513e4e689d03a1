"""A ChatRequest -> a request of the Gemini API. The model, and whether to stream, go into its path.

The API has no field for one call a turn, and the name of an output's schema; its one system prompt has what the whole
conversation says as the system; and where only some of the tools may be called freely, only these are sent.

Not covered: the signatures that newer models put beside their calls and want back.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolwise.core.chat import ChatCall, ChatRequest, Message, Role, ToolSpec
from toolwise.notation.wire.base import Json
from toolwise.notation.wire.calls import object_of, only_objects
from toolwise.notation.wire.fields import only
from toolwise.notation.wire.gemini.results import write_result
from toolwise.notation.wire.history import sendable


def write_request(request: ChatRequest) -> Json:
    """Raises BadInput where results do not fit the calls."""
    messages = sendable(only_objects(request.messages))
    system = [{"text": message.text} for message in messages if message.role is Role.SYSTEM and message.text]
    limited = request.choice.names if request.choice.mode == "auto" else ()
    tools = [tool for tool in request.tools if not limited or tool.name in limited]
    config = only(
        {
            "maxOutputTokens": request.max_tokens,
            "temperature": request.temperature,
            "topP": request.top_p,
            "seed": request.seed,
            "stopSequences": list(request.stop) or None,
            "responseMimeType": "application/json" if request.output else None,
            "responseJsonSchema": request.output and request.output.schema and dict(request.output.schema),
        }
    )
    return {"contents": _contents([message for message in messages if message.role is not Role.SYSTEM])} | only(
        {
            "systemInstruction": {"parts": system} if system else None,
            "tools": [{"functionDeclarations": [_tool(tool) for tool in tools]}] if tools else None,
            "toolConfig": _choice(request) if tools else None,
            "generationConfig": config or None,
        }
    )


def _contents(messages: Sequence[Message]) -> list[Json]:
    """The results of a turn are one content."""
    written: list[Json] = []
    calls: dict[str, ChatCall] = {}
    results = False
    for message in messages:
        if message.role is Role.TOOL:
            if not results:
                written.append({"role": "user", "parts": []})
            written[-1]["parts"].append(write_result(message, calls[message.call_id]))
            results = True
            continue
        results = False
        parts: list[Json] = [{"text": message.text}] if message.text or message.role is Role.USER else []
        calls = {call.id: call for call in message.calls}
        for call in message.calls:
            parts.append({"functionCall": {"id": call.id, "name": call.name, "args": object_of(call) or {}}})
        if parts:
            written.append({"role": "user" if message.role is Role.USER else "model", "parts": parts})
    return written


def _tool(tool: ToolSpec) -> Json:
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": dict(tool.parameters)}


def _choice(request: ChatRequest) -> Json | None:
    """None for what is so without being said."""
    choice = request.choice
    if choice.mode == "none":
        calling: Json = {"mode": "NONE"}
    elif choice.forced:
        calling = {"mode": "ANY"} | only({"allowedFunctionNames": list(choice.names) or None})
    elif any(tool.strict for tool in request.tools):
        calling = {"mode": "VALIDATED"}
    else:
        return None
    return {"functionCallingConfig": calling}
