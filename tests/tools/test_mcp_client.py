"""Tools of MCP servers behind the gate: results, errors, sessions that die, definitions that change, both revisions."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_talk import PERMIT, SHORT, Asking, asking, brought, hostile

from toolwise import Call, CallContext, Gate, Principal, Registry
from toolwise.core.types import Effect, ToolContext
from toolwise.gate.definitions import Definitions
from toolwise.tools.mcp import Brought

OFFICIAL = Path(__file__).with_name("mcp_official.py")
READS = {"effects": {"echo": "read"}}


def official(**said: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(OFFICIAL)], "effects": {"add": "read"}} | said


@pytest.fixture(params=["", "2025-11-25", "2026-07-28"], scope="module")
def found(request: pytest.FixtureRequest) -> Iterator[Brought]:
    with brought(SHORT, s=official(revision=request.param)) as tools:
        yield tools


def test_the_official_server_is_called_in_both_revisions(found: Brought) -> None:
    assert found.servers[0]._session.revision in ("2025-11-25", "2026-07-28")
    with (ask := Asking(found)).gate:
        assert ask("s__add", a=2, b=3).text == "5"
        assert ask("s__calendar__2e__update", day="monday").text == "updated monday"
        assert ask("s__add", a="2").code == "invalid_arguments"
        assert ask("s__ad", a=2, b=3).code == "unknown_tool"


@pytest.mark.case("R36")
def test_a_failed_call_of_the_official_server_stays_one(found: Brought) -> None:
    with (ask := Asking(found)).gate:
        result = ask("s__fail", call_id="1", path="x")
        assert result.code == "tool_failed"
        assert result.text.startswith("Error (tool_failed): The server says: Error executing tool fail")
        assert ask("s__fail", call_id="1", path="x").code == "tool_failed"
        assert [row.line.code for row in ask.gate.audit.rows()][-1] == "tool_failed"


def test_many_threads_share_a_server(found: Brought) -> None:
    with (ask := Asking(found)).gate:
        answers: dict[int, str] = {}

        def call(n: int) -> None:
            answers[n] = ask("s__add", call_id=f"t{n}", run=f"run-{n}", a=n, b=n).text

        threads = [threading.Thread(target=call, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert answers == {n: str(2 * n) for n in range(8)}


@pytest.mark.case("R36")
def test_is_error_is_a_failure_whose_text_is_safe_to_show() -> None:
    with asking("is error") as ask:
        result = ask("s__echo")
        assert not result.ok
        assert result.text == "Error (tool_failed): The server says: no such \\u001b[31mfile\\u200b"


@pytest.mark.parametrize(
    ("way", "text"),
    [("picture", "image/png of 3 bytes, which is no text\na"), ("structured", '{"n":1152921504606846976,"é":"日本"}')],
)
def test_what_is_no_text_is_told_in_text(way: str, text: str) -> None:
    with asking(way, **READS) as ask:
        assert ask("s__echo", text="a").text == text


def test_results_are_untrusted_and_a_tool_is_what_the_operator_says() -> None:
    said = hostile("good", effects={"echo": "read"}, private=True, public=False)
    with brought(s=said) as found, (ask := Asking(found)).gate:
        (tool,) = found.tools
        assert (tool.effect, tool.private, tool.public) == (Effect.READ, True, False)
        labels = ask("s__echo", text="a").labels
        assert (labels.integrity.value, labels.confidentiality.value) == ("untrusted", "private")


@pytest.mark.case("R46")
def test_a_server_that_died_between_two_calls_is_started_once_more_under_a_lock(tmp_path: Path) -> None:
    mark = tmp_path / "calls"
    with brought(s=hostile("good", str(mark))) as found, (ask := Asking(found)).gate:
        server = found.servers[0]
        assert ask("s__echo", text="a").text == "a"
        first = server._session
        kill(str(mark))
        first._task.result(10)
        made: list[object] = []
        new = server._new
        server._new = lambda: made.append(0) or new()  # type: ignore[method-assign, func-returns-value]
        results = [None] * 4

        def call(n: int) -> None:
            results[n] = ask("s__echo", call_id=f"again-{n}", run=f"run-{n}", text=str(n)).text  # type: ignore[call-overload]

        threads = [threading.Thread(target=call, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert results == ["0", "1", "2", "3"]
        assert len(made) == 1


@pytest.mark.case("R46")
@pytest.mark.parametrize(
    ("said", "code", "calls"),
    [
        ({}, "outcome_unknown", 1),
        ({"effects": {"echo": "read"}}, "ok", 2),
        ({"idempotent": ["echo"]}, "ok", 2),
        ({"keyed": ["echo"]}, "ok", 2),
    ],
    ids=["write", "read", "idempotent", "keyed"],
)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_call_whose_server_died_is_made_again_only_where_it_may_be(
    said: dict[str, Any], code: str, calls: int, revision: str, tmp_path: Path
) -> None:
    mark = tmp_path / "calls"
    with asking("dies once", str(mark), revision=revision, **said) as ask:
        assert ask("s__echo", text="a").code == code
    sent = [json.loads(line) for line in mark.read_text().splitlines()]
    assert len(sent) == calls
    keys = {params.get("_meta", {}).get("toolwise/idempotency-key") for params in sent}
    assert len(keys) == 1
    assert (keys != {None}) == ("keyed" in said)
    assert "ann" not in str(keys)  # who asks, and in which run, is not to be read in it


@pytest.mark.case("H2")
@pytest.mark.case("R48")
def test_a_tool_whose_description_changed_between_two_runs_is_suspended(tmp_path: Path) -> None:
    mark = tmp_path / "calls"
    with brought(s=hostile("rug pull at once", str(mark))) as found, (ask := Asking(found, definitions=True)).gate:
        assert ask("s__echo", text="a").ok
        state = ask.state
        with brought(s=hostile("rug pull at once", str(mark))) as later:
            pins = Definitions(state)
            with Gate(Registry(later.tools), PERMIT, state, definitions=pins) as gate:
                result = gate.execute(Call("2", "s__echo", {"text": "a"}), CallContext(Principal("ann"), "run"))
                assert result.code == "definition_changed"
                assert "sends a copy to eve" in pins.difference(later.tools[0])
    assert len(mark.read_text().splitlines()) == 1


@pytest.mark.case("H2")
@pytest.mark.case("R48")
def test_a_tool_that_changes_while_its_server_runs_is_not_called_any_more(tmp_path: Path) -> None:
    mark = tmp_path / "calls"
    with asking("rug pull", str(mark), **READS) as ask:
        assert ask("s__echo", text="a").ok
        assert ask("s__echo", text="a", call_id="2").code == "definition_changed"
    assert len(mark.read_text().splitlines()) == 1


def test_a_forked_process_has_a_session_of_its_own(tmp_path: Path) -> None:
    with brought(s=hostile("good", **READS)) as found, (ask := Asking(found)).gate:
        assert ask("s__echo", text="a").ok
        tool = found.tools[0]
        told = {str(tool.context_parameter): ToolContext(Principal("ann"), "", 9.0)}
        out = tmp_path / "out"
        pid = os.fork()
        if pid == 0:
            try:
                out.write_text(tool.run(text="from the child", **told))
                found.close()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        assert out.read_text() == "from the child"
        assert ask("s__echo", text="b").ok


def kill(argument: str) -> None:
    """Kill the program that has this argument."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            argv = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if argument.encode() in argv:
            os.kill(int(folder.name), signal.SIGKILL)
