"""`toolwise mcp` as a program: the official client over stdio, our own client, and what else is on its streams."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_server import door, line_count, talk, text_of

from command_line import Toolwise, refused
from toolwise import Call, CallContext, CedarPolicy, Gate, Principal, Registry, open_state
from toolwise.tools.mcp import mcp_tools

MINE = '''
import os, sys
from toolwise import Effect, tool

print("noise while it is loaded")

@tool(effect=Effect.READ, bounded=True)
def loud() -> str:
    """Prints."""
    print("noise")
    os.system("echo more noise")
    return "quiet"

@tool(effect=Effect.READ)
def child() -> str:
    """Prints in a process of its own, and reads what there is to read."""
    print("noise")
    return repr(sys.stdin.read() if sys.stdin else "")

@tool(bounded=True, keyed=False)
def note(text: str) -> str:
    """Notes."""
    with open({file!r}, "a") as file:
        file.write(text + "\\n")
    return "noted"
'''
PERMIT = 'permit (principal, action == Action::"call", resource);'
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.fixture
def argv(tmp_path: Path) -> list[str]:
    mine, policy = tmp_path / "mine.py", tmp_path / "policy.cedar"
    mine.write_text(MINE.format(file=str(tmp_path / "notes")))
    policy.write_text(PERMIT)
    options = ["--tools", f"Calculator,{mine}", "--policy", str(policy), "--state", str(tmp_path / "state.db")]
    return [sys.executable, "-m", "toolwise", "mcp", *options]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_official_client_talks_to_the_command(mode: str, argv: list[str]) -> None:
    async def story(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["Calculator", "loud", "child", "note"]
        assert text_of(await client.call_tool("Calculator", {"expression": "18 / 24"})) == "0.75"
        assert text_of(await client.call_tool("loud", {})) == "quiet"
        assert text_of(await client.call_tool("child", {})) == "''"
        failed = await client.call_tool("Calculator", {"expression": "1 / 0"})
        assert failed.is_error
        assert text_of(failed).startswith("Error (")

    talk(StdioServerParameters(command=argv[0], args=argv[1:]), mode, story)


def test_standard_output_holds_messages_alone_and_what_is_none_is_answered_as_such(argv: list[str]) -> None:
    asked: list[Any] = [
        {"id": 1, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "loud", "arguments": {}}},
    ]
    strange = b'not json\n\n{"jsonrpc":"2.0","id":8,"id":9,"method":"tools/list"}\n\xff\n[]\n'
    lines = b"".join(json.dumps({"jsonrpc": "2.0", **each}).encode() + b"\n" for each in asked)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdin
        assert program.stdout
        program.stdin.write(lines + strange)
        program.stdin.flush()
        said = [json.loads(program.stdout.readline()) for _ in range(6)]
        program.stdin.close()
        assert program.stdout.read() == b""
        assert program.wait(30) == 0
        assert b"noise" in (program.stderr.read() if program.stderr else b"")
    assert sorted(each["id"] for each in said if each["id"]) == [1, 2]
    assert [each["error"]["code"] for each in said if each["id"] is None] == [-32700] * 4


@pytest.mark.case("E14")
def test_our_client_hands_a_calls_key_on_to_our_server(argv: list[str], tmp_path: Path) -> None:
    said = {"command": argv[0], "args": argv[1:], "keyed": ["note"], "seconds": 30}
    call, context = Call("1", "s__note", {"text": "a"}), CallContext(Principal("ann"), "run")
    for _ in range(2):  # the second time by a client that remembers nothing, and a server that was started anew
        found = mcp_tools({"servers": {"s": said}})
        try:
            with Gate(Registry(found.tools), CedarPolicy.from_text(PERMIT), open_state(":memory:")) as gate:
                assert gate.execute(call, context).text == "noted"
        finally:
            found.close()
    assert line_count(tmp_path / "notes") == 1


@pytest.mark.parametrize("revision", ["", "2025-11-25", "2026-07-28"])
def test_our_client_reaches_our_server_over_http(revision: str) -> None:
    with door() as served:
        said = {"url": served.url, "effects": {"Calculator": "read"}, "revision": revision}
        found = mcp_tools({"servers": {"s": said}})
        try:
            with Gate(Registry(found.tools), CedarPolicy.from_text(PERMIT), open_state(":memory:")) as gate:
                context = CallContext(Principal("ann"), "run")
                assert gate.execute(Call("1", "s__Calculator", {"expression": "18 / 24"}), context).text == "0.75"
                failed = gate.execute(Call("2", "s__fail", {"text": "a"}), context)
                assert failed.code == "tool_failed"
                assert "Error (tool_unavailable)" in failed.text
        finally:
            found.close()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--keys", "keys.toml"], "give --port"),
        (["--principal", ""], "--principal"),
        (["--port", "0", "--host", "0.0.0.0"], "give --keys"),
        (["--tools", "Calculater"], "did you mean Calculator"),
    ],
)
def test_what_cannot_be_meant_is_one_line(options: list[str], why: str, toolwise: Toolwise, tmp_path: Path) -> None:
    refused(toolwise("mcp", "--tools", "Calculator", "--state", tmp_path / "s.db", *options), "bad_input", why)
