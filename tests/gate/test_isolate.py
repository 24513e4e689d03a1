"""One tool, run so that it ends. Times are real; every wait is bounded by the tool's own deadline."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from toolwise.core.clock import FakeClock, SystemClock
from toolwise.core.limits import LIMITS
from toolwise.core.types import Effect, Principal, Tool, ToolContext
from toolwise.gate import isolate
from toolwise.gate.outcome import Outcome, pack, unpack

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def tool(function: Callable[..., Any], **settings: Any) -> Tool:
    return Tool("probe", "A probe.", {"type": "object"}, Effect.PURE, function, **settings)


def told(seconds: float = 5.0) -> ToolContext:
    return ToolContext(Principal("ann"), "2024-05-01", seconds)


def run(function: Callable[..., Any], seconds: float = 5.0, /, **arguments: Any) -> Outcome:
    return isolate.run(tool(function), arguments, told(seconds), LIMITS, SystemClock())


def spin() -> None:
    while True:
        pass


def running(marker: str) -> list[str]:
    """Processes that carry the marker in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                found += [entry.name] * (marker.encode() in (entry / "cmdline").read_bytes())
    return found


@contextlib.contextmanager
def lasting_at_most(seconds: float) -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started <= seconds


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


def test_what_a_tool_changes_in_its_process_is_not_seen_outside() -> None:
    table: list[int] = []
    assert run(lambda: table.append(1)).text == "null"
    assert table == []


def test_a_tool_is_told_who_asks() -> None:
    asks = tool(lambda context: f"{context.principal.id} {context.today}", context_parameter="context")
    assert isolate.run(asks, {}, told(), LIMITS, SystemClock()).text == "ann 2024-05-01"


def test_only_a_bounded_tool_runs_in_this_process() -> None:
    async def coroutine() -> int:
        return os.getpid()

    for probe, inside in (
        (tool(os.getpid, bounded=True), True),
        (tool(os.getpid), False),
        (tool(coroutine, bounded=True), False),
    ):
        outcome = isolate.run(probe, {}, told(), LIMITS, SystemClock())
        assert (outcome.text == str(os.getpid())) is inside


@pytest.mark.case("D1")
def test_an_endless_loop_ends_at_its_deadline() -> None:
    with lasting_at_most(1.5):
        outcome = run(spin, 0.5)
    assert (outcome.code, outcome.answered) == ("timeout", False)


@pytest.mark.case("D2")
def test_a_coroutine_that_swallows_its_cancellation_still_times_out() -> None:
    async def stubborn() -> str:
        for _ in range(100):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(1)
        return "ok"

    with lasting_at_most(1.5):
        assert run(stubborn, 0.5).code == "timeout"


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

    outcome = isolate.run(tool(leave, bounded=bounded), {}, told(), LIMITS, SystemClock())
    assert (outcome.code, outcome.answered) == ("tool_failed", True)


@linux
@pytest.mark.case("D3")
def test_a_process_that_left_the_session_does_not_survive_an_answer() -> None:
    marker = f"survivor-{uuid.uuid4()}"

    def leave() -> str:
        command = [sys.executable, "-c", "import time; time.sleep(60)", marker]
        started = subprocess.Popen(command, start_new_session=True)
        return str(started.pid)

    with lasting_at_most(1.5):
        assert run(leave).code == "ok"
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
def test_nothing_is_left_to_reap_where_this_process_is_the_first_of_a_container() -> None:
    script = """
import ctypes, os, pathlib, subprocess
from toolwise.core.clock import SystemClock
from toolwise.core.limits import LIMITS
from toolwise.core.types import Effect, Principal, Tool, ToolContext
from toolwise.gate import isolate
ctypes.CDLL(None).prctl(36, 1)  # orphans fall to this process, as they do to the first of a container
tool = Tool("t", "", {}, Effect.PURE, lambda: str(subprocess.Popen(["sleep", "60"], start_new_session=True).pid))
isolate.run(tool, {}, ToolContext(Principal("p"), "2024", 5), LIMITS, SystemClock())
print([p.read_text() for p in pathlib.Path("/proc/self/task").glob("*/children")])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "['']\n"


@linux
def test_the_child_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    marker = tmp_path / "pid"
    script = f"""
