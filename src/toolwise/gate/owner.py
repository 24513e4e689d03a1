"""Who executes a call: this process, so that another one can tell a call that still runs from one whose process died.

A process is named by machine, start of the machine, process id and the time at which the process started: ids are used
again, starts are not. Not covered: a machine that has started anew, or whose other processes cannot be seen (another
container, `hidepid`): there the lease decides, as between machines. Without /proc (macOS) a process that ended and
whose id was given to another counts as alive.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from functools import cache
from pathlib import Path


def myself() -> str:
    """The name of this process: three words. Whoever needs a name of their own inside it adds another one."""
    return f"{_machine()} {os.getpid()} {_started(os.getpid())}"


def gone(owner: str) -> bool | None:
    """Whether the process with that name has ended; None where only time can tell."""
    machine, number, started = [*owner.split(" "), "", "", ""][:3]
    if machine != _machine() or not number.isdecimal():
        return None
    now = _started(int(number))
    return None if now is None else now != started


@cache
def _machine() -> str:
    boot = namespace = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        namespace = os.readlink("/proc/self/ns/pid")  # a container has its own numbers
    return f"{socket.gethostname()}/{boot}/{namespace}"


def _started(pid: int) -> str | None:
    """When the process started, in the kernel's ticks; "" when there is none, None when the kernel does not say."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
    except OSError:  # there is no such process, or not any more, or it is hidden from us, or there is no /proc
        return _alive(pid)
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode("ascii")


def _alive(pid: int) -> str | None:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return ""
    except PermissionError:
        pass
    return None if os.path.isdir("/proc/self") else "alive"
