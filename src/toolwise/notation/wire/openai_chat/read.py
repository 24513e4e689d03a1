"""A request of OpenAI's Chat Completions -> a ChatRequest.

What is refused by name: pictures, sounds and files; several choices; log-probabilities; functions in the manner of
2023; tools that the API runs itself; whatever is not known. What is left, since it changes no answer that a client
could count on: metadata, who the user is, where the request is cached, how hard a model should think.
"""

from __future__ import annotations

from typing import Any, Literal, cast

from toolwise.core.chat import ChatCall, ChatRequest, Message, OutputSchema, Role, ToolChoice, ToolSpec
from toolwise.core.jsonio import quote
from toolwise.core.limits import LIMITS, Limits
from toolwise.notation.wire.fields import Field, check_choice, check_tools
from toolwise.notation.wire.history import paired, says_error
from toolwise.notation.wire.turn import arguments_text, cut_off

READ = frozenset(
    {"messages", "model", "tools", "tool_choice", "parallel_tool_calls", "response_format", "max_tokens"}
    | {"max_completion_tokens", "temperature", "top_p", "seed", "stop", "stream", "stream_options", "n"}
    | {"frequency_penalty", "presence_penalty", "logit_bias", "logprobs", "top_logprobs", "modalities"}
)
LEFT = frozenset(
    {"metadata", "user", "store", "service_tier", "safety_identifier", "prediction", "prompt_cache_key"}
    | {"prompt_cache_options", "prompt_cache_retention", "reasoning_effort", "verbosity"}
)
_MESSAGE = frozenset({"role", "content"})
_ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER, "tool": Role.TOOL}


def read_request(body: Any, limits: Limits = LIMITS) -> ChatRequest:
    """Raises BadInput, naming the field."""
    request = Field(body)
    request.refuse("functions", instead="send tools")
    request.refuse("function_call", instead="send tool_choice")
    request.refuse("audio", "web_search_options", "moderation")
    request.check_keys(READ, LEFT)
    _check_neutral(request)
    tools = tuple(_tool(item) for item in request["tools"].items())
    check_tools(tools, request["tools"])
    stream = request["stream"].flag()
    options = request["stream_options"]
    if not options.absent:
        options.check_keys({"include_usage", "include_obfuscation"})
        if not stream:
            raise options.refused("is for a stream; send it with stream true")
    return ChatRequest(
        messages=_messages(request["messages"]),
        model=request["model"].text(""),
        tools=tools,
        choice=_choice(request["tool_choice"], tools),
        parallel=request["parallel_tool_calls"].flag(True),
        output=read_output(request["response_format"]),
        max_tokens=_max_tokens(request),
        temperature=request["temperature"].number(0, limits.temperature),
        top_p=request["top_p"].number(0, 1),
        seed=request["seed"].integer(),
        stop=request["stop"].stop_strings(limits),
        stream=stream,
        stream_usage=stream and not options.absent and options["include_usage"].flag(),
    )


def read_content(content: Field, *kinds: str) -> str:
    """The text of a message: a string, or a list of parts of these kinds."""
    if isinstance(content.value, str):
        return content.value
    if not isinstance(content.value, list):
        raise content.refused("send a string or a list of text parts")
    texts = []
    for part in content.items():
        kind = part["type"].text()
        if kind not in kinds:
            raise part["type"].refused(f"send text; {quote(kind)} is not supported here")
        part.check_keys({"type", "text", "refusal"}, {"annotations", "logprobs", "prompt_cache_breakpoint"})
        texts.append(part["refusal" if kind == "refusal" else "text"].text())
    return "".join(texts)


def read_output(form: Field) -> OutputSchema | None:
    """What `response_format` asks for."""
    if form.absent:
        return None
    match form["type"].one_of("text", "json_object", "json_schema"):
        case "text":
            return None
        case "json_object":
            return OutputSchema()
    return read_schema(form["json_schema"], {"name", "schema", "strict", "description"})


def read_schema(form: Field, keys: set[str]) -> OutputSchema:
    """The named schema that an answer is to have."""
    form.check_keys(keys)
    return OutputSchema(dict(form["schema"].object()), form["name"].filled(), form["strict"].flag())


