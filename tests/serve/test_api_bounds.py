"""What the server for programs does not take: too much, too slow, too many, and clients that go away."""

from __future__ import annotations

import gc
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from typing import Any

import psutil
import pytest
from api_server import Served, metric, serving, until
from official_clients import Chat, Gemini, How, Messages, Responses

from toolwise.core import jsonio
from toolwise.core.chat import ChatDelta, ChatRequest, ReplyEnded, StopReason, TextDelta
from toolwise.core.limits import LIMITS, Limits
from toolwise.serve.formats import APIS

PATHS = [path.replace("{model:path}", "scripted") for api in APIS for path in api.paths]
CLIENTS = [Chat, Messages, Responses, Gemini]
TIGHT = replace(LIMITS, request_bytes=4_000, request_seconds=0.3, chat_bytes=20_000, chat_seconds=0.3)
SAID = {
    "messages": [{"role": "user", "content": "pace 0.01\nlong 100000"}],
    "model": "scripted",
    "stream": True,
    "max_tokens": 1_000_000,
}


class Gated:
    """A model that says `one`, waits until it may go on, and says `two`."""

    def __init__(self) -> None:
        self.name = "scripted"
        self.go = threading.Event()
        self.begun = threading.Event()
        self.closed = threading.Event()

    def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
        try:
            yield TextDelta("one ")
            self.begun.set()
            assert self.go.wait(20)
            yield TextDelta("two")
            yield ReplyEnded(StopReason.END)
        finally:
            self.closed.set()


class Broken:
    """A model with a mistake in it."""

    name = "scripted"

    def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
        if request.stream:
            yield TextDelta("one")
        raise KeyError("a password")


def taken(at: Served) -> float:
    return metric(at.get("/metrics").text, "toolwise_places_taken")


def post(path: str, port: int, *lines: str) -> bytes:
    head = [f"POST {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Content-Type: application/json", *lines]
    return "\r\n".join(head).encode() + b"\r\n\r\n"


