"""The processes behind a runner: how many, of whom, and how they end."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from isolate_bench import eventually, is_dead, once, runner, running, servers, spin, stay, told, tool

from toolwise.core.limits import LIMITS
from toolwise.gate import forkserver, processes
from toolwise.gate.isolate import Runner
from toolwise.gate.outcome import Outcome

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

PID = tool(os.getpid)


def ready(server: int, number: int) -> set[int]:
    """The children of a server that has as many as it should."""

    def look() -> set[int]:
        found = set(processes.children(server))
        return found if len(found) == number and not any(map(is_dead, found)) else set()

    found: set[int] = eventually(look)
    return found


def held(server: int) -> tuple[int, int]:
    """How many files this process and an idle server have open, perhaps with one that the server is about to close."""
    ready(server, 1)
    return len(os.listdir("/proc/self/fd")), len(os.listdir(f"/proc/{server}/fd"))


@contextlib.contextmanager
def in_flight(shared: Runner, begun: Path, seconds: float = 20.0) -> Iterator[list[Outcome]]:
    """While the block runs, a call of `stay` does too; its outcome is there afterwards."""
    outcomes: list[Outcome] = []
    probe = next(iter(shared._tools.values()))
    call = threading.Thread(target=lambda: outcomes.append(shared.run(probe, {}, told(seconds))))
    call.start()
    try:
        eventually(begun.exists)
        yield outcomes
    finally:
        call.join(seconds)


def test_tools_that_run_here_start_no_process() -> None:
    inside = tool(os.getpid, bounded=True)
    with runner(inside) as shared:
        assert shared.run(inside, {}, told()).text == str(os.getpid())
        assert servers() == []


def test_a_call_is_served_by_a_child_that_was_ready_and_each_by_another() -> None:
    with runner(PID, limits=replace(LIMITS, warm_children=3)) as shared:
        (server,) = servers()
        before = ready(server, 3)
        served = {int(shared.run(PID, {}, told()).text) for _ in range(3)}
        assert served == before
        eventually(lambda: ready(server, 3).isdisjoint(served))


def test_many_calls_leave_no_process_and_no_descriptor_behind() -> None:
    before = len(os.listdir("/proc/self/fd"))
    with runner(PID) as shared:
        (server,) = servers()
        during = held(server)
        assert len({shared.run(PID, {}, told()).text for _ in range(50)}) == 50
        eventually(lambda: all(now <= then for now, then in zip(held(server), during, strict=True)))
    assert (servers(), is_dead(server)) == ([], True)
    assert len(os.listdir("/proc/self/fd")) == before


def test_more_calls_at_once_than_children_ready_all_get_their_own_answers() -> None:
    probe = tool(lambda number: number)
    answers: dict[int, str] = {}
    with runner(probe) as shared:

        def call(number: int) -> None:
            answers[number] = shared.run(probe, {"number": number}, told(20.0)).text

        threads = [threading.Thread(target=call, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert answers == {number: str(number) for number in range(16)}


def test_children_that_were_killed_while_they_waited_are_replaced() -> None:
    with runner(PID, limits=replace(LIMITS, warm_children=3)) as shared:
        (server,) = servers()
        children = ready(server, 3)
        for child in children:
            os.kill(child, signal.SIGKILL)
        eventually(lambda: all(map(is_dead, children)))
        assert shared.run(PID, {}, told()).code == "ok"
        assert servers() == [server]


def test_a_server_that_was_killed_is_made_anew() -> None:
    with runner(PID) as shared:
        (server,) = servers()
        children = ready(server, 1)
        os.kill(server, signal.SIGKILL)
        eventually(lambda: all(map(is_dead, children)))
        assert shared.run(PID, {}, told()).code == "ok"
        (other,) = eventually(lambda: [pid for pid in servers() if not is_dead(pid)])
        assert other != server
    assert servers() == []


def test_a_call_whose_server_is_killed_has_not_answered(tmp_path: Path) -> None:
    with runner(tool(lambda: stay(tmp_path / "begun", tmp_path / "never"))) as shared:
        with in_flight(shared, tmp_path / "begun") as outcomes:
            os.kill(servers()[0], signal.SIGKILL)
        assert [(outcome.code, outcome.answered) for outcome in outcomes] == [("tool_failed", False)]


def test_a_runner_that_is_closed_ends_the_calls_in_flight_and_starts_again_when_it_is_needed(tmp_path: Path) -> None:
    begun, until = tmp_path / "begun", tmp_path / "until"
    shared = runner(tool(lambda: stay(begun, until)))
    with in_flight(shared, begun) as outcomes:
        shared.close()
        assert (servers(), is_dead(int(begun.read_text()))) == ([], True)
    assert [outcome.code for outcome in outcomes] == ["tool_failed"]
    until.touch()
    with shared:
        assert shared.run(next(iter(shared._tools.values())), {}, told()).text == "done"


def test_a_runner_that_nobody_holds_takes_its_processes_along() -> None:
    shared = runner(PID)
    assert len(servers()) == 1
    del shared
    gc.collect()
    assert servers() == []


def test_without_a_process_to_be_had_the_call_is_refused_and_the_next_one_tries_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise BlockingIOError

    with monkeypatch.context() as patched:
        patched.setattr(forkserver, "start", fail)
        shared = runner(PID)
        outcome = shared.run(PID, {}, told())
    assert (outcome.code, outcome.answered) == ("limit", True)
    with shared:
        assert shared.run(PID, {}, told()).code == "ok"


def test_without_fork_only_bounded_tools_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    assert [once(tool(spin)).code, once(tool(lambda: 1, bounded=True)).text] == ["limit", "1"]


def test_a_copy_of_the_process_has_a_server_of_its_own() -> None:
    with runner(PID) as shared:
        (server,) = servers()
        ends = os.pipe()
        copy = os.fork()
        if copy == 0:
            try:
                outcome = shared.run(PID, {}, told())
                mine = servers()
                shared.close()
                os.write(ends[1], f"{outcome.code} {server in mine} {len(mine)} {len(servers())}".encode())
            finally:
                os._exit(0)
        os.waitpid(copy, 0)
        assert os.read(ends[0], 100) == b"ok False 1 0"
        for end in ends:
            os.close(end)
        assert (shared.run(PID, {}, told()).code, servers()) == ("ok", [server])


def test_any_thread_may_start_a_server() -> None:
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(once(PID)))
    thread.start()
    thread.join(20.0)
    assert [outcome.code for outcome in outcomes] == ["ok"]


def test_a_program_that_has_no_streams_runs_its_tools(tmp_path: Path) -> None:
    script = """
