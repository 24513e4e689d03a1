"""The MCP server over HTTP: the official client in both revisions, keys, and what is refused before anything runs."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_server import MODERN, Noted, door, talk, text_of

from mcp_web import web
from toolwise import Effect, Tool, open_state
from toolwise.serve.keys import Key, Keys, digest_of
from toolwise.serve.run import bound
from toolwise.tools.mcp import mcp_tools

MODES = ["legacy", "auto", "2026-07-28"]
NOW = datetime.now(UTC)


def keys() -> Keys:
    return Keys(
        [
            Key(digest_of("key-of-ann"), "ann"),
            Key(digest_of("key-of-bob"), "bob", audience=frozenset({"lab"}), doors=frozenset({"mcp"})),
            Key(digest_of("key-expired"), "eve", expires=NOW - timedelta(days=1)),
            Key(digest_of("key-elsewhere"), "eve", audience=frozenset({"other"})),
            Key(digest_of("key-chat-only"), "eve", doors=frozenset({"messages"})),
        ],
        audience="lab",
    )


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


@pytest.mark.parametrize("mode", MODES)
def test_the_official_client_lists_and_calls_tools(mode: str) -> None:
    async def story(client: Client) -> None:
        assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["Calculator", "note", "send", "fail"]
        assert tools[1].input_schema["required"] == ["text"]
        assert [tool.annotations.read_only_hint for tool in tools if tool.annotations] == [True, False, False, True]
        result = await client.call_tool("Calculator", {"expression": "18 / 24"})
        assert (text_of(result), result.is_error) == ("0.75", False)

    with door() as served:
        talk(served.url, mode, story)


@pytest.mark.case("R36")
@pytest.mark.parametrize("mode", MODES)
def test_a_failed_call_says_so_in_its_flag_and_in_its_text(mode: str) -> None:
    async def story(client: Client) -> list[Any]:
        calls = [("fail", {"text": "a"}), ("nosuch", {}), ("Calculator", {"expression": 7}), ("Calculator", {})]
        return [await client.call_tool(name, arguments) for name, arguments in calls]

    with door() as served:
        results = talk(served.url, mode, story)
    codes = [result.meta["toolwise/code"] for result in results]
    assert codes == ["tool_unavailable", "unknown_tool", "invalid_arguments", "invalid_arguments"]
    for result, code in zip(results, codes, strict=True):
        assert result.is_error
        assert text_of(result).startswith(f"Error ({code}): ")
        assert "postgres" not in text_of(result)


@pytest.mark.parametrize("mode", MODES)
def test_a_call_that_a_person_must_confirm_says_where_and_runs_once_it_is_made_again(mode: str) -> None:
    with door() as served:

        async def story(client: Client) -> None:
            asked = await client.call_tool("send", {"text": "a"})
            assert asked.is_error
            (waiting,) = served.gate.approvals.pending()
            assert f"toolwise approvals show {waiting.id}" in text_of(asked)
            assert served.noted.calls == []
            served.gate.approvals.decide(waiting.id, "approved", by="Ann", digest=waiting.digest)
            other = await client.call_tool("send", {"text": "b"})
            assert other.meta["toolwise/code"] == "approval_required"
            again = await client.call_tool("send", {"text": "a"})
            assert text_of(again) == "sent a"
            third = await client.call_tool("send", {"text": "a"})
            assert third.meta["toolwise/code"] == "approval_required"

        talk(served.url, mode, story)
        assert served.noted.calls == [("local", "a")]


@pytest.mark.case("H10")
@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer("wrong"),
        bearer("key-expired"),
        bearer("key-elsewhere"),
        bearer("key-chat-only"),
        {"authorization": "Bearer"},
        {"authorization": "Basic a2V5LW9mLWFubg=="},
    ],
    ids=["none", "wrong", "expired", "audience", "door", "empty", "scheme"],
)
def test_whoever_brings_no_key_that_opens_this_gets_401_and_nothing_runs(headers: dict[str, str]) -> None:
    with door(keys()) as served:
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "note", "arguments": {"text": "a"}, "_meta": MODERN},
        }
        answer = served.post(body, **headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["error"]["data"]["code"] == "unauthenticated"
        assert httpx2.post(f"{served.url}?key=key-of-ann", json=body).status_code == 401
        assert served.noted.calls == []


@pytest.mark.case("H10")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_key_says_who_every_call_is_for(mode: str) -> None:
    with door(keys()) as served:
        for key in ("key-of-ann", "key-of-bob"):

            async def story(client: Client) -> Any:
                return await client.call_tool("note", {"text": "a"})

            with_key = streamable_http_client(served.url, http_client=httpx2.AsyncClient(headers=bearer(key)))
            assert text_of(talk(with_key, mode, story)) == "noted a"
        assert [who for who, _ in served.noted.calls] == ["ann", "bob"]


@pytest.mark.case("H9")
def test_an_inbound_token_is_seen_by_no_tool_and_stands_in_no_record(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    seen: list[str] = []

    def look(**arguments: Any) -> str:
        import gc
        import os

        seen.append(repr((arguments, dict(os.environ))))
        frames = [value for value in gc.get_objects() if type(value) is dict and "toolwise.principal" in value]
        seen.append(repr(frames))  # what the request is by now
        return "looked"

    caplog.set_level(logging.DEBUG)
    tool = Tool("look", "Looks.", {"type": "object"}, Effect.READ, look, bounded=True)
    with door(keys(), tools=[tool], policy="permit (principal, action, resource);") as served:
        assert served.call("look", headers=bearer("key-of-ann"), arguments={})["result"]["isError"] is False
        rows = repr([row.line for row in served.gate.audit.rows()])
    printed = "".join(capfd.readouterr())
    assert len(seen) == 2
    for record in (*seen, rows, caplog.text, printed):
        assert "key-of-ann" not in record


@pytest.mark.case("H9")
def test_an_inbound_token_is_passed_on_to_no_server_behind_ours() -> None:
    with web() as behind:
        said = {"url": f"http://127.0.0.1:{behind.port}/mcp", "revision": "2025-11-25", "effects": {"echo": "read"}}
        found = mcp_tools({"servers": {"s": said}})
        try:
            with door(keys(), tools=list(found.tools), policy="permit (principal, action, resource);") as served:
                sent = bearer("key-of-ann") | {"x-trace": "of ann"}
                answer = served.call("s__echo", headers=sent, arguments={})
                assert answer["result"]["content"][0]["text"] == "echoed"
        finally:
            found.close()
        assert behind.calls
        everything = repr([(dict(headers), asked) for _, headers, asked in behind.requests])
        assert "ann" not in everything
        assert "authorization" not in everything


@pytest.mark.case("H11")
@pytest.mark.parametrize(
    "more", [{"requestState": "x"}, {"requestState": "v1.AAAA"}, {"inputResponses": {"a": {"action": "accept"}}}]
)
def test_nothing_is_offered_that_a_client_brings_back_and_what_brings_it_is_refused(more: dict[str, Any]) -> None:
    with door() as served:
        asked = served.call("send")["result"]
        assert "requestState" not in asked
        assert asked["resultType"] == "complete"
        assert served.call("note", **more)["error"]["code"] == -32602
        assert served.noted.calls == []


@pytest.mark.case("E14")
def test_a_call_sent_again_with_its_key_gets_the_stored_result_after_its_stream_broke() -> None:
    noted = Noted([], threading.Event())
    with door(noted=noted) as served:
        params = {"name": "note", "arguments": {"text": "hello"}, "_meta": {**MODERN, "toolwise/idempotency-key": "k1"}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{served.port}\r\ncontent-type: application/json\r\n"
            "accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n"
            f"mcp-method: tools/call\r\nmcp-name: note\r\ncontent-length: {len(body)}\r\n\r\n"
        ).encode()
        with socket.create_connection(("127.0.0.1", served.port), timeout=20) as broken:
            broken.sendall(head + body)
            until(lambda: len(noted.calls) == 1)
        assert served.call("note", key="k1", id=2)["result"]["_meta"]["toolwise/code"] == "in_progress"
        noted.go.set()
        until(lambda: served.call("note", key="k1", id="another")["result"]["isError"] is False)
        again = served.call("note", key="k1", id=3)
        assert again["id"] == 3
        assert again["result"]["content"][0]["text"] == "noted hello"
        assert len(noted.calls) == 1
        other = served.call("note", key="k1", id=4, arguments={"text": "another"})
        assert other["result"]["_meta"]["toolwise/code"] == "conflict"
        assert served.call("note", key="k2", id=5)["result"]["isError"] is False
        assert len(noted.calls) == 2


@pytest.mark.case("E14")
def test_a_key_is_its_principals_own_and_survives_a_restart(tmp_path: Any) -> None:
    noted = Noted([], threading.Event())
    noted.go.set()
    for _ in range(2):
        with door(keys(), state=open_state(str(tmp_path / "state.db")), noted=noted) as served:
            noted.go.set()
            for key in ("key-of-ann", "key-of-bob"):
                assert served.call("note", key="k", headers=bearer(key))["result"]["isError"] is False
    assert [who for who, _ in noted.calls] == ["ann", "bob"]


@pytest.mark.parametrize("key", ["x" * 257, "a\nb", 7, None])
def test_a_key_that_is_none_is_refused(key: Any) -> None:
    with door() as served:
        meta = {**MODERN, "toolwise/idempotency-key": key}
        answer = served.call("note", _meta=meta)
        assert answer["error"]["code"] == -32602
        assert served.noted.calls == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"mcp-protocol-version": "1999-01-01"}, 400),
        ({"mcp-name": "Calculator"}, 400),
    ],
)
def test_what_comes_from_elsewhere_or_says_two_things_is_refused(headers: dict[str, str], status: int) -> None:
    with door() as served:
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "note", "arguments": {"text": "a"}, "_meta": MODERN},
        }
        assert served.post(body, **headers).status_code == status
        assert served.noted.calls == []


def test_bodies_are_read_strictly_and_bounded() -> None:
    with door() as served:
        sent = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        for body, status in (
            (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}', 400),
            (b"{", 400),
            (b'{"a":' * 200 + b"1" + b"}" * 200, 400),
            (b'"' + b"x" * (4 * 1024 * 1024 + 10) + b'"', 413),
        ):
            answer = httpx2.post(served.url, content=body, headers=sent)
            assert answer.status_code == status
        assert httpx2.get(served.url).status_code == 405
        assert httpx2.post(served.url.removesuffix("/mcp"), json={}).status_code == 404


def until(holds: Any, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        threading.Event().wait(0.02)


def test_an_answer_in_two_pieces_does_not_wait_to_be_acknowledged() -> None:
    with bound(0) as door_, socket.create_connection(door_.getsockname()):
        taken, _ = door_.accept()
        with taken:
            assert taken.proto == socket.IPPROTO_TCP  # without it asyncio leaves the delay of 40 ms on