def sent_until_told(port: int, head: bytes, piece: bytes, most: int) -> tuple[int, bytes]:
    """Send a head, then pieces until the server hangs up; how many bytes went, and what it said."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as end:
        end.sendall(head)
        went, told = 0, b""
        with suppress(OSError):  # it hangs up on us
            while went < most:
                end.sendall(piece)
                went += len(piece)
        with suppress(OSError):
            while more := end.recv(65_536):
                told += more
        return went, told


# Too much, and too slow


@pytest.mark.case("L3")
@pytest.mark.parametrize("path", PATHS)
def test_a_body_that_says_it_is_large_is_refused_before_it_is_read(path: str) -> None:
    with serving(limits=TIGHT) as at:
        answer = at.raw(post(path, at.port, "Content-Length: 1000000000"))
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"connection: close" in answer.lower()


@pytest.mark.case("L3")
def test_a_body_without_an_end_is_cut_off_in_bounded_memory() -> None:
    with serving(limits=TIGHT) as at:
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        gc.collect()
        before = psutil.Process().memory_info().rss
        head = post("/v1/chat/completions", at.port, "Transfer-Encoding: chunked")
        went, told = sent_until_told(at.port, head, chunk, 200_000_000)
        assert went < 50_000_000
        assert told.startswith(b"HTTP/1.1 413 ")
        assert psutil.Process().memory_info().rss - before < 30_000_000
        assert at.get("/health").status_code == 200


@pytest.mark.case("L3")
def test_a_large_or_slow_head_and_a_slow_body_are_refused() -> None:
    with serving(limits=TIGHT) as at:
        head = post("/v1/messages", at.port, "Content-Length: 20")
        went, told = sent_until_told(at.port, head[:-2] + b"X: ", b"x" * 10_000, 20_000_000)
        assert told.startswith(b"HTTP/1.1 431 ")
        assert went < 20_000_000
        assert at.raw(head[:-2]).startswith(b"HTTP/1.1 408 ")
        assert at.raw(head + b"{").startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("path", PATHS)
def test_a_client_that_hangs_up_in_its_body_leaves_no_traceback(path: str, caplog: pytest.LogCaptureFixture) -> None:
    with serving() as at:
        with socket.create_connection(("127.0.0.1", at.port)) as client:
            client.sendall(post(path, at.port, "Content-Length: 99") + b"{")
        until(lambda: 'status="400"' in at.get("/metrics").text)
    assert not [record for record in caplog.records if record.exc_info]


def test_while_a_large_body_is_read_others_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go, loads = threading.Event(), threading.Event(), jsonio.loads

    def slow(data: Any, limits: Limits) -> Any:
        if len(data) > 100_000:
            begun.set()
            assert go.wait(20)
        return loads(data, limits)

    monkeypatch.setattr(jsonio, "loads", slow)
    with serving() as at, ThreadPoolExecutor(1) as threads:
        said = {**SAID, "stream": False, "messages": [{"role": "user", "content": "say " + "x" * 200_000}]}
        large = threads.submit(at.post, PATHS[0], said)
        assert begun.wait(20)
        assert at.get("/health").status_code == 200
        go.set()
        assert large.result(20).status_code == 200


@pytest.mark.case("L3")
def test_connections_beyond_the_bound_are_told_so_and_cost_nothing() -> None:
    with serving(limits=replace(LIMITS, request_seconds=30), connections=20) as at, ExitStack() as open_:
        for _ in range(20):
            open_.enter_context(closing(socket.create_connection(("127.0.0.1", at.port), timeout=20)))
        gc.collect()
        before = psutil.Process().memory_info().rss
        for _ in range(1_000):
            with closing(socket.create_connection(("127.0.0.1", at.port), timeout=20)) as more:
                assert more.recv(65_536).startswith(b"HTTP/1.1 503 ")
        assert psutil.Process().memory_info().rss - before < 10_000_000
        open_.close()
        until(lambda: at.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")[9:12] == b"200")


@pytest.mark.case("L3")
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_replies_beyond_the_places_wait_and_beyond_the_line_are_told_when_to_come_back(client: Any) -> None:
    model = Gated()
    with serving([model], places=1, limits=replace(LIMITS, waiting_replies=1)) as at:
        first, second = (threading.Thread(target=client(at).turn, args=(["hi"], How(tools=()))) for _ in range(2))
        first.start()
        assert model.begun.wait(20)
        second.start()
        until(lambda: metric(at.get("/metrics").text, "toolwise_waiting") == 1)
        with pytest.raises(client.error) as refused:
            client(at).turn(["hi"], How(tools=()))
        assert "come back later" in str(refused.value)
        body = {"messages": [{"role": "user", "content": "hi"}], "model": "scripted"}
        answer = at.post("/v1/chat/completions", body)
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) >= 1
        model.go.set()
        for thread in (first, second):
            thread.join(20)
            assert not thread.is_alive()
        assert taken(at) == 0


def test_whoever_waits_too_long_for_a_place_is_told_so() -> None:
    model = Gated()
    with serving([model], places=1, limits=replace(LIMITS, waiting_seconds=0.1)) as at:
        first = threading.Thread(target=Chat(at).turn, args=(["hi"],))
        first.start()
        assert model.begun.wait(20)
        with pytest.raises(Chat.error, match="No place"):
            Chat(at).turn(["hi"])
        model.go.set()
        first.join(20)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_that_takes_too_long_is_given_up(client: Any, stream: bool) -> None:
    with serving(limits=replace(LIMITS, reply_seconds=0.2)) as at:
        with pytest.raises(client.error, match="took too long"):
            client(at).turn(["pace 0.01\nlong 900"], How(stream=stream, tools=()))
        until(lambda: taken(at) == 0)


def test_a_reader_that_takes_nothing_gives_its_place_back() -> None:
    said = SAID | {"messages": [{"role": "user", "content": "long 200000"}]}
    with serving(limits=replace(LIMITS, stalled_seconds=0.3)) as at, ExitStack() as open_:
        client = open_.enter_context(at.http())
        answer = open_.enter_context(client.stream("POST", "/v1/chat/completions", json=said))
        coming = answer.iter_raw()  # kept: the client hangs up when it is dropped
        next(coming)
        assert taken(at) == 1
        until(lambda: taken(at) == 0)


# Clients that go away


@pytest.mark.case("D10")
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_client_that_goes_away_frees_its_place_at_the_next_piece(path: str) -> None:
    with serving(places=1) as at:
        for stream in (True, False, True):
            with at.http() as client, ExitStack() as left:
                if stream:
                    answer = left.enter_context(client.stream("POST", path, json=SAID))
                    coming = answer.iter_raw()
                    next(coming)
                    assert taken(at) == 1
                else:
                    client.timeout = 0.3
                    with pytest.raises(Exception, match="timed out"):
                        client.post(path, json=SAID | {"stream": False})
            until(lambda: taken(at) == 0)
        text = at.get("/metrics").text
        assert metric(text, "toolwise_open_streams") == 0
        door = "chat" if "chat" in path else "messages"
        assert metric(text, f'toolwise_requests_total{{door="{door}",status="499"}}') == 1
        assert Chat(at).turn(["say hi"]).text == "hi"


def test_a_client_that_goes_away_while_it_waits_takes_no_place() -> None:
    model = Gated()
    with serving([model], places=1) as at:
        first = threading.Thread(target=Chat(at).turn, args=(["hi"],))
        first.start()
        assert model.begun.wait(20)
        with at.http() as client, pytest.raises(Exception, match="timed out"):
            client.post("/v1/chat/completions", json=SAID, timeout=0.2)
        until(lambda: metric(at.get("/metrics").text, "toolwise_waiting") == 0)
        model.go.set()
        first.join(20)
        until(lambda: taken(at) == 0)


# Streams


@pytest.mark.parametrize("path", PATHS)
def test_a_stream_is_told_from_its_first_piece(path: str) -> None:
    model = Gated()
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}], "model": "scripted", "stream": True}
    body |= {"max_tokens": 99} if path == "/v1/messages" else {}
    if path == "/v1/responses":
        body = {"input": "hi", "model": "scripted", "stream": True}
    if "models" in path:
        body = {"contents": [{"parts": [{"text": "hi"}]}]}
    if path.endswith(":generateContent"):
        pytest.skip("answers whole")
    for query in ("?alt=sse", "") if "models" in path else ("",):
        model.go.clear()
        with serving([model]) as at, at.http() as client, client.stream("POST", path + query, json=body) as answer:
            text = ""
            for piece in answer.iter_text():
                text += piece
                if "one" in text and not model.go.is_set():
                    assert "two" not in text
                    model.go.set()
            assert "two" in text


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_a_stream_that_waits_says_that_it_lives_and_no_client_minds(client: Any) -> None:
    with serving(limits=replace(LIMITS, ping_seconds=0.02)) as at:
        assert client(at).turn(["pace 0.1\nsay a b c d"], How(stream=True)).text == "a b c d"


def test_what_says_that_a_stream_lives_is_the_formats_own() -> None:
    with serving(limits=replace(LIMITS, ping_seconds=0.02)) as at:
        slow = SAID | {"messages": [{"role": "user", "content": "pace 0.1\nsay a b"}]}
        assert ": ping\n\n" in at.post("/v1/chat/completions", slow).text
        assert 'event: ping\ndata: {"type": "ping"}\n\n' in at.post("/v1/messages", slow | {"max_tokens": 9}).text


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
@pytest.mark.parametrize("stream", [False, True])
def test_a_mistake_in_a_model_is_an_error_that_says_nothing_of_it(client: Any, stream: bool) -> None:
    with serving([Broken()]) as at:
        with pytest.raises(client.error, match="Something failed here") as refused:
            client(at).turn(["hi"], How(stream=stream))
        assert "password" not in str(refused.value)
        until(lambda: taken(at) == 0)


def test_many_streams_at_once_are_neither_mixed_nor_lost() -> None:
    told: dict[int, str] = {}
    with serving(places=32) as at:

        def talk(number: int) -> None:
            told[number] = Chat(at).turn([f"say {f'mine{number} ' * 200}"], How(stream=True)).text

        threads = [threading.Thread(target=talk, args=(number,)) for number in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert {number: set(text.split()) for number, text in told.items()} == {n: {f"mine{n}"} for n in range(32)}
        assert {len(text.split()) for text in told.values()} == {200}
        assert taken(at) == 0


def test_more_messages_tools_or_text_to_stop_at_than_anybody_sends_are_refused_by_name() -> None:
    hi = {"role": "user", "content": "say hi"}
    tools = [{"type": "function", "function": {"name": f"t{n}"}} for n in range(LIMITS.chat_tools + 1)]
    with serving() as at:
        for field, many in (
            ("messages", [hi] * (LIMITS.chat_messages + 1)),
            ("tools", tools),
            ("stop", ["a" * (LIMITS.stop_chars + 1)]),
        ):
            answer = at.post("/v1/chat/completions", {"model": "scripted", "messages": [hi], field: many})
            assert (answer.status_code, answer.json()["error"]["param"]) == (400, field)
        most = {"messages": [hi] * LIMITS.chat_messages, "tools": tools[1:], "stop": "a" * LIMITS.stop_chars}
        assert at.post("/v1/chat/completions", {"model": "scripted", **most}).status_code == 200
