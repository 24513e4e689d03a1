"""What holds in every wire format, whole and streamed: each call has its one result, a turn that was cut runs nothing,
and failures are told as what they are. That what was written is read stands in `test_round_trips.py`.
"""

from __future__ import annotations

from typing import Any

import pytest
from formats import ASKED, Format, answered, as_streamed, as_whole, every_format, read_again, read_events

from toolwise.core.chat import (
    ChatCall,
    ChatReply,
    Message,
    ReplyEnded,
    Role,
    StopReason,
    TextDelta,
    pieces,
)
from toolwise.core.errors import LEAVES, BadInput, ModelUnavailable, Overloaded, ToolwiseError
from toolwise.notation.wire.base import Event
from wire_talk import IDENT, written

NO_REPLIES: list[Any] = [
    *({"content": "x"}, {"choices": []}, {"choices": [{"message": "x"}]}, {"candidates": []}, {"candidates": ["x"]}),
    *({"output": 3}, {"status": "failed", "output": [], "error": {"message": "x"}}),
]
both_ways = pytest.mark.parametrize("sent", [as_streamed, as_whole])


# Calls and their results, as clients send them


@pytest.mark.case("R19")
@every_format
def test_results_are_read_in_the_order_of_their_calls(format: Format) -> None:
    sent = [*format.user("go"), *format.asks(["a", "b"], "{}"), *format.results([("b", "2"), ("a", "1")])]
    messages = format.wire.read_request(format.body([*sent, *format.user("on")])).messages
    assert [message.text for message in messages] == ["go", "", "1", "2", "on"]


@pytest.mark.case("R19")
@pytest.mark.case("R20")
@pytest.mark.parametrize(
    ("asked", "after"),
    [
        (["a", "b"], ["a"]),
        (["a"], []),
        (["a"], ["never mind"]),
        (["a"], ["never mind", "a"]),
        (["a"], ["a", "a"]),
        (["a"], ["b"]),
        ([], ["a"]),
        (["a", "a"], ["a"]),
    ],
    ids=["one missing", "all missing", "passed over", "late", "twice", "unknown", "without a call", "one id"],
)
@every_format
def test_every_call_has_one_result_before_anything_else_is_said(
    format: Format, asked: list[str], after: list[str]
) -> None:
    sent = [*format.user("go"), *(format.asks(asked, "{}") if asked else [])]
    for said in after:
        sent += format.results([(said, "done")]) if said in "ab" else format.user(said)
    with pytest.raises(BadInput):
        format.wire.read_request(format.body(sent))


@every_format
def test_results_may_come_in_two_messages_and_ids_again_in_another_turn(format: Format) -> None:
    sent = [*format.user("go"), *format.asks(["a", "b"], "{}")]
    sent += [*format.results([("a", "1")]), *format.results([("b", "2")])]
    sent += [*format.asks(["a"], "{}"), *format.results([("a", "3")])]
    messages = format.wire.read_request(format.body(sent)).messages
    assert [message.call_id for message in messages if message.role is Role.TOOL] == ["a", "b", "a"]


@pytest.mark.case("R11")
@pytest.mark.parametrize("arguments", ["", " ", "null", "{}"])
@every_format
def test_a_call_without_arguments_has_an_empty_object_in_history(format: Format, arguments: str) -> None:
    sent = [*format.user("go"), *format.asks(["a"], arguments), *format.results([("a", "1")])]
    assert format.wire.read_request(format.body(sent)).messages[1].calls == (ChatCall("a", "f", "{}"),)
    assert read_again(format, *answered(ChatCall("a", "f", arguments)))[1].calls == (ChatCall("a", "f", "{}"),)


@pytest.mark.case("R9")
@pytest.mark.parametrize("arguments", ["", "  ", "null", "{}"])
@both_ways
@every_format
def test_a_call_without_arguments_has_an_empty_object(format: Format, sent: Any, arguments: str) -> None:
    [call] = sent(format, ChatReply("", (ChatCall("a", "f", arguments),), StopReason.CALLS)).calls
    assert (call.name, call.arguments) == ("f", "{}")


