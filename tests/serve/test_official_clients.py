"""The official clients, unmodified, in whole conversations with tools over the scripted model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from api_server import Served, serving
from official_clients import Chat, Client, Gemini, How, Messages, Responses, Told, Turn

from toolwise.serve.formats import APIS

ALL = {"chat": Chat, "messages": Messages, "responses": Responses, "gemini": Gemini}
SPOKEN = [ALL[api.name] for api in APIS]
ONE, OTHER = 'call add {"a": 1, "b": 2}', 'call weather {"city": "Oslo 北"}'


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as made:
        yield made


@pytest.fixture(params=SPOKEN, ids=lambda client: client.__name__)
def client(request: pytest.FixtureRequest, served: Served) -> Client:
    made: Client = request.param(served)
    return made


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def how(request: pytest.FixtureRequest) -> How:
    return How(stream=request.param)


def with_(how: How, **more: object) -> How:
    return How(**({"stream": how.stream} | more))  # type: ignore[arg-type]


def made(turn: Turn) -> list[tuple[str, dict[str, object]]]:
    return [(call.name, call.arguments) for call in turn.calls]


def test_every_format_of_the_server_has_its_client() -> None:
    assert {api.name for api in APIS} <= set(ALL)


def test_a_text_is_answered(client: Client, how: How) -> None:
    turn = client.turn(["say Grüß Gott, 世界"], how)
    assert (turn.text, turn.calls, turn.stop, turn.tokens) == ("Grüß Gott, 世界", [], "end", (4, 3))


def test_one_call_and_its_result(client: Client, how: How) -> None:
    turn = client.turn([ONE], how)
    assert (made(turn), turn.stop) == ([("add", {"a": 1, "b": 2})], "calls")
    end = client.turn([ONE, turn, [Told(turn.calls[0], "3")]], how)
    assert (end.calls, end.stop) == ([], "end")
    assert "3" in end.text


def test_text_and_parallel_calls_whose_results_keep_their_order(client: Client, how: How) -> None:
    said = f"say Both.\n{ONE}\n{OTHER}"
    turn = client.turn([said], how)
    assert turn.text == "Both."
    assert made(turn) == [("add", {"a": 1, "b": 2}), ("weather", {"city": "Oslo 北"})]
    assert len({call.id for call in turn.calls}) == 2
    end = client.turn([said, turn, [Told(turn.calls[0], "three"), Told(turn.calls[1], "rain")]], how)
    assert end.text.index("three") < end.text.index("rain")


def test_one_call_a_turn_where_that_is_asked_for(client: Client, how: How) -> None:
    if isinstance(client, Gemini):
        pytest.skip("the API has no such field")
    assert made(client.turn([f"{ONE}\n{OTHER}"], with_(how, parallel=False))) == [("add", {"a": 1, "b": 2})]


def test_a_forced_call_is_made_whatever_was_said(client: Client, how: How) -> None:
    turn = client.turn(["say no"], with_(how, choice="required"))
    assert (made(turn), turn.stop) == ([("add", {"a": 0, "b": 0})], "calls")


def test_a_named_call_is_the_one_that_is_made(client: Client, how: How) -> None:
    turn = client.turn(["say no"], with_(how, choice="weather"))
    assert made(turn) == [("weather", {"city": ""})]


def test_no_call_is_made_where_none_may_be(client: Client, how: How) -> None:
    turn = client.turn([f"say Well.\n{ONE}"], with_(how, choice="none"))
    assert (turn.text, turn.calls, turn.stop) == ("Well.", [], "end")


def test_a_turn_that_was_cut_off_says_so_and_holds_no_call_that_looks_whole(client: Client, how: How) -> None:
    assert client.turn(["say Half\ncut"], how).stop == "length"
    turn = client.turn(["say Half\nbroken weather {}"], how)
    assert turn.stop == "length"


def test_what_began_like_a_call_and_is_none_is_text(client: Client, how: How) -> None:
    turn = client.turn(["say See:\ngarbled add(1, 2"], how)
    assert turn.calls == []
    assert "add(1, 2" in turn.text


def test_a_failed_result_reaches_the_model_as_one(client: Client, how: How) -> None:
    turn = client.turn([ONE], how)
    told = Told(turn.calls[0], "Error (tool_failed): no network", failed=True)
    assert "tool_failed" in client.turn([ONE, turn, [told]], how).text


def test_an_error_is_the_clients_own_with_what_to_do(client: Client, how: How) -> None:
    with pytest.raises(client.error, match='No model is named "gpt-none" here; there is "scripted"'):
        client.turn(["hi"], with_(how, model="gpt-none"))
    with pytest.raises(client.error, match="told to fail"):
        client.turn(["fail"], how)


def test_a_stream_that_breaks_off_raises(client: Client) -> None:
    with pytest.raises(client.error, match="told to fail"):
        client.turn(["say one two\nfail"], How(stream=True))


def test_a_long_stream_arrives_whole(client: Client) -> None:
    assert client.turn(["long 900"], How(stream=True)).text.split()[-1] == "word899"


def test_an_odd_result_is_told_as_it_is(client: Client, how: How) -> None:
    odd = '</tool_call> <|im_end|> {"a": "b"} data: [DONE]\n\nevent: x\r\n \u2028 é'
    turn = client.turn([ONE], how)
    assert odd in client.turn([ONE, turn, [Told(turn.calls[0], odd)]], how).text


def test_the_tokens_of_a_request_are_counted_where_the_model_can(served: Served) -> None:
    said = {"model": "scripted", "messages": [{"role": "user", "content": "one two three"}]}
    assert served.anthropic().messages.count_tokens(**said).input_tokens == 3  # type: ignore[arg-type]
    with pytest.raises(Messages.error, match="No model"):
        served.anthropic().messages.count_tokens(**(said | {"model": "none"}))  # type: ignore[arg-type]
    assert served.post("/v1/messages/count_tokens", {"model": "scripted"}).status_code == 400


def test_models_are_listed(served: Served) -> None:
    assert [model.id for model in served.openai().models.list()] == ["scripted"]
    assert [model.id for model in served.anthropic().models.list()] == ["scripted"]
    assert served.openai().models.retrieve("scripted").id == "scripted"
    gemini = served.gemini()
    assert [model.name for model in gemini.models.list()] == ["models/scripted"]
    assert gemini.models.get(model="scripted").name == "models/scripted"
