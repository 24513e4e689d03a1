"""The official clients in conversations with the real small model: what it says is its own, but its calls fit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from api_server import Served, metric, serving, until
from official_clients import Chat, Client, Gemini, How, Messages, Responses, Told

pytestmark = pytest.mark.model
NAME = "smollm2-135m"
FEW = {Chat: {"max_tokens": 12}, Messages: {"max_tokens": 12}, Responses: {"max_output_tokens": 12}}


@pytest.fixture(scope="module")
def served(smollm2: Path) -> Iterator[Served]:
    from toolwise.decode.load import load_chat

    with serving([load_chat(NAME)], places=4) as made:
        yield made


@pytest.fixture(params=[Chat, Messages, Responses, Gemini], ids=lambda client: client.__name__)
def client(request: pytest.FixtureRequest, served: Served) -> Client:
    made: Client = request.param(served)
    return made


def how(client: Client, **more: object) -> How:
    few = FEW.get(type(client), {"max_output_tokens": 12})
    return How(**({"model": NAME, "more": few} | more))  # type: ignore[arg-type]


def test_an_answer_is_the_same_whole_and_streamed(client: Client) -> None:
    whole = client.turn(["Say hello."], how(client, tools=()))
    streamed = client.turn(["Say hello."], how(client, tools=(), stream=True))
    assert whole.text == streamed.text != ""
    assert (whole.stop, whole.tokens[1]) == (streamed.stop, streamed.tokens[1])  # Anthropic counts what is cached apart
    assert 0 < whole.tokens[1] <= 12


@pytest.mark.parametrize("stream", [False, True])
def test_a_forced_call_fits_its_schema_and_its_result_is_answered(client: Client, stream: bool) -> None:
    asked = "What is the weather in Oslo?"
    turn = client.turn([asked], how(client, tools=("weather",), choice="weather", stream=stream, more={}))
    (call,) = turn.calls
    assert (call.name, set(call.arguments), turn.stop) == ("weather", {"city"}, "calls")
    assert isinstance(call.arguments["city"], str)
    end = client.turn([asked, turn, [Told(call, "rain")]], how(client, tools=("weather",), choice="none"))
    assert (end.calls, end.text != "") == ([], True)


def test_eight_clients_at_once_each_have_their_own_answer(served: Served) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def ask(word: str) -> str:
        chat = Chat(served)
        return chat.turn([f"Repeat: {word}"], how(chat, tools=(), stream=True)).text

    words = ["red", "green", "blue", "black"]
    alone = [ask(word) for word in words]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(ask, words * 2))
    assert together == alone * 2
    until(lambda: metric(served.get("/metrics").text, "toolwise_places_taken") == 0)
