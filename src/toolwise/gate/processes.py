"""What the system says of processes, and asks it for: who is below whom, who dies with whom.

Nothing here signals by number a process that is not the caller's own child: only of those is it certain that the
number still means the same process, since nobody else reaps them. Where there is no /proc or prctl (macOS), no process
has children that could be seen, and nothing dies with anything.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def children(pid: int) -> list[int]:
    """The children of every thread of the process, those that ended and were not reaped included."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):  # the thread has ended
                found += _children_of_thread(pid, thread)
    return found


def count_below(pid: int, most: int) -> int:
    """How many processes are below this one; counting stops once they are more than `most`."""
    found = children(pid)
    for process in found:  # the list grows while it is read
        if len(found) > most:
            break
        found += children(process)
    return len(found)


def is_alone(pid: int) -> bool:
    """Whether a process that was sent SIGKILL has nothing below it: then nothing will come any more.

    Says no where that cannot be known yet: while several threads are ending, a child moves from one to the next.
    """
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        return len(threads) == 1 and not _children_of_thread(pid, threads[0])
    except OSError:
        return False


def _children_of_thread(pid: int, thread: str) -> list[int]:
    with open(f"/proc/{pid}/task/{thread}/children", "rb", buffering=0) as listing:
        return [int(number) for number in listing.read().split()]


def adopt_orphans() -> None:
    """From now on whatever is orphaned below this process becomes its child."""
    if _prctl is not None:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with(parent: int) -> None:
    """From now on this process is killed when its parent, which must have a single thread, ends."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def kill_group(pid: int) -> None:
    """Kill a child of ours that was not reaped, and the group that it leads, at one stroke."""
    for kill in (os.killpg, os.kill):  # it may not have made its group yet
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def has_ended(pid: int) -> bool:
    """Whether a child of ours has ended, which is left to be reaped."""
    if not hasattr(os, "waitid"):
        return False
    with contextlib.suppress(ChildProcessError):
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    return True


def reap(pid: int) -> int | None:
    """The wait status of a child of ours that has ended; None while it lives. Without a status it is 0."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:  # the host program reaps every child
        return 0
    return status if ended else None


def readable(end: int, seconds: float) -> bool:
    """Whether there is something to read, or the other side is gone, within so many seconds of real time."""
    poll = select.poll()
    poll.register(end, select.POLLIN)
    return bool(poll.poll(1000 * seconds))
