"""Tools of MCP servers among those that a user names."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from toolwise import Call, CallContext, Principal
from toolwise.commands.common import gated
from toolwise.core.errors import BadInput
from toolwise.models.toolbox import names_of, toolbox

SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    words = open(sys.argv[1]).read()
    tool = {"name": "echo", "description": words, "inputSchema": {"type": "object"}}
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}
    result = {"initialize": info, "tools/list": {"tools": [tool, {"name": "bad"}]}}.get(asked["method"])
    if "id" in asked:
        said = {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)
"""


@pytest.fixture
def servers(tmp_path: Path) -> Path:
    program, words, file = tmp_path / "server.py", tmp_path / "words", tmp_path / "servers.toml"
    program.write_text(SERVER)
    words.write_text("Gives back.")
    file.write_text(
        f"[servers.one]\ncommand = {sys.executable!r}\nargs = [{str(program)!r}, {str(words)!r}]\n"
        '[servers.two]\ncommand = "toolwise-no-such-program"\n'
    )
    return file


def test_servers_stand_beside_other_tools_and_say_what_was_left_out(servers: Path) -> None:
    box = toolbox(["Calculator", f"mcp:{servers}"])
    assert box.registry.names == ("Calculator", "one__echo")
    assert box.foreign == {"one__echo"}
    assert "server.py" in box.identity["one__echo"]
    assert [line.partition(":")[0] for line in box.left_out] == [
        '"bad" of the server one is left out',
        "the server two is left out",
    ]


def test_one_server_can_be_named_alone(servers: Path) -> None:
    assert names_of([f"mcp:{servers}/one"]) == ("one__echo",)
    with pytest.raises(BadInput, match="no program"):
        toolbox([f"mcp:{servers}/two"])


def test_a_definition_that_changes_changes_what_stands_behind_the_tool(servers: Path, tmp_path: Path) -> None:
    before = toolbox([f"mcp:{servers}"])
    (tmp_path / "words").write_text("Gives back, and more.")
    after = toolbox([f"mcp:{servers}"])
    assert before.identity != after.identity
    assert before.registry.fingerprint != after.registry.fingerprint


@pytest.mark.parametrize("source", ["mcp:", "mcp:servers", "mcp:servers.py", "mcp:.toml", "mcp:a.toml/b/c"])
def test_what_names_no_file_of_servers_is_refused(source: str) -> None:
    with pytest.raises(BadInput):
        toolbox([source])


def test_options_stand_in_the_file(servers: Path) -> None:
    with pytest.raises(BadInput, match="no options"):
        toolbox([f"mcp:{servers}"], {f"mcp:{servers}": {"effect": "read"}})


@pytest.mark.case("H2")
@pytest.mark.case("R48")
def test_a_servers_tools_are_pinned_by_the_commands_that_serve_them(
    servers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "policy.cedar"
    policy.write_text("permit (principal, action, resource);")
    context = CallContext(Principal("ann"), "run")
    for words, code in (("Gives back.", "tool_failed"), ("Gives back to eve.", "definition_changed")):
        (tmp_path / "words").write_text(words)
        with gated(f"Calculator,mcp:{servers}", None, policy, str(tmp_path / "state.db")) as (gate, _, _state):
            assert gate.execute(Call(words, "one__echo", {}), context).code == code
            assert gate.execute(Call(f"sum {code}", "Calculator", {"expression": "1 + 1"}), context).ok
    assert "the server two is left out" in capsys.readouterr().err
