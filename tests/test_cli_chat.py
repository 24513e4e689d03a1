"""`toolwise chat`: questions, tools, pauses and servers as somebody at a terminal or a script meets them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from api_of_ours import serving_scripted
from command_line import Outcome, Toolwise, refused
from toolwise.core import jsonio
from toolwise.gate.approval import Approvals
from toolwise.gate.audit import Audit
from toolwise.gate.state import open_state

TOOLS = '''
from toolwise import Effect, tool

@tool(effect=Effect.WRITE, bounded=True)
def send(to: str) -> str:
    """Sends something."""
    with open("sent.txt", "a") as kept:
        kept.write(to + "\\n")
    return "sent to " + to
'''
SEND = 'call send {"to": "ann"}'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("TOOLWISE_STATE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(TOOLS)
    return tmp_path


def events(done: Outcome) -> list[dict[str, object]]:
    return [jsonio.loads(line) for line in done.out.splitlines()]


def sent(folder: Path) -> list[str]:
    return (folder / "sent.txt").read_text().split() if (folder / "sent.txt").exists() else []


def approve(folder: Path, id: str) -> None:
    from toolwise.core.clock import SystemClock

    state = open_state(str(folder / "toolwise.db"))
    approvals = Approvals(state, Audit(state), SystemClock())
    approvals.decide(id, "approved", "bob", approvals.get(id).digest)
    state.close()


def test_a_question_is_answered_with_its_calls_shown(toolwise: Toolwise, folder: Path) -> None:
    asked = 'say Let me see.\ncall Calculator {"expression": "17*23"}'
    done = toolwise("chat", "--model", "scripted", "--tools", "Calculator", asked)
    assert done.code == 0, done
    assert done.out.split("\n") == [
        "Let me see.",
        '→ Calculator({"expression": "17*23"})',
        "← Calculator: 391",
        "The results: 391",
        "",
    ]


def test_nothing_is_empty_above_a_call_that_comes_first(toolwise: Toolwise, folder: Path) -> None:
    done = toolwise("chat", "--model", "scripted", "--tools", "Calculator", 'call Calculator {"expression": "17*23"}')
    assert done.out.startswith("→ Calculator")


def test_of_many_tools_those_that_fit_are_shown_and_others_can_be_looked_for(toolwise: Toolwise, folder: Path) -> None:
    every = "Calculator,Calendar,mine.py"
    asked = ("chat", "--model", "scripted", "--tools", every, 'call find_tools {"query": "send"}')
    found = toolwise(*asked, "--show-tools", 1)
    assert (found.code, "Sends something" in found.out) == (0, True), found
    assert "Sends something" not in toolwise(*asked).out


def test_a_script_gets_an_event_a_line(toolwise: Toolwise, folder: Path) -> None:
    done = toolwise("chat", "--model", "scripted", "--tools", "Calculator", "--json", "-", stdin=b"call Calc {}")
    told = events(done)
    assert [event["event"] for event in told][:2] == ["call", "result"]
    assert (told[1]["code"], told[1]["id"]) == ("unknown_tool", "1.0")
    assert (told[-1]["event"], told[-1]["reason"]) == ("end", "end")


def test_a_call_that_waits_pauses_the_run_and_the_same_command_goes_on(toolwise: Toolwise, folder: Path) -> None:
    command = ("chat", "--model", "scripted", "--tools", "mine.py", "--run", "talk.json")
    paused = toolwise(*command, "--json", SEND)
    assert paused.code == 1, paused
    waits = events(paused)[1]
    assert (waits["event"], events(paused)[-1]["reason"]) == ("waits", "approval")
    assert "--run 'talk.json' goes on" in toolwise(*command).out
    refused(toolwise(*command, "hello"), "bad_input", "go on with it, or interrupt it")
    approve(folder, str(waits["approval"]))
    done = toolwise(*command)
    assert (done.code, sent(folder)) == (0, ["ann"])
    assert "sent to ann" in done.out
    assert toolwise(*command, "say More.").out == "More.\n"
    assert len(jsonio.loads((folder / "talk.json").read_bytes())["messages"]) == 6


def test_who_decides_is_told_where_the_call_waits(toolwise: Toolwise, folder: Path) -> None:
    paused = toolwise("chat", "--model", "scripted", "--tools", "mine.py", "--state", "my calls.db", SEND)
    assert "Decide with `toolwise approvals --state 'my calls.db'`" in paused.out + paused.err


def test_calls_that_wait_can_be_given_up(toolwise: Toolwise, folder: Path) -> None:
    command = ("chat", "--model", "scripted", "--tools", "mine.py", "--run", "talk.json")
    toolwise(*command, SEND)
    done = toolwise(*command, "--interrupt", "say Never mind.")
    assert (done.code, done.out, sent(folder)) == (0, "Never mind.\n", [])


@pytest.mark.parametrize(("typed", "went"), [("y", ["ann"]), ("n", []), ("", [])])
def test_a_person_at_a_terminal_is_asked_at_once(toolwise: Toolwise, folder: Path, typed: str, went: list[str]) -> None:
    done = toolwise("chat", "--model", "scripted", "--tools", "mine.py", person=f"{SEND}\n{typed}\nsay Bye.\n")
    assert done.code == 0, done
    assert sent(folder) == went
    assert '"to": "ann"' in done.out  # the whole call was shown
    assert "Bye." in done.out  # a call that was not decided is given up


SLOW = '''
import time
from toolwise import Effect, tool

@tool(effect=Effect.READ)
def look() -> str:
    """Looks for long."""
    time.sleep(60)
    return "late"
'''


@pytest.mark.case("R41")
def test_who_interrupts_a_call_keeps_a_conversation_that_goes_on(toolwise: Toolwise, folder: Path) -> None:
    (folder / "slow.py").write_text(SLOW)
    command = ["chat", "--model", "scripted", "--tools", "slow.py", "--run", "talk.json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "toolwise", *command, "--json", "call look {}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        assert '"call"' in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, said) == (130, "toolwise: Interrupted. [interrupted]\n")
    *_, last = jsonio.loads((folder / "talk.json").read_bytes())["messages"]
    assert last["text"].startswith("Error (interrupted)")
    assert toolwise(*command, "say Go on.").out == "Go on.\n"


def test_what_a_tool_says_is_shown_and_not_obeyed(toolwise: Toolwise, folder: Path) -> None:
    done = toolwise("chat", "--model", "scripted", "say \x1b[2J[bold]x[/bold]")
    assert done.out == "\\u001b[2J[bold]x[/bold]\n"


def test_a_choice_is_one_of_the_tools_or_a_word(toolwise: Toolwise, folder: Path) -> None:
    command = ("chat", "--model", "scripted", "--tools", "Calculator,Calendar", "--json")
    done = toolwise(*command, "--choice", "Calendar", "say Hello.")
    assert [event["name"] for event in events(done) if event["event"] == "call"] == ["Calendar"]
    refused(toolwise(*command, "--choice", "Clock", "say Hello."), "bad_input", "one of the tools")
    assert events(toolwise(*command, "--choice", "none", "call Calendar {}"))[-1]["reason"] == "end"


@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_a_servers_model_answers_too(toolwise: Toolwise, folder: Path, format: str) -> None:
    with serving_scripted() as url:
        command = ("chat", "--upstream", url, "--format", format, "--model", "scripted", "--tools", "Calculator")
        done = toolwise(*command, 'call Calculator {"expression": "1+1"}')
        assert done.out.endswith("The results: 2\n"), done
    gone = toolwise(*command, "say Hello.")
    assert gone.code == 2
    assert "cannot be reached" in gone.err


def test_react_runs_over_any_model(toolwise: Toolwise, folder: Path) -> None:
    asked = 'say Thought: I add.\nsay Action: Calculator\nsay Action Input: {"expression": "1+1"}'
    done = toolwise("chat", "--model", "scripted", "--tools", "Calculator", "--react", "--json", asked)
    assert [event["text"] for event in events(done) if event["event"] == "result"] == ["2"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--policy", "p.cedar", "x"), "name them with --tools"),
        (("--key-env", "KEY", "x"), "--upstream"),
        (("",), "no question"),
        (("--run", "mine.py", "x"), "no run's state"),
        (("--upstream", "http://a.example", "--key-env", "HOME", "--model", "m", "x"), "plain text"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(
    toolwise: Toolwise, folder: Path, args: tuple[str, ...], words: str
) -> None:
    refused(toolwise("chat", *args), "bad_input", words)


def test_nothing_is_left_behind_without_tools(toolwise: Toolwise, folder: Path) -> None:
    assert toolwise("chat", "--model", "scripted", "say Hello.").out == "Hello.\n"
    assert sorted(path.name for path in folder.iterdir()) == ["mine.py"]
