"""A model behind a server: both formats on the loopback, well and badly behaved, asked over HTTP."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from agent_runs import Desk, went
from recording_api import RecordingApi, recording_api
from toolwise.core.chat import (
    CallDelta,
    ChatCall,
    ChatReply,
    ChatRequest,
    Message,
    ReplyEnded,
    Role,
    StopReason,
    TextDelta,
    TokenUsage,
    ToolSpec,
    gathered,
)
from toolwise.core.clock import FakeClock, SystemClock
from toolwise.core.errors import BadInput, ModelTimeout, ModelUnavailable
from toolwise.core.limits import LIMITS
from toolwise.decode.upstream import Upstream, connect
from toolwise.notation.wire import anthropic, openai_chat
from wire_talk import IDENT, Door

HELLO = ChatRequest((Message(Role.USER, "Hello"),))
REPLY = ChatReply("It is ", (ChatCall("c_1", "add", '{"a":1,"b":2}'),), StopReason.CALLS, TokenUsage(3, 4))
FAST = replace(LIMITS, retry_seconds=0.001)
POST = {"openai": "POST /v1/chat/completions", "anthropic": "POST /v1/messages"}
WIRES = {"openai": openai_chat, "anthropic": anthropic}


@pytest.fixture
def api() -> Iterator[RecordingApi]:
    with recording_api() as running:
        yield running


def door(format: str, *turns: Any) -> Door:
    return Door(WIRES[format], lambda received: WIRES[format].read_request(json.loads(received.body)), *turns)


def model(api: RecordingApi, format: str = "openai", **how: Any) -> Upstream:
    return connect(api.url, "large", format, limits=how.pop("limits", FAST), **how)


@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_a_turn_comes_as_the_server_tells_it(api: RecordingApi, format: str) -> None:
    api.answers[POST[format]] = asked = door(format, REPLY)
    assert gathered(model(api, format).reply(HELLO)) == REPLY
    assert (asked.asked[0].model, asked.asked[0].stream) == ("large", True)


@pytest.mark.case("R15")
@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_a_tool_with_a_point_in_its_name_has_another_one_at_the_server_alone(api: RecordingApi, format: str) -> None:
    reply = ChatReply("", (ChatCall("c_1", "calendar_update", "{}"),), StopReason.CALLS, TokenUsage(3, 4))
    api.answers[POST[format]] = asked = door(format, reply)
    tool = ToolSpec("calendar.update", "", {"type": "object", "properties": {}})
    assert [call.name for call in gathered(model(api, format).reply(replace(HELLO, tools=(tool,)))).calls] == [
        tool.name
    ]
    assert [sent.name for sent in asked.asked[0].tools] == ["calendar_update"]


@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_an_agent_runs_over_a_server(api: RecordingApi, format: str) -> None:
    api.answers[POST[format]] = asked = door(format, REPLY, ChatReply("It is 3."))
    ended, _ = went(model(api, format), Desk())
    assert (ended.reason, ended.state.text) == ("end", "It is 3.")
    assert asked.asked[1].messages[-1].text == "3"


@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_a_server_that_does_not_stream_is_read_whole(api: RecordingApi, format: str) -> None:
    reply, request = WIRES[format].write_reply, ChatRequest(())
    api.answers[POST[format]] = lambda received: reply(REPLY, request, IDENT)
    assert gathered(model(api, format).reply(HELLO)) == REPLY


def test_the_key_goes_where_its_format_has_it_and_nowhere_else(
    api: RecordingApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER_KEY", "sesame")
    for format, header, value in (("openai", "authorization", "Bearer sesame"), ("anthropic", "x-api-key", "sesame")):
        api.answers[POST[format]] = JSONResponse({"error": {"message": "bad sesame"}}, 401)
        asked = model(api, format, key_env="SERVER_KEY")
        with pytest.raises(ModelUnavailable, match="refuses the key") as refused:
            list(asked.reply(HELLO))
        assert "sesame" not in f"{refused.value} {asked!r}"
        assert api.last.headers[header] == value
    assert api.last.headers["anthropic-version"]


def test_what_cannot_be_asked_safely_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_KEY", "sesame")
    with pytest.raises(BadInput, match="plain text"):
        connect("http://models.example/v1", "m", key_env="SERVER_KEY")
    assert connect("https://models.example/v1", "m", key_env="SERVER_KEY").name == "m"
    assert connect("http://10.0.0.7:8000", "m", key_env="SERVER_KEY").base.path == "/v1"
    for url, how, told in (
        ("ftp://x", {}, "no address"),
        ("http://a/v1?x=1", {}, "a query"),
        ("http://a", {"format": "soap"}, '"soap"'),
        ("http://a", {"key_env": "NO_SUCH_KEY"}, "NO_SUCH_KEY"),
    ):
        with pytest.raises(BadInput, match=told):
            connect(url, "m", **how)


def test_a_model_that_nobody_named_is_the_only_one_of_the_server(api: RecordingApi) -> None:
    api.answers["GET /v1/models"] = {"data": [{"id": "large"}]}
    assert connect(api.url, limits=FAST).name == "large"
    api.answers["GET /v1/models"] = {"data": [{"id": "large"}, {"id": "small"}]}
    with pytest.raises(BadInput, match='"large", "small"'):
        connect(api.url, limits=FAST)
    api.answers["GET /v1/models"] = Response("no", 404)
    with pytest.raises(BadInput, match="Say which"):
        connect(api.url, limits=FAST)


def test_what_may_pass_is_tried_again_and_what_will_not_is_not(api: RecordingApi) -> None:
    answers = [JSONResponse({}, 503), JSONResponse({}, 429)]
    good = door("openai", REPLY)
    api.answers[POST["openai"]] = lambda received: answers.pop(0) if answers else good(received)
    assert gathered(model(api).reply(HELLO)) == REPLY
    assert len(api.received) == 3
    api.answers[POST["openai"]] = JSONResponse({"error": {"message": "no such tool"}}, 400)
    with pytest.raises(BadInput, match="no such tool"):
        list(model(api).reply(HELLO))
    assert len(api.received) == 4
    api.answers[POST["openai"]] = PlainTextResponse("the proxy is down", 502)
    with pytest.raises(ModelUnavailable, match="the proxy is down"):
        list(model(api).reply(HELLO))
    assert len(api.received) == 4 + FAST.attempts


class Slept(SystemClock):
    """Sleeps no time, and keeps for how long it should have."""

    def __init__(self) -> None:
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.mark.parametrize(
    ("said", "pauses"),
    [("7", [7.0]), ("25", [25.0]), ("0", [0.001]), ("soon", [0.001]), ("-3", [0.001]), ("²", [0.001]), ("31", [])],
)
def test_a_server_is_tried_again_when_it_says_and_not_at_all_where_that_is_too_late(
    api: RecordingApi, said: str, pauses: list[float]
) -> None:
    answers, good, clock = (
        [Response("busy", 429, {"retry-after": said.encode().decode("latin-1")})],
        door("openai", REPLY),
        Slept(),
    )
    api.answers[POST["openai"]] = lambda received: answers.pop() if answers else good(received)
    asked = model(api, clock=clock).reply(HELLO)
    if pauses:
        assert gathered(asked) == REPLY
    else:
        with pytest.raises(ModelUnavailable, match="busy"):
            list(asked)
    assert clock.pauses == pauses


def test_a_redirect_is_not_followed(api: RecordingApi) -> None:
    api.answers[POST["openai"]] = Response(status_code=307, headers={"location": "/elsewhere"})
    with pytest.raises(ModelUnavailable):
        list(model(api).reply(HELLO))
    assert {received.path for received in api.received} == {"/v1/chat/completions"}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Response("{", media_type="application/json"), "no JSON"),
        (Response('{"choices": [' + " " * 300, media_type="application/json"), "more than 200 bytes"),
        (Response("data: {\n\n", media_type="text/event-stream"), "no JSON"),
        (Response(b"data: {}\n\n" * 50, media_type="text/event-stream"), "more than 300 bytes"),
        (Response("{}", headers={"content-encoding": "br"}), "encoding"),
    ],
)
def test_an_answer_that_is_none_or_has_no_end_is_refused(api: RecordingApi, answer: Response, told: str) -> None:
    api.answers[POST["openai"]] = answer
    limits = replace(FAST, chat_bytes=200, upstream_bytes=300)
    with pytest.raises(ModelUnavailable, match=told):
        list(model(api, limits=limits).reply(HELLO))


def test_a_request_that_cannot_be_written_is_refused_before_anything_is_sent(api: RecordingApi) -> None:
    with pytest.raises(BadInput, match="surrogate"):
        list(model(api).reply(ChatRequest((Message(Role.USER, "\ud800"),))))
    assert not api.received


class Talker:
    """A server on a bare socket: `say` sends, `heard` is set once the client has hung up."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.hung_up, self.requests = threading.Event(), 0
        self.parts: list[bytes] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.requests += 1
            with connection:
                connection.settimeout(10)
                connection.recv(65_536)
                try:
                    for part in self.parts:
                        connection.sendall(part)
                    if self.parts:
                        while connection.recv(65_536):
                            pass
                except OSError:
                    pass
                self.hung_up.set()

    def close(self) -> None:
        self._listening.close()


