"""The official clients behind one small interface, so that every story is told to each of them.

A conversation is a list of what was said: a str of the user's, a `Turn` of the model's, a list of `Told` results. Each
client sends it in its own way, and what comes back is read from the client's own objects.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import anthropic
import openai
from api_server import ADD, CITY, Served
from google.genai import errors as gemini_errors
from google.genai import types
from openai.lib.streaming.chat import ChatCompletionStreamState


@dataclass(frozen=True)
class Asked:
    """A call as the client saw it."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Turn:
    """What the model said; `native` is the client's own object, for the next request. `stop`: end, calls or length."""

    text: str
    calls: list[Asked]
    stop: str
    native: Any = None
    tokens: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Told:
    """The result of a call that the client ran."""

    call: Asked
    text: str
    failed: bool = False


Said = str | Turn | list[Told]
TOOLS = {"add": ("Adds.", ADD), "weather": ("Says the weather.", CITY)}


@dataclass(frozen=True)
class How:
    """`choice`: auto, none, required, or a tool's name."""

    tools: tuple[str, ...] = tuple(TOOLS)
    choice: str = "auto"
    parallel: bool = True
    stream: bool = False
    model: str = "scripted"
    more: dict[str, Any] = field(default_factory=dict)


class Chat:
    """OpenAI's Chat Completions."""

    error = openai.APIError

    def __init__(self, served: Served, key: str | None = None) -> None:
        self.client = served.openai(key)

    def turn(self, said: Sequence[Said], how: How = How()) -> Turn:
        made: dict[str, Any] = {"model": how.model, "messages": [m for each in said for m in self._messages(each)]}
        if how.tools:
            made["tools"] = [
                {"type": "function", "function": {"name": n, "description": TOOLS[n][0], "parameters": TOOLS[n][1]}}
                for n in how.tools
            ]
            named = {"type": "function", "function": {"name": how.choice}}
            made["tool_choice"] = how.choice if how.choice in ("auto", "none", "required") else named
            made["parallel_tool_calls"] = how.parallel
        made |= how.more
        if not how.stream:
            return self._turn(self.client.chat.completions.create(**made))
        state: ChatCompletionStreamState[Any] = ChatCompletionStreamState()
        for chunk in self.client.chat.completions.create(**made, stream=True, stream_options={"include_usage": True}):
            state.handle_chunk(chunk)
        return self._turn(state.current_completion_snapshot)

    def _messages(self, said: Said) -> list[Any]:
        if isinstance(said, str):
            return [{"role": "user", "content": said}]
        if isinstance(said, Turn):
            return [said.native.model_dump(exclude_none=True, exclude={"parsed"})]
        return [{"role": "tool", "tool_call_id": told.call.id, "content": told.text} for told in said]

    def _turn(self, got: Any) -> Turn:
        (choice,) = got.choices
        calls = [
            Asked(call.id, call.function.name, json.loads(call.function.arguments))
            for call in choice.message.tool_calls or ()
        ]
        stop = {"stop": "end", "tool_calls": "calls"}.get(choice.finish_reason, choice.finish_reason)
        tokens = got.usage.prompt_tokens, got.usage.completion_tokens
        return Turn(choice.message.content or "", calls, stop, choice.message, tokens)


class Messages:
    """Anthropic's Messages."""

    error = anthropic.APIError

    def __init__(self, served: Served, key: str | None = None) -> None:
        self.client = served.anthropic(key)

    def turn(self, said: Sequence[Said], how: How = How()) -> Turn:
        made: dict[str, Any] = {"model": how.model, "max_tokens": 1_000, "messages": [self._message(m) for m in said]}
        if how.tools:
            made["tools"] = [
                {"name": name, "description": TOOLS[name][0], "input_schema": TOOLS[name][1]} for name in how.tools
            ]
            named = {"type": "tool", "name": how.choice}
            choice = {"auto": {"type": "auto"}, "none": {"type": "none"}, "required": {"type": "any"}}
            made["tool_choice"] = choice.get(how.choice, named)
            if not how.parallel:
                made["tool_choice"]["disable_parallel_tool_use"] = True
        made |= how.more
        if not how.stream:
            return self._turn(self.client.messages.create(**made))
        with self.client.messages.stream(**made) as stream:
            return self._turn(stream.get_final_message())

    def _message(self, said: Said) -> Any:
        if isinstance(said, str):
            return {"role": "user", "content": said}
        if isinstance(said, Turn):
            content = [block.model_dump(exclude={"parsed_output"}, exclude_none=True) for block in said.native.content]
            return {"role": "assistant", "content": content}
        results = [
            {"type": "tool_result", "tool_use_id": told.call.id, "content": told.text, "is_error": told.failed}
            for told in said
        ]
        return {"role": "user", "content": results}

    def _turn(self, got: Any) -> Turn:
        text = "".join(block.text for block in got.content if block.type == "text")
        calls = [Asked(block.id, block.name, dict(block.input)) for block in got.content if block.type == "tool_use"]
        stop = {"end_turn": "end", "tool_use": "calls", "max_tokens": "length"}.get(got.stop_reason, got.stop_reason)
        return Turn(text, calls, stop, got, (got.usage.input_tokens, got.usage.output_tokens))


