"""What servers that speak Anthropic's Messages do wrong, and how failures are told: content and reason decide, and a
turn that was cut off is never executed.
"""

from __future__ import annotations

from typing import Any

import pytest

from toolwise.core.chat import (
    ChatCall,
    ChatReply,
    StopReason,
    TokenUsage,
    gathered,
)
from toolwise.core.errors import (
    BadInput,
    BudgetExceeded,
    DeadlineExceeded,
    Denied,
    LimitExceeded,
    ModelUnavailable,
    NotFound,
    Overloaded,
    StorageUnavailable,
    Unauthenticated,
)
from toolwise.notation.wire import anthropic as wire
from wire_talk import told


def told_by(*events: Any) -> ChatReply:
    reader = wire.reader()
    return gathered([*(delta for event in told(events) for delta in reader.push(event)), *reader.flush()])


BEGUN = {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}}
CALL = {"type": "tool_use", "id": "a", "name": "f", "input": {}}


def begins(block: Any, index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def grows(words: str, index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": words}}


def stops(index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def ends(reason: Any, **usage: int) -> list[dict[str, Any]]:
    return [{"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}, {"type": "message_stop"}]


@pytest.mark.case("R25")
@pytest.mark.parametrize("reason", ["end_turn", "tool_use"])
def test_calls_are_calls_whichever_of_the_two_reasons_is_given(reason: str) -> None:
    streamed = told_by(BEGUN, begins(CALL), grows('{"x":1}'), stops(), *ends(reason, output_tokens=9))
    assert (streamed.stop, streamed.calls) == (StopReason.CALLS, (ChatCall("a", "f", '{"x":1}'),))
    assert streamed.usage == TokenUsage(5, 9)
    whole = wire.read_reply({"content": [{**CALL, "input": {"x": 1}}], "stop_reason": reason})
    assert (whole.stop, whole.calls) == (streamed.stop, streamed.calls)


@pytest.mark.case("R25")
def test_a_reason_without_calls_is_an_end() -> None:
    assert told_by(BEGUN, *ends("tool_use")).stop is StopReason.END
    assert wire.read_reply({"content": [], "stop_reason": "tool_use"}).stop is StopReason.END


@pytest.mark.case("R25")
@pytest.mark.case("R10")
@pytest.mark.parametrize(("input", "arguments"), [({}, "{}"), (None, "{}"), ({"b": 1, "a": 2}, '{"b":1,"a":2}')])
def test_arguments_that_no_piece_brought_are_those_of_the_start(input: Any, arguments: str) -> None:
    reply = told_by(BEGUN, begins({**CALL, "input": input}), stops(), *ends("end_turn"))
    assert reply.calls == (ChatCall("a", "f", arguments),)
    assert reply.stop is StopReason.CALLS


@pytest.mark.case("R42")
@pytest.mark.parametrize(
    "events",
    [
        [begins(CALL), grows('{"to":"b'), stops(), *ends("tool_use")],
        [begins(CALL), grows('{"to":"b"}'), *ends("tool_use")],
        [begins(CALL), grows('{"to":"b"}')],
        [begins(CALL), grows("{}"), stops(), begins({**CALL, "id": "b"}, 1), grows("{", 1), *ends("max_tokens")],
        [begins(CALL), grows("{}"), stops(), *ends("max_tokens")],
        [begins(CALL), grows("{}"), stops(), *ends("pause_turn")],
        [begins(CALL), grows("{}"), stops(), *ends("model_context_window_exceeded")],
        [begins(CALL), grows("{}"), stops(), *ends("of another year")],
        [begins(CALL), grows("{}"), stops(), *ends(None)],
        [begins(CALL), grows("{}"), stops()],
    ],
)
def test_a_turn_that_did_not_come_to_its_end_is_cut_off_whatever_it_says(events: list[Any]) -> None:
    assert told_by(BEGUN, *events).stop is StopReason.LENGTH


@pytest.mark.case("A11")
def test_a_call_that_was_cut_off_is_not_complete() -> None:
    reply = told_by(BEGUN, begins(CALL), grows('{"to":"b'), stops(), *ends("max_tokens"))
    assert reply.calls == (ChatCall("a", "f", '{"to":"b', complete=False),)


@pytest.mark.case("R42")
def test_a_refusal_and_a_stop_string_execute_nothing() -> None:
    for reason, stop in [("refusal", StopReason.REFUSED), ("stop_sequence", StopReason.STOP)]:
        assert told_by(BEGUN, begins(CALL), grows("{}"), stops(), *ends(reason)).stop is stop
        assert wire.read_reply({"content": [CALL], "stop_reason": reason}).stop is stop


@pytest.mark.case("R20")
def test_ids_that_are_empty_or_stand_twice_become_new_ones() -> None:
    blocks = [CALL, CALL, {**CALL, "id": ""}, {**CALL, "id": None}]
    whole = wire.read_reply({"content": blocks, "stop_reason": "tool_use"})
    events = [event for number, block in enumerate(blocks) for event in (begins(block, number), stops(number))]
    for reply in (whole, told_by(BEGUN, *events, *ends("tool_use"))):
        ids = [call.id for call in reply.calls]
        assert ids[0] == "a"
        assert len(set(ids)) == 4
        assert all(ids)


def test_pings_thoughts_and_blocks_of_the_server_are_passed_over() -> None:
    thought = {"type": "thinking", "thinking": "", "signature": ""}
    reply = told_by(
        BEGUN,
        {"type": "ping"},
        begins(thought),
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        stops(),
        begins({"type": "text", "text": "H"}, 1),
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "i"}},
        stops(1),
        {"type": "of another year"},
        *ends("end_turn", output_tokens=2, input_tokens=7, cache_read_input_tokens=3),
    )
    assert reply == ChatReply("Hi", usage=TokenUsage(10, 2, 3))


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (BadInput("x"), 400, "invalid_request_error"),
        (Unauthenticated("x"), 401, "authentication_error"),
        (Denied("x"), 403, "permission_error"),
        (NotFound("x"), 404, "not_found_error"),
        (LimitExceeded("x"), 413, "request_too_large"),
        (BudgetExceeded("x"), 429, "rate_limit_error"),
        (StorageUnavailable("x"), 503, "api_error"),
        (ModelUnavailable("x"), 503, "api_error"),
        (DeadlineExceeded("x"), 504, "timeout_error"),
        (Overloaded("x"), 529, "overloaded_error"),
    ],
)
def test_errors_have_the_status_and_the_type_of_the_api(error: Any, status: int, kind: str) -> None:
    assert wire.write_error(error) == (status, {"type": "error", "error": {"type": kind, "message": "x"}})
