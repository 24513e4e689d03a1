"""One tool, run so that it ends. Times are real; every wait is bounded by the tool's own deadline."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from isolate_bench import (
    LEAN,
    eventually,
    is_dead,
    lasting_at_most,
    once,
    run,
    runner,
    running,
    spin,
    stay,
    told,
    tool,
)

from toolwise.core.clock import FakeClock
from toolwise.core.limits import LIMITS
from toolwise.gate.isolate import Runner
from toolwise.gate.outcome import Outcome

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def memory(what: str) -> int:
    """Bytes, of `VmRSS` (now) or `VmHWM` (the most since the peak was last forgotten)."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{what}:")[2].split()[0]) * 1024


@contextlib.contextmanager
def growing_at_most(most: int) -> Iterator[None]:
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    yield
    assert memory("VmHWM") - before <= most


def test_the_answer_of_a_closure_comes_back() -> None:
    table = {"a": 1}
    assert run(lambda key: {"found": table[key]}, key="a") == Outcome("ok", '{"found":1}', 11)


def test_what_a_tool_changes_in_its_process_is_not_seen_outside_nor_by_the_next_call() -> None:
    table: list[int] = []

    def grow() -> int:
        table.append(1)
        return len(table)

    probe = tool(grow)
    with runner(probe) as shared:
        assert [shared.run(probe, {}, told()).text for _ in range(3)] == ["1"] * 3
    assert table == []


def test_a_tool_is_told_all_that_the_gate_says() -> None:
    probe = tool(lambda context: asdict(context), context_parameter="context")
    assert once(probe).text == '{"key":"key-1","principal":{"id":"ann"},"seconds":5.0,"today":"2024-05-01"}'


def test_arguments_arrive_as_they_were() -> None:
    given = {"big": 2**60 + 1, "tiny": 5e-324, "text": "né\n\u2028", "nested": [[None, True], {"": -0.0}]}
    outcome = run(lambda **arguments: repr(arguments), **given)
    assert outcome.text == repr(dict(sorted(given.items())))


def test_arguments_that_no_child_could_read_are_refused() -> None:
    assert run(lambda text: text, text="x" * (LIMITS.string_bytes + 1)).code == "invalid_arguments"
    assert run(lambda thing: thing, thing=object()).code == "result_invalid"


def test_a_tool_that_the_runner_was_not_made_for_does_not_run() -> None:
    with runner(tool(lambda: "mine")) as shared:
        assert shared.run(tool(lambda: "yours"), {}, told()).code == "unknown_tool"


def test_only_a_bounded_tool_runs_in_this_process() -> None:
    async def coroutine() -> int:
        return os.getpid()

    for probe, inside in (
        (tool(os.getpid, bounded=True), True),
        (tool(os.getpid), False),
        (tool(coroutine, bounded=True), False),
    ):
        assert (once(probe).text == str(os.getpid())) is inside


@pytest.mark.case("D1")
def test_an_endless_loop_ends_at_its_deadline_and_its_process_is_gone(tmp_path: Path) -> None:
    def work() -> None:
        (tmp_path / "pid").write_text(str(os.getpid()))
        spin()

    probe = tool(work)
    with runner(probe) as shared, lasting_at_most(2.0):
        with lasting_at_most(1.5):
            outcome = shared.run(probe, {}, told(1.0))
        eventually(lambda: is_dead(int((tmp_path / "pid").read_text())))
    assert (outcome.code, outcome.answered, outcome.late) == ("timeout", False, None)


@pytest.mark.case("D2")
def test_a_coroutine_that_swallows_its_cancellation_still_times_out() -> None:
    async def stubborn() -> str:
        for _ in range(100):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(1)
        return "ok"

    with lasting_at_most(1.5):
        assert run(stubborn, 0.5).code == "timeout"


@linux
@pytest.mark.case("D2")
@pytest.mark.case("D7")
def test_an_answer_after_the_deadline_is_kept_beside_the_timeout(tmp_path: Path) -> None:
    begun, until = tmp_path / "begun", tmp_path / "until"

    class Late:
        """A clock by which the deadline passes while the answer is on its way."""

        def monotonic(self) -> float:
            if not begun.exists():
                return 0.0
            until.touch()
            stat = Path(f"/proc/{begun.read_text()}/stat")
            eventually(lambda: stat.read_bytes().rpartition(b")")[2].split()[0] == b"S")
            return 100.0

    probe = tool(lambda: stay(begun, until))
    with Runner([probe], LEAN, Late()) as shared:  # type: ignore[arg-type]  it is asked for nothing else
        outcome = shared.run(probe, {}, told())
    assert (outcome.code, outcome.answered) == ("timeout", False)
    assert outcome.late == Outcome("ok", "done", 4)