class Responses:
    """OpenAI's Responses."""

    error = openai.APIError

    def __init__(self, served: Served, key: str | None = None) -> None:
        self.client = served.openai(key)

    def turn(self, said: Sequence[Said], how: How = How()) -> Turn:
        made: dict[str, Any] = {
            "model": how.model,
            "input": [item for each in said for item in self._items(each)],
            "store": False,
        }
        if how.tools:
            made["tools"] = [
                {"type": "function", "name": n, "description": TOOLS[n][0], "parameters": TOOLS[n][1], "strict": False}
                for n in how.tools
            ]
            named = {"type": "function", "name": how.choice}
            made["tool_choice"] = how.choice if how.choice in ("auto", "none", "required") else named
            made["parallel_tool_calls"] = how.parallel
        made |= how.more
        if not how.stream:
            return self._turn(self.client.responses.create(**made))
        for event in self.client.responses.create(**made, stream=True):
            last = event
        if last.type not in ("response.completed", "response.incomplete"):
            raise openai.APIError(last.response.error.message, request=None, body=None)  # the client leaves that to us
        return self._turn(last.response)

    def _items(self, said: Said) -> list[Any]:
        if isinstance(said, str):
            return [{"role": "user", "content": said}]
        if isinstance(said, Turn):
            dropped = {"parsed_arguments", "parsed"}
            return [item.model_dump(exclude_none=True, exclude=dropped) for item in said.native.output]
        return [{"type": "function_call_output", "call_id": told.call.id, "output": told.text} for told in said]

    def _turn(self, got: Any) -> Turn:
        calls = [
            Asked(item.call_id, item.name, json.loads(item.arguments))
            for item in got.output
            if item.type == "function_call"
        ]
        cut = got.status == "incomplete"
        stop = "length" if cut else "calls" if calls else "end"
        return Turn(got.output_text, calls, stop, got, (got.usage.input_tokens, got.usage.output_tokens))


class Gemini:
    """Google's generateContent."""

    error = gemini_errors.APIError

    def __init__(self, served: Served, key: str | None = None) -> None:
        self.client = served.gemini(key)

    def turn(self, said: Sequence[Said], how: How = How()) -> Turn:
        config: dict[str, Any] = {"automatic_function_calling": {"disable": True}}
        if how.tools:
            declared = [
                types.FunctionDeclaration(name=n, description=TOOLS[n][0], parameters_json_schema=TOOLS[n][1])
                for n in how.tools
            ]
            config["tools"] = [types.Tool(function_declarations=declared)]
            mode = {"auto": "AUTO", "none": "NONE"}.get(how.choice, "ANY")
            named = None if how.choice in ("auto", "none", "required") else [how.choice]
            calling = types.FunctionCallingConfig(mode=mode, allowed_function_names=named)
            config["tool_config"] = types.ToolConfig(function_calling_config=calling)
        made = {
            "model": how.model,
            "contents": [self._content(each) for each in said],
            "config": types.GenerateContentConfig(**(config | how.more)),
        }
        if not how.stream:
            return self._turn([self.client.models.generate_content(**made)])
        return self._turn(list(self.client.models.generate_content_stream(**made)))

    def _content(self, said: Said) -> Any:
        if isinstance(said, str):
            return types.Content(role="user", parts=[types.Part(text=said)])
        if isinstance(said, Turn):
            return types.Content(role="model", parts=said.native)
        parts = [
            types.Part(
                function_response=types.FunctionResponse(
                    id=told.call.id or None,
                    name=told.call.name,
                    response={"error" if told.failed else "output": told.text},
                )
            )
            for told in said
        ]
        return types.Content(role="user", parts=parts)

    def _turn(self, got: list[Any]) -> Turn:
        parts = [part for each in got for part in (each.candidates[0].content.parts or ())]
        text = "".join(part.text or "" for part in parts)
        calls = [
            Asked(part.function_call.id or "", part.function_call.name, dict(part.function_call.args or {}))
            for part in parts
            if part.function_call
        ]
        reason = next(each.candidates[0].finish_reason for each in reversed(got) if each.candidates[0].finish_reason)
        stop = "length" if reason.name == "MAX_TOKENS" else "calls" if calls else "end"
        usage = got[-1].usage_metadata
        tokens = usage.prompt_token_count or 0, usage.candidates_token_count or 0
        return Turn(text, calls, stop, parts, tokens)


Client = Chat | Messages | Responses | Gemini
