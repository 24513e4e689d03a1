"""A ChatRequest -> a request of OpenAI's Responses. The server is asked to store nothing."""

from __future__ import annotations

from typing import Any

from toolwise.core.chat import ChatRequest, Message, OutputSchema, Role, ToolChoice, ToolSpec
from toolwise.core.errors import BadInput
from toolwise.notation.wire.base import Json
from toolwise.notation.wire.calls import only_objects
from toolwise.notation.wire.fields import only
from toolwise.notation.wire.history import error_text, sendable
from toolwise.notation.wire.turn import arguments_text


def write_request(request: ChatRequest) -> Json:
    """Raises BadInput where results do not fit the calls, and for a seed or stop strings, which the API has not."""
    for name, value in (("seed", request.seed), ("stop", request.stop or None)):
        if value is not None:
            raise BadInput(
                f"{name}: OpenAI's Responses has no such option; leave it out or use Chat Completions.", name
            )
    items = [item for message in sendable(only_objects(request.messages)) for item in _items(message)]
    body: Json = {"model": request.model, "input": items, "store": False}
    body |= only(
        {
            "tools": [write_tool(tool) for tool in request.tools] or None,
            "text": None if request.output is None else {"format": write_format(request.output)},
            "max_output_tokens": request.max_tokens,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "stream": request.stream or None,
        }
    )
    if request.tools:
        choice = None if request.choice == ToolChoice() else write_choice(request.choice)
        body |= only({"tool_choice": choice, "parallel_tool_calls": None if request.parallel else False})
    return body


def write_tool(tool: ToolSpec) -> Json:
    told = {"description": tool.description or None}
    return {"type": "function", "name": tool.name, "parameters": dict(tool.parameters), "strict": tool.strict} | only(
        told
    )


def write_choice(choice: ToolChoice) -> Any:
    if choice.mode == "none" or not choice.names:
        return choice.mode
    if choice.mode == "required" and len(choice.names) == 1:
        return {"type": "function", "name": choice.names[0]}
    named = [{"type": "function", "name": name} for name in choice.names]
    return {"type": "allowed_tools", "mode": choice.mode, "tools": named}


def write_format(output: OutputSchema | None) -> Json:
    if output is None:
        return {"type": "text"}
    if output.schema is None:
        return {"type": "json_object"}
    name = output.name or "answer"
    return {"type": "json_schema", "name": name, "schema": dict(output.schema), "strict": output.strict}


def _items(message: Message) -> list[Json]:
    if message.role is Role.TOOL:
        return [{"type": "function_call_output", "call_id": message.call_id, "output": error_text(message)}]
    items: list[Json] = []
    if message.text or not message.calls:
        items.append({"type": "message", "role": message.role.value, "content": message.text})
    for call in message.calls:
        told = {"call_id": call.id, "name": call.name, "arguments": arguments_text(call.arguments)}
        items.append({"type": "function_call", **told})
    return items
