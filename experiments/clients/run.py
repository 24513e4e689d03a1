"""Clients of others, unmodified, in whole conversations with tools against `toolwise serve`. Prints Markdown.

    toolwise serve --model smollm2-135m --port 8000 --tools Calculator
    python run.py http://127.0.0.1:8000 smollm2-135m

What a small model says is not judged here, only whether every conversation is one: calls that name a tool, arguments
that fit, results that are taken, streams that say what the whole reply says, errors that the client knows. With the
model `scripted`, which does what its prompt orders, the very answers are compared.
"""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Callable
from typing import Any, Literal

import anthropic
import openai
from google import genai
from google.genai import types
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

URL, MODEL = sys.argv[1].rstrip("/"), sys.argv[2]
SCRIPTED = MODEL == "scripted"
SHORT = {"max_tokens": 64, "temperature": 0}
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


class Sum(BaseModel):
    """What two numbers make."""

    total: int
    unit: Literal["apples", "pears"]


@tool
def add(a: int, b: int) -> str:
    """Adds two whole numbers."""
    return str(a + b)


def order(scripted: str, asked: str) -> str:
    return scripted if SCRIPTED else asked


ASK = order('call add {"a": 2, "b": 3}', "What is 2 + 3? Use the tool.")
TWICE = order('call add {"a": 2, "b": 3}\ncall add {"a": 4, "b": 5}', "Add 2 and 3, and add 4 and 5.")


# LangChain


def langchain(**more: Any) -> ChatOpenAI:
    return ChatOpenAI(base_url=f"{URL}/v1", api_key="none", model=MODEL, **SHORT, **more)


def langchain_story(text: str, **bound: Any) -> None:
    """A question, a forced call, its result, and an answer."""
    chat = langchain()
    said: list[Any] = [HumanMessage(text)]
    turn = chat.bind_tools([add], **bound).invoke(said)
    assert turn.tool_calls, turn
    said.append(turn)
    for call in turn.tool_calls:
        said.append(ToolMessage(add.invoke(call["args"]), tool_call_id=call["id"]))
    answer = chat.bind_tools([add], tool_choice="none").invoke(said)
    assert not answer.tool_calls
    if SCRIPTED:
        assert answer.content.startswith("The results: 5"), answer


def langchain_single() -> None:
    langchain_story(ASK, tool_choice="required")


def langchain_named() -> None:
    langchain_story(ASK, tool_choice="add")


def langchain_parallel() -> None:
    turn = langchain().bind_tools([add], tool_choice="required").invoke(TWICE)
    assert len(turn.tool_calls) == 2 if SCRIPTED else turn.tool_calls


def langchain_one_at_a_time() -> None:
    turn = langchain().bind_tools([add], tool_choice="required", parallel_tool_calls=False).invoke(TWICE)
    assert len(turn.tool_calls) == 1


def langchain_strict() -> None:
    langchain_story(ASK, tool_choice="required", strict=True)


def langchain_stream() -> None:
    chat = langchain().bind_tools([add], tool_choice="required")
    whole = None
    for piece in chat.stream(ASK):
        whole = piece if whole is None else whole + piece
    assert whole is not None
    assert [call["args"] for call in whole.tool_calls] == [call["args"] for call in chat.invoke(ASK).tool_calls]


def langchain_structured() -> None:
    found = langchain().with_structured_output(Sum).invoke(order("say it", "2 and 3 apples: how many?"))
    assert isinstance(found, Sum)


# pydantic-ai


def agent(kind: type = OpenAIChatModel, **more: Any) -> Agent:
    provider = OpenAIProvider(base_url=f"{URL}/v1", api_key="none")
    return Agent(kind(MODEL, provider=provider), model_settings=SHORT, **more)


def pydantic_ai_tools(kind: type = OpenAIChatModel) -> None:
    made, ran = agent(kind), []

    @made.tool_plain
    def add(a: int, b: int) -> int:
        """Adds two whole numbers."""
        ran.append((a, b))
        return a + b

    answer = made.run_sync(ASK).output
    assert isinstance(answer, str)
    if SCRIPTED:
        assert ran == [(2, 3)]
        assert answer == "The results: 5"


