"""What a process gives up so that a tool in it can do little harm by mistake.

First the fork server gives up what belongs to the program that it was copied from: session, signals, open files. It
bounds address space, the size of a file and core dumps, for itself and so for its children. Each child has a session
and few files of its own, and once its call is known, bounds on processor time and (where the system holds that one,
that is not for root) on processes.

Not covered: tools that mean harm (no namespaces, no system call filter, the same user and files), the number of files,
memory where there is no /proc.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from typing import Any

from toolwise.core.limits import Limits

# Processor time counts every thread, and rounds; the deadline itself is the parent's.
_SPARE_SECONDS = 1
# The system counts the processes of a user, wherever they come from; `child_processes` is held by a watch, and this
# many times as many are what a fork bomb can reach before the watch sees it.
_SPARE_PROCESSES = 16

_PROCESSORS = os.cpu_count() or 1  # asked once: every time the system reads a file
_LINE = 256  # bytes; no line of /proc/loadavg is longer

_streams: list[Any] = []  # the program's, kept: dropping them would write their buffers out a second time


def leave_program(keep: int, limits: Limits) -> None:
    """In the fork server: give up what the program has that it was copied from, but for one file.

    What bounds every child in the same way is said here, once: a child then starts with fewer steps.
    """
    import resource  # POSIX only

    gc.freeze()  # the program's garbage must not be collected here: that would close files by numbers used anew
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would free the numbers of ended children at once
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # as in every fresh interpreter: an error, not the end
        signal.signal(number, signal.SIG_IGN)
    _take_numbers(keep)
    _streams.extend((sys.stdin, sys.stdout, sys.stderr))
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115  open until the end
        for number, mode in ((0, "r"), (1, "w"), (2, "w"))
    )
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, limits.child_file_bytes)
    with contextlib.suppress(OSError), open("/proc/self/statm", "rb") as statm:
        _lower(resource.RLIMIT_AS, int(statm.read().split()[0]) * resource.getpagesize() + limits.child_memory_bytes)


def _take_numbers(keep: int) -> None:
    """Close every file but one.

    The numbers stay taken, by the null device: what the program still holds by number, a log or a connection, must not
    reach a file that is opened later.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for number in {0, 1, 2, *map(int, os.listdir("/dev/fd"))} - {keep, null}:
        os.dup2(null, number, inheritable=number <= 2)


def enter_child(answer: int, prints: int, limits: Limits) -> None:
    """In a fresh child: a session of its own, no files but these two, and room for a few."""
    import resource  # POSIX only

    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    for stream, source in enumerate((null, prints, prints)):
        os.dup2(source, stream)
    os.closerange(3, answer)
    os.closerange(answer + 1, os.sysconf("SC_OPEN_MAX"))
    _lower(resource.RLIMIT_NOFILE, limits.child_files)


def bound_call(seconds: float, limits: Limits) -> None:
    """Bounds that follow from the call."""
    import resource  # POSIX only

    _lower(resource.RLIMIT_CPU, int(seconds + limits.grace_seconds) * _PROCESSORS + _SPARE_SECONDS)
    if everywhere := running():
        _lower(resource.RLIMIT_NPROC, everywhere + _SPARE_PROCESSES * limits.child_processes)


def running() -> int:
    """How many processes and threads run on the whole machine: no user has more. 0 where nobody says that."""
    with contextlib.suppress(OSError), open("/proc/loadavg", "rb", buffering=0) as load:
        return int(load.read(_LINE).split()[3].partition(b"/")[2])
    return 0


def _lower(which: int, most: int) -> None:
    import resource

    hard = resource.getrlimit(which)[1]
    bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(which, (bound, bound))
