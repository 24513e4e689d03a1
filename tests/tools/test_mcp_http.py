"""MCP servers over streamable HTTP: where requests go and what goes with them, and servers that break off or lie."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from socket import create_connection
from typing import Any

import pytest
from mcp_talk import SHORT, Asking

from mcp_web import Reply, Web, answer, event, stream, web
from toolwise.core.errors import BadInput
from toolwise.core.limits import Limits
from toolwise.serve.run import bound
from toolwise.tools.confined.network import ScriptedNetwork
from toolwise.tools.mcp import Brought, mcp_tools

OFFICIAL = Path(__file__).with_name("mcp_official.py")
READS = {"effects": {"echo": "read"}}
QUICK = replace(SHORT, mcp_call_seconds=2.0, attempts=1, retry_seconds=0.01)


@contextmanager
def asking(site: Web, limits: Limits = QUICK, **said: Any) -> Iterator[Asking]:
    config = {"url": f"http://127.0.0.1:{site.port}/mcp", "revision": "2025-11-25"} | said
    found = mcp_tools({"servers": {"s": config}}, limits)
    try:
        with (ask := Asking(found, limits)).gate:
            yield ask
    finally:
        found.close()


def bring(url: str, **more: Any) -> Brought:
    network = more.pop("network")
    config = {"url": url, "revision": "2025-11-25", "start_seconds": 5} | more
    return mcp_tools({"servers": {"s": config}}, QUICK, network=network)


def test_a_token_comes_from_the_named_variable_and_goes_to_this_server_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "sesame")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with web() as site, web() as other:
        site.called = lambda asked: (307, {"location": f"http://127.0.0.1:{other.port}/mcp"}, b"")
        with asking(site, bearer_env="SHOP_TOKEN") as ask:
            assert ask("s__echo").code in ("tool_failed", "tool_unavailable")
        assert {headers.get("authorization") for _, headers, _ in site.requests} == {"Bearer sesame"}
        assert not any("cookie" in headers for _, headers, _ in site.requests)
        assert other.requests == []


@pytest.mark.case("H9")
def test_nothing_of_who_asks_goes_along() -> None:
    with web() as site, asking(site, **READS) as ask:
        assert ask("s__echo").text == "echoed"
        (headers,) = site.calls
        assert headers.keys() <= {
            *("host", "accept", "accept-encoding", "connection", "content-length", "content-type", "user-agent"),
            *("mcp-protocol-version", "mcp-method", "mcp-name"),
        }
        assert "ann" not in json.dumps([asked for _, _, asked in site.requests])


@pytest.mark.parametrize(
    ("url", "addresses", "reached"),
    [
        ("http://mcp.example/mcp", ["93.184.216.34"], True),
        ("http://mcp.example/mcp", ["10.0.0.1"], False),
        ("http://mcp.example/mcp", ["93.184.216.34", "127.0.0.1"], False),
        ("http://mcp.example:8080/mcp", ["93.184.216.34"], False),
        ("http://intranet/mcp", ["93.184.216.34"], False),
        ("http://mcp.example/mcp", [], False),
    ],
)
def test_a_name_leads_to_public_addresses_or_nowhere(
    url: str, addresses: list[str], reached: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import httpx2

    gone: list[str] = []
    inner = httpx2.AsyncHTTPTransport.handle_async_request

    async def handle(self: Any, request: Any) -> Any:  # the public address would lead out of here
        gone.append(request.url.host)
        assert request.headers["host"] == "mcp.example"
        request.url = request.url.copy_with(host="127.0.0.1", port=site.port)
        return await inner(self, request)

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", handle)
    network = ScriptedNetwork({"mcp.example": [addresses], "intranet": [addresses]})
    with web() as site:
        if not reached:
            with pytest.raises(BadInput, match=r"not a public one|no host"):
                bring(url, network=network)
            assert gone == []
            return
        bring(url, network=network).close()
        assert set(gone) == {"93.184.216.34"}


def test_a_name_that_changes_its_answer_is_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    import httpx2

    async def handle(self: Any, request: Any) -> Any:
        told = site.reply("POST", request.headers, json.loads(await request.aread()))
        return httpx2.Response(told[0], headers=told[1], content=told[2])

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", handle)
    site = Web()
    network = ScriptedNetwork({"mcp.example": [["93.184.216.34"]] * 3 + [["169.254.169.254"]]})
    found = bring("http://mcp.example/mcp", network=network, **READS)
    with (ask := Asking(found, QUICK)).gate:
        assert ask("s__echo").code == "tool_unavailable"
    found.close()
    assert site.calls == []


@pytest.mark.case("H7")
@pytest.mark.parametrize(
    "called",
    [
        lambda asked: (200, {"content-type": "application/json"}, b"x" * (5 * 1024 * 1024)),
        lambda asked: stream(asked, b"data: " + b"x" * (5 * 1024 * 1024)),
        lambda asked: stream(asked, b": ping\r\n\r\n"),
        lambda asked: (200, {"content-type": "application/json", "content-length": "1000"}, b'{"jsonrpc"'),
        lambda asked: (200, {"content-type": "application/json"}, b"not json"),
        lambda asked: (200, {"content-type": "text/html"}, b"<html>"),
        lambda asked: (502, {}, b"bad gateway"),
        lambda asked: (0, {}, b""),
        lambda asked: answer(asked, {"content": "none"}),
    ],
    ids=["large", "large event", "no event", "broken off", "no json", "html", "502", "hangs up", "no result"],
)
@pytest.mark.parametrize(
    ("said", "code"), [({}, "outcome_unknown"), (READS, "tool_unavailable")], ids=["write", "read"]
)
def test_an_answer_that_cannot_be_read_fails_its_call_alone(
    called: Callable[[dict[str, Any]], Reply], said: dict[str, Any], code: str
) -> None:
    with web() as site, asking(site, **said) as ask:
        site.called = called
        assert ask("s__echo").code == code
        site.called = Web().called
        assert ask("s__echo").text == "echoed"


@pytest.mark.parametrize(("status", "code"), [(401, "tool_failed"), (403, "tool_failed"), (429, "tool_failed")])
def test_a_call_that_was_not_let_in_has_failed(status: int, code: str) -> None:
    with web() as site, asking(site) as ask:
        site.called = lambda asked: (status, {"www-authenticate": "Bearer"}, b"secret words")
        result = ask("s__echo")
        assert result.code == code
        assert "secret" not in result.text


@pytest.mark.case("H7")
@pytest.mark.parametrize(("said", "code"), [({}, "outcome_unknown"), (READS, "timeout")], ids=["write", "read"])
def test_an_answer_that_never_comes_costs_the_time_of_one_call(said: dict[str, Any], code: str) -> None:
    over = threading.Event()
    with web() as site, asking(site, **said) as ask:
        site.called = lambda asked: (int(over.wait(60)) and 0, {}, b"")
        before = time.monotonic()
        assert ask("s__echo").code == code
        assert time.monotonic() - before < 6
        site.called = Web().called
        assert ask("s__echo").text == "echoed"
        over.set()


def test_an_answer_in_a_stream_is_one_as_well() -> None:
    with web(Web(lambda asked: stream(asked, b": hello\n\n", event(asked, "streamed")))) as site, asking(site) as ask:
        assert ask("s__echo").text == "streamed"


@pytest.mark.case("R46")
def test_a_session_that_the_server_forgot_is_made_anew_and_the_call_made_once_more() -> None:
    with web(Web(session="one")) as site, asking(site) as ask:
        assert ask("s__echo").ok
        site.session = "two"
        assert ask("s__echo").ok
        assert [headers["mcp-session-id"] for headers in site.calls] == ["one", "one", "two"]


@pytest.mark.case("R46")
def test_a_call_that_reached_nobody_did_nothing() -> None:
    with bound(0) as empty:
        port = empty.getsockname()[1]
    with web(port=port) as site:
        config = {"url": f"http://127.0.0.1:{port}/mcp", "revision": "2025-11-25"}
        found = mcp_tools({"servers": {"s": config}}, QUICK)
    with (ask := Asking(found, QUICK)).gate:
        assert ask("s__echo").code == "tool_unavailable"  # a write, and its outcome is known
        with web(site, port=port):
            assert ask("s__echo").ok
    found.close()


@pytest.mark.parametrize("sessions", ["stateful", "stateless"])
@pytest.mark.parametrize("revision", ["", "2025-11-25", "2026-07-28"])
def test_the_official_server_over_http(sessions: str, revision: str, official: Callable[[str], int]) -> None:
    url = f"http://127.0.0.1:{official(sessions)}/mcp"
    found = mcp_tools({"servers": {"s": {"url": url, "effects": {"add": "read"}, "revision": revision}}}, SHORT)
    try:
        with (ask := Asking(found)).gate:
            assert ask("s__add", a=2, b=3).text == "5"
            assert ask("s__fail", path="x").code == "tool_failed"
    finally:
        found.close()


@pytest.fixture(scope="module")
def official() -> Iterator[Callable[[str], int]]:
    started: dict[str, tuple[subprocess.Popen[bytes], int]] = {}

    def start(sessions: str) -> int:
        if sessions not in started:
            with bound(0) as free:
                port = free.getsockname()[1]
            argv = [sys.executable, str(OFFICIAL), "http", str(port), sessions]
            started[sessions] = subprocess.Popen(argv, stderr=subprocess.DEVNULL), port
        port = started[sessions][1]
        end = time.monotonic() + 60
        while True:
            try:
                create_connection(("127.0.0.1", port), timeout=1).close()
                return port
            except OSError:
                assert time.monotonic() < end
                threading.Event().wait(0.1)

    yield start
    for program, _ in started.values():
        program.kill()
        program.wait(10)