def test_a_coroutine_runs_also_when_the_caller_has_an_event_loop() -> None:
    async def quick() -> str:
        await asyncio.sleep(0)
        return "done"

    async def caller() -> Outcome:
        return run(quick)

    assert asyncio.run(caller()).text == "done"


def test_a_child_has_a_session_of_its_own_so_that_no_key_of_the_terminal_reaches_it() -> None:
    assert run(lambda: os.getsid(0) == os.getpid()).text == "true"


def test_a_host_that_reaps_every_child_gets_its_answers_too() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert run(lambda: 1).text == "1"
        assert run(lambda: os._exit(0)).code == "tool_failed"
    finally:
        signal.signal(signal.SIGCHLD, before)


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("error", [SystemExit(0), asyncio.CancelledError(), GeneratorExit()])
def test_a_tool_that_exits_has_failed(error: BaseException, bounded: bool) -> None:
    def leave() -> None:
        raise error

    outcome = once(tool(leave, bounded=bounded))
    assert (outcome.code, outcome.answered) == ("tool_failed", True)


@pytest.mark.case("D6")
def test_only_the_clock_of_the_gate_decides_about_the_deadline() -> None:
    clock = FakeClock(datetime(2024, 1, 1, tzinfo=UTC))
    outcomes: list[Outcome] = []
    probe = tool(spin)
    with Runner([probe], LEAN, clock) as shared:
        waiting = threading.Thread(target=lambda: outcomes.append(shared.run(probe, {}, told(5.0))), daemon=True)
        waiting.start()
        for year in (1970, 2039, 2024):
            clock.set(datetime(year, 1, 1, tzinfo=UTC))
            waiting.join(0.1)
            assert waiting.is_alive()
        clock.advance(5.1)
        waiting.join(5.0)
    assert [outcome.code for outcome in outcomes] == ["timeout"]


# What a tool leaves behind


def leave_program(marker: str) -> str:
    command = [sys.executable, "-c", "import time; time.sleep(60)", marker]
    return str(subprocess.Popen(command, start_new_session=True).pid)


@linux
@pytest.mark.case("D3")
def test_a_process_that_left_the_session_does_not_survive_an_answer() -> None:
    marker = f"survivor-{uuid.uuid4()}"
    with lasting_at_most(1.5):
        assert run(lambda: leave_program(marker)).code == "ok"
    assert running(marker) == []


@linux
@pytest.mark.case("D3")
def test_an_orphan_of_an_orphan_does_not_survive_a_timeout(tmp_path: Path) -> None:
    marker, begun = f"survivor-{uuid.uuid4()}", tmp_path / "begun"

    def orphan() -> None:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                code = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(60)"
                os.execv(sys.executable, [sys.executable, "-c", code, str(begun), marker])
            os._exit(0)
        spin()

    with lasting_at_most(2.0):
        assert run(orphan, 1.0).code == "timeout"
    assert begun.exists()
    assert running(marker) == []


@linux
@pytest.mark.case("D3")
@pytest.mark.parametrize("holds_the_answer", [True, False])
def test_what_a_tool_left_behind_does_not_survive_its_own_death(holds_the_answer: bool) -> None:
    marker = f"survivor-{uuid.uuid4()}"

    def die() -> None:
        leave_program(marker)
        if holds_the_answer and os.fork() == 0:
            os.setsid()
            spin()
        os._exit(3)

    probe = tool(die)
    with runner(probe) as shared:
        with lasting_at_most(1.5):
            outcome = shared.run(probe, {}, told(20.0))
        assert running(marker) == []
    assert (outcome.code, outcome.answered) == ("tool_failed", False)
    assert f"wait status {3 << 8}" in outcome.detail


