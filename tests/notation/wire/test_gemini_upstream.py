"""What servers that speak the Gemini API do wrong, and how failures are told: content and reason decide, and a turn
that was cut off is never executed.
"""

from __future__ import annotations

from typing import Any

import pytest

from toolwise.core.chat import (
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
    OutcomeUnknown,
    Overloaded,
    Unauthenticated,
)
from toolwise.notation.wire import gemini as wire
from wire_talk import told


def told_by(*events: Any) -> ChatReply:
    reader = wire.reader()
    return gathered([*(delta for event in told(events) for delta in reader.push(event)), *reader.flush()])


def says(*parts: Any, reason: Any = None, **more: Any) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}} | ({"finishReason": reason} if reason else {})
    return {"candidates": [candidate | more]}


def calls(**call: Any) -> dict[str, Any]:
    return {"functionCall": {"name": "f"} | call}


def both(*parts: Any, reason: Any, **more: Any) -> list[ChatReply]:
    """The same turn whole, in one piece, and with its reason in a piece of its own."""
    alone = {"candidates": [{"finishReason": reason} | more]}
    whole = says(*parts, reason=reason, **more)
    return [wire.read_reply(whole), told_by(whole), told_by(says(*parts), alone)]


@pytest.mark.case("R9")
@pytest.mark.case("R10")
def test_a_call_may_have_no_arguments_and_no_id() -> None:
    for reply in both(calls(), calls(args=None), calls(args={"b": 1, "a": 2}), reason="STOP"):
        assert [call.arguments for call in reply.calls] == ["{}", "{}", '{"b":1,"a":2}']
        assert len({call.id for call in reply.calls if call.id}) == 3
        assert reply.stop is StopReason.CALLS


@pytest.mark.case("R20")
def test_ids_that_stand_twice_become_new_ones_also_over_pieces() -> None:
    part = calls(id="a", args={})
    for reply in (*both(part, part, reason="STOP"), told_by(says(part), says(part), says(reason="STOP"))):
        ids = [call.id for call in reply.calls]
        assert ids[0] == "a"
        assert len(set(ids)) == 2


@pytest.mark.case("R42")
@pytest.mark.parametrize(
    "reason", [None, "MAX_TOKENS", "OTHER", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "OF_ANOTHER_YEAR", 5]
)
def test_a_turn_that_did_not_come_to_its_end_is_cut_off(reason: Any) -> None:
    for reply in both(calls(), reason=reason):
        assert reply.stop is StopReason.LENGTH


@pytest.mark.parametrize("reason", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII", "BLOCKLIST"])
def test_a_turn_that_a_filter_ended_is_refused_and_executes_nothing(reason: str) -> None:
    for reply in both(calls(), reason=reason):
        assert reply.stop is StopReason.REFUSED


def test_a_prompt_that_is_blocked_is_refused() -> None:
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}}
    for reply in (wire.read_reply(blocked), told_by(blocked)):
        assert reply == ChatReply(stop=StopReason.REFUSED, usage=TokenUsage(3))


def test_a_malformed_call_is_one_that_has_no_name_and_can_be_told_to_the_model() -> None:
    for reply in both(reason="MALFORMED_FUNCTION_CALL", finishMessage="Malformed function call: print(f(1)"):
        assert [(call.name, call.arguments) for call in reply.calls] == [("", "Malformed function call: print(f(1)")]
        assert reply.stop is StopReason.CALLS
    for reply in both({"text": "f(1"}, reason="MALFORMED_FUNCTION_CALL"):
        assert (reply.text, reply.calls, reply.stop) == ("f(1", (), StopReason.LENGTH)


def test_thoughts_signatures_and_other_parts_are_passed_over() -> None:
    parts = [
        {"text": "hm", "thought": True},
        {"text": "Hi", "thoughtSignature": "c2ln"},
        {"executableCode": {"code": "1"}},
        "no part",
        {"text": 5},
    ]
    for reply in both(*parts, reason="STOP"):
        assert (reply.text, reply.calls, reply.stop) == ("Hi", (), StopReason.END)


def test_usage_is_what_the_last_piece_says_with_the_thoughts() -> None:
    first = says({"text": "a"}) | {"usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 1}}
    usage = {"promptTokenCount": 9, "candidatesTokenCount": 4, "thoughtsTokenCount": 6, "cachedContentTokenCount": 2}
    assert told_by(first, says(reason="STOP") | {"usageMetadata": usage}).usage == TokenUsage(9, 10, 2)
    assert told_by(first, says(reason="STOP")).usage == TokenUsage(9, 1)


@pytest.mark.parametrize(
    ("error", "status", "word"),
    [
        (BadInput("x"), 400, "INVALID_ARGUMENT"),
        (Unauthenticated("x"), 401, "UNAUTHENTICATED"),
        (Denied("x"), 403, "PERMISSION_DENIED"),
        (NotFound("x"), 404, "NOT_FOUND"),
        (LimitExceeded("x"), 413, "INVALID_ARGUMENT"),
        (BudgetExceeded("x"), 429, "RESOURCE_EXHAUSTED"),
        (OutcomeUnknown("x"), 500, "INTERNAL"),
        (Overloaded("x"), 503, "UNAVAILABLE"),
        (ModelUnavailable("x"), 503, "UNAVAILABLE"),
        (DeadlineExceeded("x"), 504, "DEADLINE_EXCEEDED"),
    ],
)
def test_errors_have_the_status_and_the_word_of_the_api(error: Any, status: int, word: str) -> None:
    assert wire.write_error(error) == (status, {"error": {"code": status, "message": "x", "status": word}})
