"""What a tool may take of the machine: memory, files, processes, disk; and what it does not get at all."""

import contextlib
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from isolate_bench import eventually, lasting_at_most, run, runner, stay, told, tool

from toolwise.core.limits import LIMITS
from toolwise.gate.outcome import Outcome

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def allocate() -> bytearray:
    return bytearray(10**10)


def open_many() -> list[Any]:
    return [open("/dev/null") for _ in range(10_000)]


def multiply(leave: bool) -> None:
    """At most 64 processes, in sessions of their own or not."""
    for _ in range(6):
        if os.fork() == 0 and leave:
            os.setsid()
    while True:
        signal.pause()


def write_ten_gigabytes(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        while file.tell() < 10**10:
            file.write(bytes(1024**2))


@linux
@pytest.mark.case("B9")
@pytest.mark.parametrize(
    ("greedy", "names"),
    [
        (lambda path: allocate(), "memory"),
        (lambda path: open_many(), "files"),
        (lambda path: multiply(leave=False), "processes"),
        (lambda path: multiply(leave=True), "processes"),
        (write_ten_gigabytes, "disk"),
    ],
)
def test_a_tool_that_takes_without_end_meets_its_limit_and_harms_nobody_else(
    greedy: Callable[[Path], Any], names: str, tmp_path: Path
) -> None:
    limits = replace(LIMITS, warm_children=2, child_processes=8, child_file_bytes=8 * 1024**2)
    begun, until = tmp_path / "begun", tmp_path / "until"
    taking = replace(tool(lambda: greedy(tmp_path / "disk")), name="greedy")
    sibling = replace(tool(lambda: stay(begun, until)), name="sibling")
    answers: list[Outcome] = []
    with runner(taking, sibling, limits=limits) as shared:
        beside = threading.Thread(target=lambda: answers.append(shared.run(sibling, {}, told(20.0))))
        beside.start()
        eventually(begun.exists)
        with lasting_at_most(5.0):
            outcome = shared.run(taking, {}, told(10.0))
        until.touch()
        beside.join(20.0)
    assert outcome.code == "limit"
    assert names in outcome.text
    assert [answer.text for answer in answers] == ["done"]


def test_a_child_is_bounded_in_every_way_that_the_system_offers() -> None:
    which = ("CORE", "NOFILE", "FSIZE", "CPU", "NPROC")

    def look() -> list[int]:
        return [resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0] for name in which]

    core, files, size, seconds, processes = run(look, 2.0).text.strip("[]").split(",")
    assert (core, files, size) == ("0", str(LIMITS.child_files), str(LIMITS.child_file_bytes))
    assert 2 <= int(seconds) <= 4 * (os.cpu_count() or 1)
    assert LIMITS.child_processes <= int(processes) < 10_000_000


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


def test_a_file_that_was_open_before_does_not_reach_the_answer(tmp_path: Path) -> None:
    with contextlib.ExitStack() as mine:
        logs = [mine.enter_context((tmp_path / str(n)).open("wb", buffering=0)) for n in range(20)]

        def write_everywhere() -> int:
            failed = 0
            for log in logs:
                try:
                    log.write(b"x" * 100)
                except OSError:
                    failed += 1
            return failed

        assert run(write_everywhere).text == "20"
    assert [path.stat().st_size for path in tmp_path.iterdir()] == [0] * 20
