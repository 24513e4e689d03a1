"""Who executes a call: a process that lives, that has ended, or of which nobody here can tell."""

import errno
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from children import Child

from toolwise.gate import owner


def test_this_process_has_not_ended_and_a_child_that_was_killed_has() -> None:
    assert owner.gone(owner.myself()) is False

    def stop() -> None:
        os.kill(os.getpid(), signal.SIGSTOP)

    child = Child(stop)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED)
    machine = owner.myself().split(" ")[0]
    name = f"{machine} {child.pid} {owner._started(child.pid)}"
    assert owner.gone(name) is False
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert owner.gone(name) is True, "nobody has reaped it yet"
    assert child.answer() is None
    assert owner.gone(name) is True


def test_another_process_that_was_given_the_same_id_is_another_one() -> None:
    machine, number, started = owner.myself().split(" ")
    assert owner.gone(f"{machine} {number} {int(started) - 1}") is True


@pytest.mark.parametrize("name", ["elsewhere 1 1", "", "{machine}", "{machine} x 1"])
def test_of_other_machines_and_of_what_is_no_name_only_time_can_tell(name: str) -> None:
    assert owner.gone(name.format(machine=owner.myself().split(" ")[0])) is None


def test_a_process_that_the_system_hides_may_still_live(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def hidden(path: Any, *rest: Any) -> Any:
        if str(path).startswith("/proc/"):
            raise PermissionError(errno.EPERM, "hidden")
        return real(path, *rest)

    name = owner.myself()
    monkeypatch.setattr("builtins.open", hidden)
    assert owner.gone(name) is None
    machine, _, started = name.split(" ")
    assert owner.gone(f"{machine} {2**31 - 1} {started}") is True, "there is no such process"
    assert owner.gone(f"{machine} {10**30} {started}") is True