def pydantic_ai_responses() -> None:
    pydantic_ai_tools(OpenAIResponsesModel)


def pydantic_ai_output() -> None:
    """A typed answer, which pydantic-ai asks for as a forced call."""
    found = agent(output_type=Sum, retries=3).run_sync(order("say it", "2 and 3 apples: how many?")).output
    assert isinstance(found, Sum)


def pydantic_ai_stream() -> None:
    async def story() -> str:
        async with agent().run_stream(order("say a few words", "Say hello.")) as run:
            return "".join([piece async for piece in run.stream_text(delta=True)])

    said = asyncio.run(story())
    assert said if not SCRIPTED else said == "a few words"


# The official clients, once more from an environment that has no toolwise


def openai_client() -> None:
    client = openai.OpenAI(base_url=f"{URL}/v1", api_key="none")
    function = {"name": "add", "parameters": SCHEMA, "strict": True}
    reply = client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": ASK}],
        tools=[{"type": "function", "function": function}],
        tool_choice="required",
        **SHORT,
    )
    (call, *_) = reply.choices[0].message.tool_calls or []
    assert call.function.name == "add"
    made = client.responses.create(model=MODEL, input=order("say yes", "Say yes."), max_output_tokens=16)
    assert made.output_text or made.status == "incomplete"
    try:
        client.chat.completions.create(model="another", messages=[{"role": "user", "content": "?"}])
    except openai.NotFoundError:
        return
    raise AssertionError("another model was served")


def anthropic_client() -> None:
    client = anthropic.Anthropic(base_url=URL, api_key="none")
    tools = [{"name": "add", "description": "Adds.", "input_schema": SCHEMA}]
    said: list[Any] = [{"role": "user", "content": ASK}]
    reply = client.messages.create(model=MODEL, max_tokens=64, messages=said, tools=tools, tool_choice={"type": "any"})
    uses = [block for block in reply.content if block.type == "tool_use"]
    assert uses
    assert set(uses[0].input) == {"a", "b"}
    results = [{"type": "tool_result", "tool_use_id": use.id, "content": "no", "is_error": True} for use in uses]
    said += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": results}]
    with client.messages.stream(model=MODEL, max_tokens=64, messages=said, tools=tools) as stream:
        assert stream.get_final_message().stop_reason in ("end_turn", "max_tokens", "tool_use")


def gemini_client() -> None:
    client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=URL))
    declared = types.FunctionDeclaration(name="add", description="Adds.", parameters_json_schema=SCHEMA)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declared])],
        tool_config=types.ToolConfig(function_calling_config=types.FunctionCallingConfig(mode="ANY")),
        max_output_tokens=64,
        temperature=0,
    )
    reply = client.models.generate_content(model=MODEL, contents=ASK, config=config)
    assert reply.function_calls
    assert set(reply.function_calls[0].args or {}) == {"a", "b"}
    pieces = client.models.generate_content_stream(
        model=MODEL,
        contents=order("say a few words", "Say hello."),
        config=types.GenerateContentConfig(max_output_tokens=16, temperature=0),
    )
    assert "".join(piece.text or "" for piece in pieces)


STORIES: tuple[Callable[[], None], ...] = (
    *(openai_client, anthropic_client, gemini_client),
    *(langchain_single, langchain_named, langchain_parallel, langchain_one_at_a_time),
    *(langchain_strict, langchain_stream, langchain_structured),
    *(pydantic_ai_tools, pydantic_ai_responses, pydantic_ai_output, pydantic_ai_stream),
)


def main() -> int:
    failed = 0
    sys.stdout.write(f"| {MODEL} | |\n|---|---|\n")
    for story in STORIES:
        try:
            story()
            said = "as it should"
        except Exception as error:  # noqa: BLE001 - each story is told
            failed += 1
            said = f"{type(error).__name__}: {str(error)[:200]}"
            traceback.print_exc()
        sys.stdout.write(f"| {story.__name__} | {said} |\n")
        sys.stdout.flush()
    return failed


if __name__ == "__main__":
    sys.exit(main())