@pytest.mark.case("R36")
@every_format
def test_a_failure_is_told_in_the_text_of_its_result_and_read_again(format: Format) -> None:
    *history, _ = answered(ChatCall("a", "f", "{}"))
    for said in ("no such town", "Error (tool_failed): no such town"):
        result = read_again(format, *history, Message(Role.TOOL, said, call_id="a", is_error=True))[-1]
        assert (result.text, result.is_error) == ("Error (tool_failed): no such town", True)
    fine = Message(Role.TOOL, "The log says Error (timeout): x", call_id="a")
    assert read_again(format, *history, fine)[-1] == fine


@every_format
def test_a_history_that_a_server_would_refuse_is_not_sent(format: Format) -> None:
    with pytest.raises(BadInput):
        read_again(format, Message(Role.USER, "go"), Message(Role.ASSISTANT, "", (ChatCall("a", "f", "{}"),)))


# What is no call


@pytest.mark.case("R42")
@pytest.mark.parametrize("stop", [StopReason.CALLS, StopReason.END, StopReason.STOP, StopReason.LENGTH])
@pytest.mark.parametrize("arguments", ['{"to": "carol', '{"a":1', '{"a":1}'])
@both_ways
@every_format
def test_a_turn_in_which_a_call_never_ended_is_told_as_cut_off(
    format: Format, sent: Any, arguments: str, stop: StopReason
) -> None:
    whole, broken = ChatCall("1", "add", "{}"), ChatCall("2", "add", arguments, complete=False)
    for calls in ((broken,), (whole, broken), (broken, whole)):
        assert sent(format, ChatReply("Hm.", calls, stop)).stop is StopReason.LENGTH
    assert sent(format, ChatReply("Hm.", (whole,), StopReason.CALLS)).stop is StopReason.CALLS


@every_format
def test_no_client_is_told_to_run_a_call_that_never_ended(format: Format) -> None:
    broken = ChatCall("1", "add", '{"to": "carol', complete=False)
    writer = format.wire.writer(ASKED, IDENT)
    *_, ending = [writer.push(delta) for delta in pieces(ChatReply("", (broken,), StopReason.CALLS))]
    said = "".join(event.data for event in ending)
    assert not any(word in said for word in ('"tool_use"', '"tool_calls"', '"STOP"', '"status":"completed"'))


@both_ways
@every_format
def test_what_began_like_a_call_and_is_none_is_shown_as_text(format: Format, sent: Any) -> None:
    reply = sent(format, ChatReply("a ", (ChatCall("1", "", "<tool_call>x"),), StopReason.CALLS))
    assert (reply.text, reply.calls) == ("a <tool_call>x", ())
    # Gemini's API has a word of its own for it, and whoever reads that runs nothing of the turn.
    assert reply.stop is (StopReason.LENGTH if format.name == "gemini" else StopReason.END)


@pytest.mark.case("R11")
@every_format
def test_a_history_with_what_is_no_call_says_it_and_what_was_told_of_it_as_texts(format: Format) -> None:
    made = [ChatCall(id, "f", text) for id, text in (("a", ""), ("b", " null"), ("c", '{"x":'), ("d", "[1]"))]
    *messages, last = read_again(format, *answered(*made, ChatCall("e", "", "<tool_call>"), text="so "))
    assert [call.arguments for message in messages for call in message.calls] == ["{}", "{}"]
    said = " ".join(message.text for message in (*messages, last))
    for words in ("so ", 'f {"x":', "f [1]", "<tool_call>", "result c", "result d", "result e"):
        assert words in said
    assert (last.role, last.text[-8:]) == (Role.USER, "result e")
    assert [message.text for message in messages if message.role is Role.TOOL] == ["result a", "result b"]


# How turns end


@pytest.mark.case("R42")
@pytest.mark.parametrize("stop", [StopReason.LENGTH, StopReason.REFUSED])
@both_ways
@every_format
def test_a_turn_that_was_cut_or_declined_stays_so_and_its_calls_are_not_to_be_run(
    format: Format, sent: Any, stop: StopReason
) -> None:
    assert sent(format, ChatReply("a", stop=stop)).stop is stop
    assert sent(format, ChatReply("a", (ChatCall("1", "f", "{}"),), stop)).stop is stop


