"""MCP servers that break the protocol, each as a real process: they fail alone, in bounded memory and time."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from mcp_talk import SHORT, Asking, asking, brought, hostile

from toolwise.core.errors import BadInput
from toolwise.tools.mcp import mcp_tools

#: Of a server that looks only, so that what is lost may be asked for again.
READS = {"effects": {"echo": "read"}}
QUICK = replace(SHORT, mcp_call_seconds=1.0, attempts=1)


@pytest.mark.case("H7")
def test_a_line_of_a_hundred_megabytes_ends_the_server_and_is_not_held() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with asking("endless line") as ask:
        result = ask("s__echo", text="a")
        assert result.code == "outcome_unknown"  # it may have had its effect before it began to write
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


@pytest.mark.case("H7")
@pytest.mark.parametrize("way", ["log text", "half a character", "half a message", "wrong id", "exits", "dies"])
@pytest.mark.parametrize(
    ("said", "code"), [({}, "outcome_unknown"), (READS, "tool_unavailable")], ids=["write", "read"]
)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_server_that_breaks_the_protocol_fails_the_call(
    way: str, said: dict[str, object], code: str, revision: str
) -> None:
    with asking(way, limits=QUICK, revision=revision, **said) as ask:
        result = ask("s__echo", text="a")
        assert result.code == code
        assert "luck" not in result.text  # what it wrote to its standard error is the operator's


@pytest.mark.case("H7")
def test_a_second_answer_to_one_request_is_delivered_to_nobody_and_ends_the_session(tmp_path: Path) -> None:
    with asking("duplicate id", str(tmp_path / "calls"), **READS) as ask:
        assert [ask("s__echo", text=word).text for word in ("a", "b")] == ["a", "b"]


@pytest.mark.case("H7")
@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("reply before request", "answered what it was not asked"),
        ("log text at the start", "no message"),
        ("exits at once", 'ended; the last it said was "no module named luck"'),
        ("silent", "did not list its tools within 1 seconds"),
        ("endless pages", "pages of tools"),
        ("thousands", "more than 256 tools"),
    ],
)
def test_a_server_that_cannot_be_used_is_left_out_and_the_others_work(way: str, reason: str) -> None:
    bad = hostile(way, start_seconds=1 if way == "silent" else 30)
    with brought(good=hostile("good", **READS), bad=bad) as found:
        assert [tool.name for tool in found.tools] == ["good__echo"]
        (left_out,) = found.left_out
        assert (left_out.server, left_out.tool) == ("bad", "")
        assert reason in left_out.reason
        with (ask := Asking(found)).gate:
            assert ask("good__echo", text="hello").text == "hello"


@pytest.mark.case("H7")
@pytest.mark.parametrize(("said", "code"), [({}, "outcome_unknown"), (READS, "timeout")], ids=["write", "read"])
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_server_that_never_answers_costs_the_time_of_one_call(
    said: dict[str, object], code: str, revision: str
) -> None:
    with asking("never answers", limits=QUICK, revision=revision, **said) as ask:
        before = time.monotonic()
        assert ask("s__echo", text="a").code == code
        assert time.monotonic() - before < 5


def test_a_server_that_was_silent_twice_is_started_anew(tmp_path: Path) -> None:
    with brought(QUICK, s=hostile("never answers", **READS)) as found, (ask := Asking(found, QUICK)).gate:
        first = found.servers[0]._session
        for _ in range(2):
            ask("s__echo", text="a")
        first._task.result(10)
        ask("s__echo", text="a")
        assert found.servers[0]._session is not first


@pytest.mark.case("H7")
def test_a_server_that_chatters_without_end_is_ended() -> None:
    with asking("chatters", limits=replace(SHORT, attempts=1), **READS) as ask:
        assert ask("s__echo", text="a").code == "tool_unavailable"


@pytest.mark.parametrize(
    ("way", "says"),
    [("thousands of parts", "\na\n(4000 more parts of this result are left out.)"), ("parts of parts", "a")],
)
def test_what_nobody_reads_of_a_result_costs_nothing_and_what_is_left_out_is_told(way: str, says: str) -> None:
    """The package takes ten seconds to check it, in which no other server is heard."""
    with asking(way, **READS) as ask:
        result = ask("s__echo", text="a")
        assert result.ok
        assert result.text.endswith(says)


def test_a_message_of_more_values_than_one_needs_ends_its_server() -> None:
    with asking("large notification", limits=replace(SHORT, attempts=1), **READS) as ask:
        assert ask("s__echo", text="a").code == "tool_unavailable"


def test_what_a_server_asks_for_is_declined_and_costs_nothing() -> None:
    with asking("asks", **READS) as ask:
        assert ask("s__echo", text="a").text == "a"


@pytest.mark.parametrize("way", ["no result", "internal"])
@pytest.mark.parametrize(
    ("said", "code"), [({}, "outcome_unknown"), (READS, "tool_unavailable")], ids=["write", "read"]
)
def test_an_answer_that_says_nothing_of_the_effect_leaves_it_unknown(
    way: str, said: dict[str, object], code: str
) -> None:
    with asking(way, limits=QUICK, **said) as ask:
        result = ask("s__echo", text="a")
        assert result.code == code
        assert "postgres" not in result.text


def test_a_call_that_a_server_refuses_has_failed() -> None:
    with asking("invalid") as ask:
        assert ask("s__echo", text="a").text == (
            "Error (tool_failed): The server refuses the call (-32602): bad arguments"
        )


@pytest.mark.case("H5")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_tools_that_cannot_be_used_are_left_out_one_by_one_with_reasons(revision: str) -> None:
    with brought(s=hostile("bad tools", revision=revision)) as found:
        assert [tool.name for tool in found.tools] == ["s__echo"]
        reasons = {each.tool: each.reason for each in found.left_out}
        assert reasons.keys() == {
            *("fetches", "circles", "explodes", "nothing", "deep", "list", "text", "no-object", "", "twice")
        }
        assert all(reasons.values())


@pytest.mark.case("H3")
def test_descriptions_show_all_that_is_in_them_and_are_bounded() -> None:
    with brought(s=hostile("hidden words")) as found:
        (tool,) = found.tools
        assert tool.description == "Gives back\\u2060. (of the server s)"
        names = tool.parameters["properties"]
        assert names["description"]["description"].startswith("A\\u200b text.\\u001b[2Kxxx")
        assert len(names["description"]["description"]) < 1_100
        assert names["title"] == {"const": {"description": " as\tit is "}}
        assert "title" not in tool.parameters


@pytest.mark.case("H6")
def test_what_a_server_says_of_its_tools_harmlessness_is_not_believed() -> None:
    with brought(s=hostile("harmless")) as found:
        assert found.tools[0].effect == "write"


def test_where_no_server_has_a_tool_that_is_an_error_with_the_reasons() -> None:
    with pytest.raises(BadInput, match="the server s is left out: it ended"):
        mcp_tools({"servers": {"s": hostile("exits at once")}}, SHORT)


def test_a_server_that_ignores_its_end_is_killed_in_bounded_time() -> None:
    with brought(s=hostile("ignores the end")) as found:
        before = time.monotonic()
    assert time.monotonic() - before < 6
    assert found.servers[0]._session._task.done()


def test_a_server_that_does_not_read_costs_the_time_of_its_calls() -> None:
    with asking("deaf", limits=QUICK, **READS) as ask:
        before = time.monotonic()
        codes = [ask("s__echo", text=letter * 30_000).code for letter in "abcd"]  # more than a pipe holds
        assert codes[:2] == ["timeout"] * 2
        assert set(codes) <= {"timeout", "tool_unavailable"}
        assert time.monotonic() - before < 15


def test_a_program_that_ends_takes_its_servers_along(tmp_path: Path) -> None:
    mark = str(tmp_path / "a mark that nothing else has")
    config = repr({"servers": {"s": hostile("ignores the end", mark)}})
    code = f"from toolwise.tools.mcp import mcp_tools; print(mcp_tools({config}).tools[0].name)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "s__echo\n"
    assert mark not in _argvs()


def test_no_process_is_left_behind(tmp_path: Path) -> None:
    mark = str(tmp_path / "a mark that nothing else has")
    with brought(s=hostile("good", mark)):
        assert mark in _argvs()
    assert mark not in _argvs()


def _argvs() -> str:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if folder.stat().st_uid == os.getuid():
                found.append((folder / "cmdline").read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(found)
