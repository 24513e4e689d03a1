"""Who executes a call: this process, so that another one can tell a call that still runs from one whose process died.

A process is named by machine, start of the machine, process id and the time at which the process started: ids are used
again, starts are not. Not covered: two containers that share a machine id and see different processes; there the lease
decides, as between machines.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from functools import cache
from pathlib import Path


def myself() -> str:
    """The name of this process."""
    return f"{_machine()} {os.getpid()} {_started(os.getpid())}"


def gone(owner: str) -> bool | None:
    """Whether that process has ended; None where only time can tell, since it ran on another machine."""
    machine, _, rest = owner.partition(" ")
    number, _, started = rest.partition(" ")
    if machine != _machine() or not number.isdecimal():
        return None
    return _started(int(number)) != started


@cache
def _machine() -> str:
    boot = namespace = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        namespace = os.readlink("/proc/self/ns/pid")  # a container has its own numbers
    return f"{socket.gethostname()}/{boot}/{namespace}"


def _started(pid: int) -> str:
    """When the process started, in the kernel's ticks; "" when there is none (or where /proc is missing: "alive")."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
    except FileNotFoundError:
        return _alive(pid)
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode("ascii")


def _alive(pid: int) -> str:
    if os.path.isdir("/proc/self"):
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "alive"