@contextmanager
def talker(*parts: bytes) -> Iterator[Talker]:
    made = Talker()
    made.parts = list(parts)
    try:
        yield made
    finally:
        made.close()


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(text: str) -> bytes:
    body = f'data: {{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}\n\n'.encode()
    return f"{len(body):x}\r\n".encode() + body + b"\r\n"


def test_the_first_piece_is_there_while_the_server_still_writes_and_closing_hangs_up() -> None:
    with talker(HEAD, chunk("one")) as server:
        turn = connect(server.url, "m", limits=FAST).reply(HELLO)
        assert next(turn) == TextDelta("one")
        assert not server.hung_up.is_set()
        turn.close()  # type: ignore[attr-defined]
        assert server.hung_up.wait(10)


@pytest.mark.case("R30")
@pytest.mark.parametrize("parts", [(HEAD,), (HEAD, chunk("one"))])
def test_a_server_that_falls_silent_is_a_model_that_timed_out(parts: tuple[bytes, ...]) -> None:
    with talker(*parts) as server:
        limits = replace(FAST, silent_seconds=0.2)
        with pytest.raises(ModelTimeout, match="in time") as late:
            list(connect(server.url, "m", limits=limits).reply(HELLO))
        assert late.value.code == "model_timeout"
        assert server.hung_up.wait(10)
        assert server.requests == 1