@every_format
def test_a_stream_that_breaks_off_is_cut(format: Format) -> None:
    assert format.wire.reader().flush() == [ReplyEnded(StopReason.LENGTH)]
    begun = format.wire.writer(ASKED, IDENT).push(TextDelta("a"))
    assert read_events(format, begun) == ChatReply("a", stop=StopReason.LENGTH)


@every_format
def test_nothing_follows_an_end(format: Format) -> None:
    writer, reader = format.wire.writer(ASKED, IDENT), format.wire.reader()
    events = written(writer, pieces(ChatReply("a")))
    found = [*(delta for event in events for delta in reader.push(event)), *reader.flush()]
    assert [type(delta) for delta in found] == [TextDelta, ReplyEnded]
    assert reader.flush() == []
    assert [delta for event in events for delta in reader.push(event)] == []
    assert writer.push(TextDelta("b")) == writer.fail(ModelUnavailable("gone")) == []


# Failures


@pytest.mark.parametrize("begun", [[], [TextDelta("a")]], ids=["at once", "in the middle"])
@every_format
def test_a_failure_in_a_stream_is_told_once_and_raised_by_who_can_act(format: Format, begun: list[TextDelta]) -> None:
    for error, raised in [(BadInput("too long"), BadInput), (Overloaded("busy"), ModelUnavailable)]:
        writer, reader = format.wire.writer(ASKED, IDENT), format.wire.reader()
        events = [*written(writer, begun), *writer.fail(error)]
        assert writer.push(ReplyEnded(StopReason.END)) == writer.fail(error) == []
        with pytest.raises(raised, match=str(error)):
            for event in events:
                reader.push(event)


@pytest.mark.parametrize("leaf", LEAVES)
@every_format
def test_every_error_has_its_status_and_says_what_it_is(format: Format, leaf: type[ToolwiseError]) -> None:
    status, body = format.wire.write_error(leaf("It is so."))
    assert 400 <= status < 600
    assert body["error"]["message"] == "It is so."


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "too long.\nreally"}},
        {"message": "too long. really"},
        {"error": "too long. really"},
        "too long. really",
        {"detail": "too long. really"},
    ],
)
@every_format
def test_what_a_server_says_of_an_error_is_kept_on_one_line(format: Format, body: Any) -> None:
    error = format.wire.read_error(400, body)
    assert isinstance(error, BadInput)
    assert "too long. really" in str(error)
    assert isinstance(format.wire.read_error(500, body), ModelUnavailable)


@pytest.mark.parametrize("status", [401, 403])
@every_format
def test_what_a_server_says_of_a_key_is_not_repeated(format: Format, status: int) -> None:
    error = format.wire.read_error(status, {"error": {"message": "Incorrect API key: sk-secret"}})
    assert isinstance(error, ModelUnavailable)
    assert "sk-secret" not in str(error)


@pytest.mark.parametrize(
    "body",
    [
        *(None, 3, "gone", [], {"error": "gone"}, {"error": None}, {"error": {"message": 5}}, {"error": {"code": "x"}}),
        *({"detail": "x"}, [{"error": {"code": 4}}]),
    ],
)
@every_format
def test_an_error_in_any_shape_is_one(format: Format, body: Any) -> None:
    assert isinstance(format.wire.read_error(400, body), BadInput)
    for status in (401, 403, 502):
        assert isinstance(format.wire.read_error(status, body), ModelUnavailable)


# Other than the API says


@pytest.mark.parametrize("body", [None, [], "x", {}, {"error": {}}, {"error": {"message": "x"}}, *NO_REPLIES])
@every_format
def test_a_body_that_breaks_the_api_is_the_servers_fault(format: Format, body: Any) -> None:
    with pytest.raises(ModelUnavailable):
        format.wire.read_reply(body)


@pytest.mark.parametrize(
    "data", ["x", "{", "[]", "1", '{"choices": NaN, "candidates": NaN, "type": NaN}', '{"a":1,"a":1}']
)
@every_format
def test_an_event_that_breaks_the_api_is_the_servers_fault(format: Format, data: str) -> None:
    with pytest.raises(ModelUnavailable):
        format.wire.reader().push(Event(data))
