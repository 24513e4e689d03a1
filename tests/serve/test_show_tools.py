"""A server that shows its model those of many tools that fit, to an official client that knows nothing of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from api_server import ADD, Served, serving

from toolwise.decode.catalogued import Catalogued
from toolwise.models.scripted_chat import ScriptedChat

TOOLS: list[Any] = [
    {"type": "function", "function": {"name": f"add_{fruit}", "description": f"Adds {fruit}.", "parameters": ADD}}
    for fruit in ("apples", "pears", "plums", "figs", "dates", "limes")
]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving([Catalogued(ScriptedChat(), most=2)]) as made:
        yield made


def answer(served: Served, text: str, **more: Any) -> Any:
    messages: list[Any] = [{"role": "user", "content": text}]
    client = served.openai()
    return client.chat.completions.create(model="scripted", messages=messages, tools=TOOLS, **more).choices[0]


def test_a_tool_that_fits_is_called_among_many(served: Served) -> None:
    choice = answer(served, 'call add_figs {"a": 1, "b": 2}')
    assert choice.finish_reason == "tool_calls"
    assert [call.function.name for call in choice.message.tool_calls] == ["add_figs"]


def test_the_client_never_sees_the_search(served: Served) -> None:
    choice = answer(served, 'call find_tools {"query": "plums"}')
    assert (choice.finish_reason, choice.message.tool_calls) == ("stop", None)
    assert choice.message.content == "The results: add_plums: Adds plums."


def test_a_tool_that_is_named_is_called_whether_it_fits_or_not(served: Served) -> None:
    choice = answer(served, "hello", tool_choice={"type": "function", "function": {"name": "add_limes"}})
    assert [call.function.name for call in choice.message.tool_calls] == ["add_limes"]