@linux
def test_nothing_is_left_to_reap_where_this_process_is_the_first_of_a_container() -> None:
    script = """
import ctypes, os, pathlib, subprocess
from isolate_bench import run
ctypes.CDLL(None).prctl(36, 1)  # orphans fall to this process, as they do to the first of a container
run(lambda: str(subprocess.Popen(["sleep", "60"], start_new_session=True).pid))
print([p.read_text() for p in pathlib.Path("/proc/self/task").glob("*/children")])
"""
    command, here = [sys.executable, "-c", script], Path(__file__).parent
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=here)
    assert done.stdout == "['']\n"


def test_an_interrupt_leaves_no_child(tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    begun = tmp_path / "begun"
    probe = tool(lambda: stay(begun, tmp_path / "never"))
    before = signal.signal(signal.SIGUSR1, interrupt)
    me = threading.get_ident()

    def send() -> None:
        eventually(begun.exists)
        signal.pthread_kill(me, signal.SIGUSR1)

    sender = threading.Thread(target=send)
    try:
        with runner(probe) as shared:
            sender.start()
            with pytest.raises(KeyboardInterrupt):
                shared.run(probe, {}, told(20.0))
            eventually(lambda: is_dead(int(begun.read_text())), 1.0)
    finally:
        sender.join()
        signal.signal(signal.SIGUSR1, before)


# What a tool gives


@linux
@pytest.mark.case("C5")
@pytest.mark.parametrize("size", [50_000_000, 300_000_000])
def test_a_huge_text_is_cut_in_the_child(size: int) -> None:
    probe = tool(lambda: "x" * size)
    with runner(probe) as shared, growing_at_most(4 * 1024**2):
        outcome = shared.run(probe, {}, told(60.0))
    assert (outcome.code, len(outcome.text), outcome.total_bytes) == ("ok", LIMITS.result_bytes, size)


@linux
@pytest.mark.case("C5")
@pytest.mark.parametrize("endless", ["print", "program"])
def test_printing_for_ever_ends_at_the_cap(endless: str) -> None:
    def prints() -> None:
        while True:
            print("y" * 1000)

    def program() -> None:
        subprocess.run(["yes"], check=False)

    probe = tool(prints if endless == "print" else program)
    with runner(probe) as shared, lasting_at_most(2.0), growing_at_most(4 * 1024**2):
        outcome = shared.run(probe, {}, told())
    assert (outcome.code, outcome.answered) == ("limit", False)
    assert len(outcome.detail) <= LIMITS.audit_chars


def test_text_is_cut_between_characters() -> None:
    outcome = run(lambda: "é€" * 10, 5.0, replace(LEAN, result_bytes=10))
    assert (outcome.text, outcome.total_bytes) == ("é€é€", 50)


def cyclic() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.case("C7")
@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize(
    "give",
    [
        lambda: float("nan"),
        lambda: 10**5000,
        lambda: {1, 2},
        object,
        cyclic,
        lambda: (n for n in (1, 2)),
        lambda: {1: 2},
        lambda: b"bytes",
        lambda: "\ud800",
    ],
)
def test_what_is_neither_text_nor_finite_json_is_an_invalid_result(give: Callable[[], Any], bounded: bool) -> None:
    outcome = once(tool(give, bounded=bounded))
    assert (outcome.code, outcome.answered) == ("result_invalid", True)


@pytest.mark.case("C8")
@pytest.mark.parametrize("bounded", [True, False])
def test_the_text_of_an_exception_stays_in_the_detail(bounded: bool) -> None:
    def leak() -> None:
        raise ValueError("postgres://u:p@h " + "x" * 10_000_000)

    outcome = once(tool(leak, bounded=bounded))
    assert outcome.code == "tool_failed"
    assert "postgres" not in outcome.text
    assert len(outcome.detail) == LIMITS.audit_chars


def test_the_detail_names_the_line_that_failed() -> None:
    outcome = run(lambda: 1 // 0)
    assert "ZeroDivisionError" in outcome.detail
    assert __file__ in outcome.detail


@pytest.mark.parametrize("signal_or_status", [signal.SIGSEGV, 1])
def test_a_process_that_dies_has_not_answered(signal_or_status: int) -> None:
    def die() -> None:
        if signal_or_status == signal.SIGSEGV:
            os.kill(os.getpid(), signal.SIGSEGV)
        os._exit(signal_or_status)

    outcome = run(die)
    assert (outcome.code, outcome.answered) == ("tool_failed", False)
