"""A request of OpenAI's Responses -> a ChatRequest.

Nothing is stored here: `store` may be false or left out, and what stands on a stored answer (`previous_response_id`,
`conversation`, references to items) is refused by name, as are tools that the API runs itself, pictures and files.
A `reasoning` item holds thoughts of another model, often sealed; it comes back with a history, and is passed over.
"""

from __future__ import annotations

from typing import Any

from toolwise.core.chat import ChatCall, ChatRequest, Message, OutputSchema, Role, ToolChoice, ToolSpec
from toolwise.core.limits import LIMITS, Limits
from toolwise.notation.wire.fields import Field, check_choice, check_tools
from toolwise.notation.wire.history import paired, says_error
from toolwise.notation.wire.openai_chat.read import read_content, read_mode, read_schema
from toolwise.notation.wire.turn import arguments_text, cut_off

READ = frozenset(
    {"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "text", "max_output_tokens"}
    | {"temperature", "top_p", "stream", "stream_options", "store", "include", "truncation", "background"}
    | {"top_logprobs"}
)
LEFT = frozenset(
    {"metadata", "user", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_options"}
    | {"prompt_cache_retention", "reasoning", "max_tool_calls"}
)
_LOGPROBS = "message.output_text.logprobs"
_ROLES = {"user": Role.USER, "system": Role.SYSTEM, "developer": Role.SYSTEM, "assistant": Role.ASSISTANT}
_PARTS = ("input_text", "output_text", "text", "refusal")


def read_request(body: Any, limits: Limits = LIMITS) -> ChatRequest:
    """Raises BadInput, naming the field."""
    request = Field(body)
    for stored in ("previous_response_id", "conversation", "prompt"):
        request.refuse(stored, instead="nothing is stored here: send the whole conversation as input")
    request.check_keys(READ, LEFT)
    _check_neutral(request)
    tools = tuple(_tool(item) for item in request["tools"].items())
    check_tools(tools, request["tools"])
    return ChatRequest(
        messages=_messages(request["input"], request["instructions"].text("")),
        model=request["model"].text(""),
        tools=tools,
        choice=_choice(request["tool_choice"], tools),
        parallel=request["parallel_tool_calls"].flag(True),
        output=_output(request["text"]),
        max_tokens=request["max_output_tokens"].integer(least=1),
        temperature=request["temperature"].number(0, limits.temperature),
        top_p=request["top_p"].number(0, 1),
        stream=request["stream"].flag(),
        stream_usage=request["stream"].flag(),  # the last event always has it
    )


def _check_neutral(request: Field) -> None:
    """Options that are read only to see that they ask for nothing."""
    if request["store"].flag():
        raise request["store"].refused("nothing is stored here; send false")
    if request["background"].flag():
        raise request["background"].refused("not supported; send false")
    if request["top_logprobs"].integer():
        raise request["top_logprobs"].refused("not supported; leave it out")
    for item in request["include"].items():
        if item.text() == _LOGPROBS:
            raise item.refused("not supported; leave it out")
    if not request["truncation"].absent:
        request["truncation"].one_of("auto", "disabled")
    if not request["stream_options"].absent:
        request["stream_options"].check_keys({"include_obfuscation"})


def _output(text: Field) -> OutputSchema | None:
    if text.absent:
        return None
    text.check_keys({"format"}, {"verbosity"})
    form = text["format"]
    if form.absent:
        return None
    match form["type"].one_of("text", "json_object", "json_schema"):
        case "text":
            return None
        case "json_object":
            return OutputSchema()
    return read_schema(form, {"type", "name", "schema", "strict", "description"})


# Tools


def _tool(item: Field) -> ToolSpec:
    """Strict, unless it says that it is not: so is this API."""
    if item["type"].text() != "function":
        raise item["type"].refused('send "function"; tools that an API runs itself are not supported')
    if item["defer_loading"].flag():
        raise item["defer_loading"].refused("not supported; leave it out")
    item.check_keys({"type", "name", "description", "parameters", "strict", "defer_loading"}, {"output_schema"})
    return ToolSpec(
        item["name"].tool_name(),
        item["description"].text(""),
        item["parameters"].tool_schema(),
        item["strict"].flag(True),
    )


def _choice(choice: Field, tools: tuple[ToolSpec, ...]) -> ToolChoice:
    if choice.absent:
        return ToolChoice()
    if isinstance(choice.value, str):
        return check_choice(ToolChoice(read_mode(choice)), tools, choice)
    if choice["type"].one_of("function", "allowed_tools") == "function":
        choice.check_keys({"type", "name"})
        return check_choice(ToolChoice("required", (choice["name"].text(),)), tools, choice["name"])
    choice.check_keys({"type", "mode", "tools"})
    for item in choice["tools"].items():
        item["type"].one_of("function")
    names = tuple(item["name"].text() for item in choice["tools"].items())
    if not names:
        raise choice["tools"].refused('name one tool at least, or send "none"')
    return check_choice(ToolChoice(read_mode(choice["mode"]), names), tools, choice["tools"])


# Items


def _messages(given: Field, instructions: str) -> tuple[Message, ...]:
    """The items as messages: what an assistant says and calls until somebody else speaks is one turn."""
    messages = [Message(Role.SYSTEM, instructions)] if instructions else []
    places = ["instructions"] * len(messages)
    if isinstance(given.value, str):
        return (*messages, Message(Role.USER, given.value))
    if not given.items():
        raise given.refused("send a string or one item at least")
    for item in given.items():
        message = _message(item)
        if message is None:
            continue
        last = messages[-1] if messages else None
        if last is not None and last.role is message.role is Role.ASSISTANT:
            messages[-1] = Message(Role.ASSISTANT, last.text + message.text, last.calls + message.calls)
            continue
        messages.append(message)
        places.append(item.path)
    return paired(messages, places)


def _message(item: Field) -> Message | None:
    match item["type"].text("message"):
        case "message":
            item.check_keys({"type", "role", "content"}, {"id", "status", "phase"})
            role = _ROLES[item["role"].one_of(*_ROLES)]
            return Message(role, read_content(item["content"], *_PARTS))
        case "function_call":
            item.check_keys({"type", "call_id", "name", "arguments", "status"}, {"id", "caller"})
            arguments = arguments_text(item["arguments"].text("{}"))
            whole = item["status"].value != "incomplete" and not cut_off(arguments)
            call = ChatCall(item["call_id"].filled(), item["name"].filled(), arguments, whole)
            return Message(Role.ASSISTANT, calls=(call,))
        case "function_call_output":
            item.check_keys({"type", "call_id", "output"}, {"id", "status", "name", "caller"})
            text = read_content(item["output"], *_PARTS)
            return Message(Role.TOOL, text, call_id=item["call_id"].filled(), is_error=says_error(text))
        case "reasoning":
            return None
        case "item_reference":
            raise item["type"].refused("nothing is stored here; send the item itself")
    raise item["type"].refused('send "message", "function_call" or "function_call_output"; others are not supported')
