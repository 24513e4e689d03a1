"""A request of the Messages API -> a ChatRequest.

What is refused by name: pictures, documents, tools that the API runs itself, an answer that is begun for the model, and
whatever is not known. What is left changes no answer: metadata, caches, and the thoughts of other turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolwise.core.chat import ChatCall, ChatRequest, Message, OutputSchema, Role, ToolChoice, ToolSpec
from toolwise.core.jsonio import quote
from toolwise.notation.wire.calls import text_of
from toolwise.notation.wire.fields import Field, check_choice, check_tools
from toolwise.notation.wire.history import paired

_READ = frozenset(
    {
        *("model", "messages", "system", "tools", "tool_choice", "max_tokens", "stop_sequences", "stream"),
        *("temperature", "top_p", "output_config", "output_format"),
    }
)
# They change no answer of ours: where it is made, who asks, what is kept, and how long a model thinks that has none to
# show.
_LEFT = frozenset(
    {
        *("metadata", "service_tier", "cache_control", "inference_geo", "speed", "diagnostics", "thinking"),
        *("user_profile_id", "workspace_id"),
    }
)
_TOOL_READ = frozenset({"type", "name", "description", "input_schema", "strict", "allowed_callers"})
_TOOL_LEFT = frozenset({"cache_control", "defer_loading", "eager_input_streaming", "input_examples"})
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})  # of another turn, which no model here can read


def read_request(body: Any) -> ChatRequest:
    """Raises BadInput that names the field: pictures, documents, and tools that the API runs itself."""
    request = Field(body)
    request.check_keys(_READ, _LEFT)
    tools = _read_tools(request["tools"])
    max_tokens = request["max_tokens"].integer(1)
    if max_tokens is None:
        raise request["max_tokens"].refused("say how many tokens the answer may have")
    choice, parallel = _read_choice(request["tool_choice"], tools)
    stream = request["stream"].flag()
    return ChatRequest(
        _read_messages(request),
        model=request["model"].filled(),
        tools=tools,
        choice=choice,
        parallel=parallel,
        output=_read_output(request),
        max_tokens=max_tokens,
        temperature=request["temperature"].number(0, 1),
        top_p=request["top_p"].number(0, 1),
        stop=request["stop_sequences"].stop_strings(),
        stream=stream,
        stream_usage=stream,
    )


def _read_messages(request: Field) -> tuple[Message, ...]:
    messages: list[Message] = []
    places: list[str] = []
    if not request["system"].absent:
        messages.append(Message(Role.SYSTEM, _read_text(request["system"])))
        places.append("system")
    items = request["messages"].items()
    for place in items:
        place.check_keys({"role", "content"})
        role = place["role"].one_of("user", "assistant", "system")
        for message in _READERS[role](place["content"]):
            messages.append(message)
            places.append(place.path)
    if not items:
        raise request["messages"].refused("send at least one message")
    if items[-1]["role"].value == "assistant" and not messages[-1].calls:
        raise items[-1]["role"].refused('end with a message of "user"; an answer that is begun is not supported')
    return paired(messages, places)


def _read_system(content: Field) -> Iterator[Message]:
    yield Message(Role.SYSTEM, _read_text(content))


def _read_user(content: Field) -> Iterator[Message]:
    """The results, each as a message, and what the user says after them; the API wants them in this order."""
    if isinstance(content.value, str):
        yield Message(Role.USER, content.value)
        return
    texts: list[str] = []
    for block in _blocks(content):
        if _kind(block, "text", "tool_result") == "text":
            texts.append(block["text"].text())
        elif texts:
            raise block.refused("put the results before the text of a message")
        else:
            yield _read_result(block)
    if texts:
        yield Message(Role.USER, "".join(texts))


def _read_result(block: Field) -> Message:
    text = "" if block["content"].absent else _read_text(block["content"])
    return Message(Role.TOOL, text, call_id=block["tool_use_id"].filled(), is_error=block["is_error"].flag())


def _read_assistant(content: Field) -> Iterator[Message]:
    if isinstance(content.value, str):
        yield Message(Role.ASSISTANT, content.value)
        return
    texts: list[str] = []
    calls: list[ChatCall] = []
    for block in _blocks(content):
        kind = _kind(block, "text", "tool_use", *_THOUGHTS)
        if kind == "text":
            texts.append(block["text"].text())
        elif kind == "tool_use":
            calls.append(ChatCall(block["id"].filled(), block["name"].filled(), text_of(block["input"])))
    yield Message(Role.ASSISTANT, "".join(texts), tuple(calls))


_READERS = {"system": _read_system, "user": _read_user, "assistant": _read_assistant}


def _read_text(content: Field) -> str:
    """A text, or blocks of text alone."""
    if isinstance(content.value, str):
        return content.value
    texts = []
    for block in _blocks(content):
        _kind(block, "text")
        texts.append(block["text"].text())
    return "".join(texts)


def _blocks(content: Field) -> list[Field]:
    if not isinstance(content.value, list):
        raise content.refused("send a string or a list of blocks")
    return content.items()


def _kind(block: Field, *kinds: str) -> str:
    kind = block["type"].text()
    if kind not in kinds:
        raise block["type"].refused(f"{quote(kind)} is not supported here; send text")
    return kind


def _read_tools(places: Field) -> tuple[ToolSpec, ...]:
    tools = tuple(_read_tool(place) for place in places.items())
    check_tools(tools, places)
    return tools


def _read_tool(place: Field) -> ToolSpec:
    kind = place["type"].text("custom")
    if kind != "custom":
        raise place["type"].refused(f"the tool {quote(kind)} is not supported; declare your own with an input_schema")
    place.check_keys(_TOOL_READ, _TOOL_LEFT)
    callers = place["allowed_callers"]
    if not callers.absent and "direct" not in [item.value for item in callers.items()]:
        raise callers.refused('leave it out, or let "direct" be one of them')
    return ToolSpec(
        place["name"].tool_name(),
        place["description"].text(""),
        place["input_schema"].tool_schema(),
        strict=place["strict"].flag(),
    )


def _read_choice(choice: Field, tools: tuple[ToolSpec, ...]) -> tuple[ToolChoice, bool]:
    """Which tools, and whether several calls in one turn."""
    if choice.absent:
        return ToolChoice(), True
    choice.check_keys({"type", "name", "disable_parallel_tool_use"})
    parallel = not choice["disable_parallel_tool_use"].flag()
    match choice["type"].one_of("auto", "any", "tool", "none"):
        case "auto":
            return ToolChoice("auto"), parallel
        case "none":
            return ToolChoice("none"), parallel
        case "any":
            return check_choice(ToolChoice("required"), tools, choice), parallel
    return check_choice(ToolChoice("required", (choice["name"].text(),)), tools, choice["name"]), parallel


def _read_output(request: Field) -> OutputSchema | None:
    """Under the name of today, else under the former one; clients send either, and what stands there is read."""
    config, former = request["output_config"], _read_form(request["output_format"])
    return (None if config.absent else _read_form(config["format"])) or former


def _read_form(form: Field) -> OutputSchema | None:
    if form.absent:
        return None
    form["type"].one_of("json_schema")
    return OutputSchema(dict(form["schema"].object()))
