"""A ChatRequest -> a request of OpenAI's Chat Completions, as every server that is compatible with it takes it.

The bound on the answer goes under its old name, `max_tokens`, which all of them know. Servers read the arguments of
earlier calls for their models' templates: nothing is an empty object, and a call whose arguments are none is told as
text.
"""

from __future__ import annotations

from typing import Any

from toolwise.core.chat import ChatCall, ChatRequest, Message, OutputSchema, Role, ToolChoice
from toolwise.notation.wire.base import Json
from toolwise.notation.wire.calls import only_objects
from toolwise.notation.wire.fields import only
from toolwise.notation.wire.history import error_text, sendable
from toolwise.notation.wire.turn import arguments_text


def write_request(request: ChatRequest) -> Json:
    """Raises BadInput where results do not fit the calls."""
    history = sendable(only_objects(request.messages))
    body: Json = {"model": request.model, "messages": [_message(message) for message in history]}
    body |= only(
        {
            "tools": [_tool(tool) for tool in request.tools] or None,
            "response_format": None if request.output is None else _output(request.output),
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "seed": request.seed,
            "stop": list(request.stop) or None,
        }
    )
    if request.tools:  # servers refuse what is said of tools where there are none
        body |= only(
            {"tool_choice": _choice(request.choice), "parallel_tool_calls": None if request.parallel else False}
        )
    if request.stream:
        body["stream"] = True
        if request.stream_usage:
            body["stream_options"] = {"include_usage": True}
    return body


def write_call(call: ChatCall) -> Json:
    function = {"name": call.name, "arguments": arguments_text(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _message(message: Message) -> Json:
    if message.role is Role.TOOL:
        return {"role": "tool", "tool_call_id": message.call_id, "content": error_text(message)}
    written: Json = {"role": message.role.value, "content": message.text}
    if message.calls:
        written |= {"content": message.text or None, "tool_calls": [write_call(call) for call in message.calls]}
    return written


def _tool(tool: Any) -> Json:
    told = {"description": tool.description or None, "parameters": dict(tool.parameters), "strict": tool.strict or None}
    return {"type": "function", "function": {"name": tool.name} | only(told)}


def _choice(choice: ToolChoice) -> Any:
    """None for what is so without being said."""
    if choice.mode == "none" or not choice.names:
        return None if choice.mode == "auto" else choice.mode
    named = [{"type": "function", "function": {"name": name}} for name in choice.names]
    if choice.mode == "required" and len(named) == 1:
        return named[0]
    return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": named}}


def _output(output: OutputSchema) -> Json:
    if output.schema is None:
        return {"type": "json_object"}
    schema = {"name": output.name or "answer", "schema": dict(output.schema), "strict": output.strict}
    return {"type": "json_schema", "json_schema": schema}