import os, pathlib, time
from toolwise.core.clock import SystemClock
from toolwise.core.limits import LIMITS
from toolwise.core.types import Effect, Principal, Tool, ToolContext
from toolwise.gate import isolate
def work():
    print(flush=True)
    pathlib.Path({str(marker)!r}).write_text(str(os.getpid()))
    os.kill(os.getppid(), 9)
    time.sleep(60)
tool = Tool("t", "", {{}}, Effect.PURE, work)
isolate.run(tool, {{}}, ToolContext(Principal("p"), "2024", 60), LIMITS, SystemClock())
"""
    done = subprocess.run([sys.executable, "-c", script], timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    child = Path("/proc") / marker.read_text() / "stat"
    state = child.read_bytes().rpartition(b")")[2].split()[0] if child.exists() else b"X"
    assert state in (b"Z", b"X")


@pytest.mark.case("D6")
def test_only_the_clock_of_the_gate_decides_about_the_deadline() -> None:
    clock = FakeClock(datetime(2024, 1, 1, tzinfo=UTC))
    outcomes: list[Outcome] = []

    def call() -> None:
        outcomes.append(isolate.run(tool(spin), {}, told(5.0), LIMITS, clock))

    waiting = threading.Thread(target=call, daemon=True)
    waiting.start()
    for year in (1970, 2039, 2024):
        clock.set(datetime(year, 1, 1, tzinfo=UTC))
        waiting.join(0.1)
        assert waiting.is_alive()
    for _ in range(100):  # the first step may come before the child has started
        clock.advance(5.1)
        waiting.join(0.1)
    assert [outcome.code for outcome in outcomes] == ["timeout"]


@linux
@pytest.mark.case("C5")
@pytest.mark.parametrize("size", [50_000_000, 300_000_000])
def test_a_huge_text_is_cut_in_the_child(size: int) -> None:
    with growing_at_most(4 * 1024**2):
        outcome = run(lambda: "x" * size)
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

    with lasting_at_most(2.0), growing_at_most(4 * 1024**2):
        outcome = run(prints if endless == "print" else program)
    assert (outcome.code, outcome.answered) == ("limit", False)
    assert len(outcome.detail) <= LIMITS.audit_chars


def test_text_is_cut_between_characters() -> None:
    limits = replace(LIMITS, result_bytes=10)
    outcome = isolate.run(tool(lambda: "é€" * 10), {}, told(), limits, SystemClock())
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
    outcome = isolate.run(tool(give, bounded=bounded), {}, told(), LIMITS, SystemClock())
    assert (outcome.code, outcome.answered) == ("result_invalid", True)


@pytest.mark.case("C8")
@pytest.mark.parametrize("bounded", [True, False])
def test_the_text_of_an_exception_stays_in_the_detail(bounded: bool) -> None:
    def leak() -> None:
        raise ValueError("postgres://u:p@h " + "x" * 10_000_000)

    outcome = isolate.run(tool(leak, bounded=bounded), {}, told(), LIMITS, SystemClock())
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


@linux
@pytest.mark.parametrize(
    "greedy",
    [lambda: bytearray(10**10), lambda: [open("/dev/null") for _ in range(10_000)]],  # noqa: SIM115
)
def test_memory_and_files_are_limited(greedy: Callable[[], Any]) -> None:
    assert run(greedy).code == "limit"


@linux
def test_a_child_inherits_no_file_and_has_room_for_its_own() -> None:
    def look() -> list[str]:
        with open(os.devnull):
            links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
            return [os.readlink(link) for link in links if os.path.lexists(link)]

    with contextlib.ExitStack() as mine:
        for _ in range(2 * LIMITS.child_files):
            mine.enter_context(open(__file__))
        seen = run(look)
    assert (seen.code, seen.text.count(os.devnull)) == ("ok", 2)
    assert __file__ not in seen.text


def test_parallel_calls_from_threads_get_their_own_answers() -> None:
    answers: dict[int, str] = {}

    def call(number: int) -> None:
        answers[number] = run(lambda: number).text

    threads = [threading.Thread(target=call, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert answers == {number: str(number) for number in range(16)}


def test_a_packed_outcome_is_read_back() -> None:
    outcome = Outcome("tool_failed", "né", 7, "trace…")
    assert unpack(pack(outcome)) == outcome