def _check_neutral(request: Field) -> None:
    """Options that are read only to see that they ask for nothing."""
    if request["n"].integer() not in (None, 1):
        raise request["n"].refused("send 1; an answer is one choice")
    for name in ("frequency_penalty", "presence_penalty"):
        if request[name].number():
            raise request[name].refused("not supported; leave it out")
    if request["logprobs"].flag() or request["top_logprobs"].integer():
        raise request["logprobs"].refused("not supported; leave it out")
    if not request["logit_bias"].absent and request["logit_bias"].object():
        raise request["logit_bias"].refused("not supported; leave it out")
    for item in request["modalities"].items():
        item.one_of("text")


def _max_tokens(request: Field) -> int | None:
    old, new = request["max_tokens"].integer(least=1), request["max_completion_tokens"].integer(least=1)
    if old is not None and new is not None and old != new:
        raise request["max_tokens"].refused("differs from max_completion_tokens; send one of them")
    return old if new is None else new


# Tools


def _tool(item: Field) -> ToolSpec:
    if item["type"].text() != "function":
        raise item["type"].refused('send "function"; tools of other kinds are not supported')
    item.check_keys({"type", "function"})
    function = item["function"]
    function.check_keys({"name", "description", "parameters", "strict"})
    return ToolSpec(
        function["name"].tool_name(),
        function["description"].text(""),
        function["parameters"].tool_schema(),
        function["strict"].flag(),
    )


def _choice(choice: Field, tools: tuple[ToolSpec, ...]) -> ToolChoice:
    if choice.absent:
        return ToolChoice()
    if isinstance(choice.value, str):
        return check_choice(ToolChoice(read_mode(choice)), tools, choice)
    if choice["type"].one_of("function", "allowed_tools") == "function":
        choice.check_keys({"type", "function"})
        return check_choice(ToolChoice("required", (_named(choice),)), tools, choice["function"]["name"])
    choice.check_keys({"type", "allowed_tools"})
    allowed = choice["allowed_tools"]
    allowed.check_keys({"mode", "tools"})
    names = tuple(_named(item) for item in allowed["tools"].items())
    if not names:
        raise allowed["tools"].refused('name one tool at least, or send "none"')
    return check_choice(ToolChoice(read_mode(allowed["mode"]), names), tools, allowed["tools"])


def read_mode(mode: Field) -> Literal["auto", "none", "required"]:
    return cast('Literal["auto", "none", "required"]', mode.one_of("auto", "none", "required"))


def _named(item: Field) -> str:
    item["type"].one_of("function")
    return item["function"]["name"].text()


# Messages


def _messages(messages: Field) -> tuple[Message, ...]:
    items = messages.items()
    if not items:
        raise messages.refused("send one message at least")
    return paired([_message(item) for item in items], [item.path for item in items])


def _message(item: Field) -> Message:
    role = item["role"].text()
    if role == "assistant":
        return _assistant(item)
    if role == "function":
        raise item["role"].refused('send the result as a message of the role "tool", with its tool_call_id')
    item["role"].one_of(*_ROLES, "assistant")
    if role == "tool":
        item.check_keys(_MESSAGE | {"tool_call_id"}, {"name"})
        text = read_content(item["content"], "text")
        return Message(Role.TOOL, text, call_id=item["tool_call_id"].filled(), is_error=says_error(text))
    item.check_keys(_MESSAGE, {"name"})
    return Message(_ROLES[role], read_content(item["content"], "text"))


def _assistant(item: Field) -> Message:
    item.refuse("function_call", instead="send tool_calls")
    item.refuse("audio")
    # What other servers say of a turn (its thoughts, say) comes back with it, and is nothing to answer.
    left = {"name", "annotations", "reasoning_content", "reasoning"}
    item.check_keys(_MESSAGE | {"refusal", "tool_calls"}, left)
    content = item["content"]
    text = "" if content.absent else read_content(content, "text", "refusal")
    calls = tuple(_call(call) for call in item["tool_calls"].items())
    return Message(Role.ASSISTANT, text + item["refusal"].text(""), calls)


def _call(item: Field) -> ChatCall:
    if item["type"].text("function") != "function":
        raise item["type"].refused('send "function"; calls of other kinds are not supported')
    item.check_keys({"id", "type", "function"}, {"index"})
    function = item["function"]
    function.check_keys({"name", "arguments"})
    arguments = arguments_text(function["arguments"].text("{}"))
    return ChatCall(item["id"].filled(), function["name"].filled(), arguments, not cut_off(arguments))