import os, pathlib, sys
from isolate_bench import run
os.closerange(0, 3)
def work():
    print("printed", flush=True)
    return sys.stdin.read() + "done"
pathlib.Path(sys.argv[1]).write_text(run(work).text)
"""
    command, here = [sys.executable, "-c", script, str(tmp_path / "text")], Path(__file__).parent
    subprocess.run(command, timeout=60, check=True, cwd=here)
    assert (tmp_path / "text").read_text() == "done"


def test_without_prctl_and_proc_the_group_of_a_child_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    marker = f"survivor-{uuid.uuid4()}"

    def start(forever: bool) -> str:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", marker])
        while forever:
            pass
        return "started"

    probe = tool(start)
    with monkeypatch.context() as patched:
        patched.setattr(processes, "_prctl", None)
        patched.setattr(processes, "children", lambda pid: [])
        patched.setattr(processes, "is_alone", lambda pid: False)
        patched.delattr(os, "waitid")
        with runner(probe) as shared:
            codes = [shared.run(probe, {"forever": forever}, told(1.0)).code for forever in (False, True)]
    assert codes == ["ok", "timeout"]
    eventually(lambda: running(marker) == [])


@pytest.mark.parametrize("copied", [False, True], ids=["alone", "with a copy that lives on"])
def test_everything_ends_with_the_program(copied: bool, tmp_path: Path) -> None:
    marker, begun = f"survivor-{uuid.uuid4()}", tmp_path / "begun"
    script = f"""
import os, pathlib, signal, sys, threading
from isolate_bench import eventually, runner, servers, stay, told, tool
from test_isolate import leave_program
program, begun = os.getpid(), pathlib.Path({str(begun)!r})
def work():
    leave_program({marker!r})
    stay(begun, begun.with_name("never"))
probe = tool(work)
shared = runner(probe)
threading.Thread(target=shared.run, args=(probe, {{}}, told(60.0)), daemon=True).start()
eventually(begun.exists)
copy = os.fork() if {copied} else program
if copy == 0:
    signal.pause()
begun.with_name("copy").write_text(str(copy))
begun.with_name("server").write_text(str(servers()[0]))
os.kill(program, signal.SIGKILL)
"""
    command, here = [sys.executable, "-c", script, marker], Path(__file__).parent
    done = subprocess.run(command, timeout=60, check=False, cwd=here)
    assert done.returncode == -signal.SIGKILL
    server, child, copy = (int((tmp_path / name).read_text()) for name in ("server", "begun", "copy"))
    try:
        eventually(lambda: is_dead(server) and is_dead(child) and set(running(marker)) <= {str(copy)})
        assert is_dead(copy) is not copied
    finally:
        if copied:
            os.kill(copy, signal.SIGKILL)
