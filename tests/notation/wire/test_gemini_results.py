"""Calls and results of the Gemini API: paired by id, or by name and order, and refused where they do not fit."""

from __future__ import annotations

from typing import Any

import pytest

from toolwise.core.errors import BadInput
from toolwise.notation.wire import gemini as wire


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def model(*parts: Any) -> dict[str, Any]:
    return user(*parts) | {"role": "model"}


def asks(name: str, id: str | None = None, **arguments: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": arguments} | ({} if id is None else {"id": id})}


def result(name: str, response: Any = None, id: str | None = None) -> dict[str, Any]:
    told = {"name": name, "response": {"output": "done"} if response is None else response}
    return {"functionResponse": told | ({} if id is None else {"id": id})}


def body(*contents: Any, **fields: Any) -> dict[str, Any]:
    return {"contents": list(contents or [user("Hello")]), **fields}


def test_calls_without_ids_are_answered_by_name_and_order() -> None:
    turn = model(asks("f", n=1), asks("g"), asks("f", n=2))
    answers = user(result("f", {"output": "1"}), result("f", {"output": "2"}), result("g", {"output": "3"}))
    messages = wire.read_request(body(user("go"), turn, answers)).messages
    assert [message.text for message in messages[2:]] == ["1", "3", "2"]
    assert [message.call_id for message in messages[2:]] == [call.id for call in messages[1].calls]
    assert len({call.id for call in messages[1].calls}) == 3


@pytest.mark.parametrize(
    "contents",
    [
        [user("go"), model(asks("f"), asks("g")), user(result("f"))],
        [user("go"), model(asks("f"))],
        [user("go"), model(asks("f")), user("never mind")],
        [user("go"), model(asks("f")), user(result("f"), result("f"))],
        [user("go"), model(asks("f")), user(result("g"))],
        [user("go"), user(result("f"))],
    ],
    ids=[
        "one missing",
        "all missing",
        "passed over",
        "twice",
        "unknown",
        "no call",
    ],
)
@pytest.mark.case("R19")
@pytest.mark.case("R20")
def test_every_call_has_one_result_in_the_next_content_also_without_ids(contents: list[Any]) -> None:
    with pytest.raises(BadInput):
        wire.read_request(body(*contents))


def test_an_id_that_was_made_up_makes_way_for_one_that_was_given() -> None:
    turn = model(asks("f"), asks("f", "call_0"))
    messages = wire.read_request(body(user("go"), turn, user(result("f", id="call_0"), result("f")))).messages
    assert len({call.id for call in messages[1].calls}) == 2


def test_a_turn_that_was_streamed_may_come_in_several_contents_with_its_thoughts() -> None:
    thought = {"text": "hm", "thought": True}
    contents = [user("go"), model(thought), model("I "), model("look."), model(asks("f")), user(result("f"))]
    messages = wire.read_request(body(*contents)).messages
    assert [message.text for message in messages] == ["go", "I look.", "done"]
    assert [call.name for call in messages[1].calls] == ["f"]


@pytest.mark.parametrize(
    ("response", "text", "failed"),
    [
        ({"output": "warm"}, "warm", False),
        ({"result": 5}, "5", False),
        ({"result": {"b": 1, "a": [2]}}, '{"b":1,"a":[2]}', False),
        ({"town": "Bergen", "degrees": 11}, '{"town":"Bergen","degrees":11}', False),
        ({"error": "no such town"}, "no such town", True),
        ({"error": {"code": 5}}, '{"code":5}', True),
        ({"error": "x", "hint": "y"}, '{"error":"x","hint":"y"}', True),
        ({"error": None, "output": 1}, '{"error":null,"output":1}', False),
        ({}, "{}", False),
    ],
)
@pytest.mark.case("R36")
def test_a_result_is_read_from_the_keys_that_clients_put_it_under(response: Any, text: str, failed: bool) -> None:
    message = wire.read_request(body(user("go"), model(asks("f")), user(result("f", response)))).messages[-1]
    assert (message.text, message.is_error) == (text, failed)


@pytest.mark.case("R36")
def test_a_failure_is_sent_under_its_own_key_and_told_in_the_text() -> None:
    request = wire.read_request(body(user("go"), model(asks("f", "a")), user(result("f", {"error": "none"}, "a"))))
    sent = wire.write_request(request)["contents"][-1]["parts"][0]["functionResponse"]
    assert sent == {"id": "a", "name": "f", "response": {"error": "Error (tool_failed): none"}}