@pytest.mark.case("R30")
def test_a_server_that_never_ends_is_ended() -> None:
    with talker(HEAD, *[chunk("on")] * 3) as server, pytest.raises(ModelTimeout):
        list(connect(server.url, "m", limits=replace(FAST, upstream_seconds=0.3)).reply(HELLO))


def test_a_server_that_hangs_up_before_it_answers_is_tried_again_and_after_it_began_is_not() -> None:
    with talker() as server:
        with pytest.raises(ModelUnavailable, match="cannot be reached"):
            list(connect(server.url, "m", limits=FAST).reply(HELLO))
        assert server.requests == FAST.attempts
    broken = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + chunk("one").split(b"\r\n")[1]
    api_given: list[Any] = []
    with recording_api() as api:
        api.answers[POST["openai"]] = Response(broken.split(b"\r\n\r\n")[1], media_type="text/event-stream")
        api_given = list(model(api).reply(HELLO))
        assert len(api.received) == 1
    assert api_given == [TextDelta("one"), ReplyEnded(StopReason.LENGTH)]  # nothing vouches for it


def test_nobody_listens_is_a_model_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    clock = FakeClock(SystemClock().now())
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        list(connect(url, "m", clock=clock).reply(HELLO))
    assert clock.elapsed == pytest.approx(LIMITS.retry_seconds * 3)


def test_a_call_is_told_piece_by_piece(api: RecordingApi) -> None:
    api.answers[POST["openai"]] = door("openai", REPLY)
    kinds = [type(delta) for delta in model(api).reply(HELLO)]
    assert kinds.index(TextDelta) < kinds.index(CallDelta) < kinds.index(ReplyEnded)


ODD_COUNTS = [-5, 10**299, True, 1.5, "3", None, [1]]


@pytest.mark.parametrize("odd", ODD_COUNTS)
@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_a_number_of_tokens_that_is_none_counts_nothing(format: str, odd: Any) -> None:
    """A negative one would give an agent tokens, and break what counts them."""
    if format == "openai":
        usage = {"prompt_tokens": odd, "completion_tokens": odd, "prompt_tokens_details": {"cached_tokens": odd}}
        choice = {"message": {"content": "Hi"}, "finish_reason": "stop"}
        reply = openai_chat.read_reply({"choices": [choice], "usage": usage})
    else:
        usage = {"input_tokens": odd, "output_tokens": odd, "cache_read_input_tokens": odd}
        content = [{"type": "text", "text": "Hi"}]
        reply = anthropic.read_reply({"content": content, "stop_reason": "end_turn", "usage": usage})
    assert (reply.text, reply.usage) == ("Hi", TokenUsage())


@pytest.mark.parametrize("id_", ["a\r\nx-evil: 1", "a\0", "\u202eid", "a" * 300, "", 5, None])
@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_a_call_whose_id_nobody_should_have_to_keep_gets_one_of_its_own(format: str, id_: Any) -> None:
    if format == "openai":
        call = {"id": id_, "type": "function", "function": {"name": "add", "arguments": "{}"}}
        choice = {"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
        reply = openai_chat.read_reply({"choices": [choice]})
    else:
        block = {"type": "tool_use", "id": id_, "name": "add", "input": {}}
        reply = anthropic.read_reply({"content": [block], "stop_reason": "tool_use"})
    assert reply.calls[0].id.isidentifier()
    assert len(reply.calls[0].id) < 40


@pytest.mark.parametrize("format", ["openai", "anthropic"])
@pytest.mark.parametrize("streams", [True, False])
def test_a_turn_of_more_calls_than_anybody_looks_through_is_refused(
    api: RecordingApi, format: str, streams: bool
) -> None:
    turn = ChatReply("", tuple(ChatCall(f"c_{number}", "add", "{}") for number in range(9)), StopReason.CALLS)
    whole = JSONResponse(WIRES[format].write_reply(turn, HELLO, IDENT))
    api.answers[POST[format]] = door(format, turn, turn) if streams else whole
    assert len(gathered(model(api, format, limits=replace(FAST, upstream_calls=9)).reply(HELLO)).calls) == 9
    with pytest.raises(ModelUnavailable, match="more than 8 calls"):
        gathered(model(api, format, limits=replace(FAST, upstream_calls=8)).reply(HELLO))
