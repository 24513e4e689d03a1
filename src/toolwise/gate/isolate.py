"""Run one tool so that it ends: in time, in memory, in output.

A bounded tool (`Tool.bounded`, the author's word) runs here, unless it is a coroutine function. Any other tool runs in
a forked child in its own session, with limits on address space, open files and core dumps, without inherited files,
with what it prints counted and with a deadline that the parent holds. The child does not leave by itself: it is
stopped, whatever it started is killed wherever that moved to (another session, orphaned), then it is killed.

A call costs one fork: milliseconds in a small process, but about a tenth of a second for each GB that the parent holds,
since its page tables are copied. A process that holds a large model should run its tools elsewhere.

Not covered
- untrusted native code, and tools that mean harm: no namespaces, no system call filter, the same user and files
- a tool that kills its own process and leaves a program behind in another session: that program survives
- locks of native libraries that another thread held at the fork (OpenMP pools, CUDA): the child hangs until its
  deadline; such a tool is `bounded`, or keeps its work in a process of its own
- connections and files opened before the call: they are closed in the child, a tool opens its own
- platforms without `os.fork` (Windows): every tool that is not bounded is refused. Without prctl and /proc (macOS):
  only the process group is killed, and memory is not limited
- the time and the memory of bounded tools; processes and disk space of any tool
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import inspect
import os
import select
import selectors
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from toolwise.core.clock import Clock
from toolwise.core.errors import DeadlineExceeded, LimitExceeded, ToolFailed, ToolwiseError
from toolwise.core.limits import Limits
from toolwise.core.types import Tool, ToolContext
from toolwise.gate.outcome import Outcome, attempt, failed, frame_bytes, most_frame_bytes, pack, unpack

_TICK = 0.05  # seconds of real time after which a clock that is not the machine's own is read again
_CHUNK = 64 * 1024
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
_FORKING = threading.Lock()  # no child may inherit the pipe of a call that another thread is just starting


def here(tool: Tool) -> bool:
    """Whether the tool runs in this process."""
    return tool.bounded and not inspect.iscoroutinefunction(tool.run)


def run(tool: Tool, arguments: Mapping[str, Any], context: ToolContext, limits: Limits, clock: Clock) -> Outcome:
    """The outcome of the tool within `context.seconds` of `clock` and `limits.grace_seconds` of real time.

    Raises nothing but KeyboardInterrupt, and then the child is dead too.
    """
    if here(tool):
        return attempt(tool, arguments, context, limits)
    if not hasattr(os, "fork"):
        return failed(LimitExceeded("This platform can only run bounded tools."), limits)
    try:
        pid, answer, prints = _fork(tool, arguments, context, limits)
    except OSError:
        return failed(LimitExceeded("No process could be started for the tool; try again later."), limits)
    printed = bytearray()
    problem: ToolwiseError | None = None
    try:
        outcome = unpack(_receive(answer, prints, printed, clock.monotonic() + context.seconds, limits, clock))
    except ToolwiseError as error:
        problem = error
    finally:
        status = _end(pid, limits.grace_seconds)
        os.close(answer)
        os.close(prints)
    if problem is None:
        return outcome
    said = printed.decode("utf-8", "replace")
    return failed(problem, limits, detail=f"wait status {status}; printed: {said}", answered=False)


def _fork(tool: Tool, arguments: Mapping[str, Any], context: ToolContext, limits: Limits) -> tuple[int, int, int]:
    """Child's id and the ends to read of its answer and of what it prints."""
    parent = os.getpid()
    with _FORKING, contextlib.ExitStack() as opened:
        answer, answer_end = _pipe(opened)
        prints, prints_end = _pipe(opened)
        pid = os.fork()
        if pid:
            opened.pop_all()
            os.close(answer_end)
            os.close(prints_end)
            return pid, answer, prints
        opened.pop_all()
    try:
        _confine(parent, answer_end, prints_end, limits)
        _answer(answer_end, attempt(tool, arguments, context, limits))
    finally:
        os._exit(1)


def _pipe(opened: contextlib.ExitStack) -> tuple[int, int]:
    ends = os.pipe()
    for end in ends:
        opened.callback(os.close, end)
    return ends


# In the parent


def _receive(answer: int, prints: int, printed: bytearray, deadline: float, limits: Limits, clock: Clock) -> bytearray:
    """The frame that the child writes, read without ever waiting longer than the deadline."""
    frame, printed_bytes, most = bytearray(), 0, most_frame_bytes(limits)
    with selectors.DefaultSelector() as ready:
        ready.register(answer, selectors.EVENT_READ)
        ready.register(prints, selectors.EVENT_READ)
        while True:
            left = deadline - clock.monotonic()
            if left <= 0:
                raise DeadlineExceeded("The tool was ended at its deadline.")
            for key, _ in ready.select(min(left, _TICK)):
                chunk = os.read(key.fd, _CHUNK)
                if key.fd == prints:
                    printed_bytes += len(chunk)
                    printed += chunk[: limits.audit_chars - len(printed)]
                    if printed_bytes > limits.result_bytes:
                        raise LimitExceeded(f"The tool printed more than {limits.result_bytes} bytes.")
                    if not chunk:
                        ready.unregister(prints)
                    continue
                if not chunk:
                    raise ToolFailed("The tool's process ended without an answer.")
                frame += chunk
                length = frame_bytes(frame)
                if max(length or 0, len(frame)) > most:
                    raise LimitExceeded("The tool's process answered more than it may.")
                if length is not None and len(frame) >= length:
                    return frame[:length]


def _end(pid: int, grace: float) -> int | None:
    """Kill the child and everything it started. Its wait status, or None where it could not be had."""
    _signal(pid, signal.SIGSTOP)  # stopped, it starts nothing more, and its orphans still fall to it
    started: set[int] = set()
    for _ in _moments(grace):
        started.update(_descendants(pid))
        living = [process for process in started if not _is_dead(process)]
        for process in living:
            _signal(process, signal.SIGKILL)
        if not living:
            break
    with contextlib.suppress(ProcessLookupError, PermissionError):  # killed before it had a group of its own
        os.killpg(pid, signal.SIGKILL)
    _signal(pid, signal.SIGKILL)
    status = _reap(pid, grace)
    for process in started:  # they fall to this process where it is the first of a container
        _reap(process, 0)
    return status


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # gone, or reaped by the host program
        os.kill(pid, number)


def _reap(pid: int, grace: float) -> int | None:
    with contextlib.suppress(ChildProcessError):  # not ours, or the host program reaps every child
        for _ in _moments(grace):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return status
    return None


def _descendants(pid: int) -> list[int]:
    """Every process below this one; none where there is no /proc."""
    found = _children(pid)
    for process in found:  # the list grows while it is read
        found += _children(process)
    return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as listing:
                found += map(int, listing.read().split())
    return found


def _is_dead(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return True


def _moments(seconds: float) -> Iterator[None]:
    """Now, and after every millisecond of real time: how long the kernel takes is not measured by anybody's clock."""
    yield
    for _ in range(int(seconds * 1000)):
        select.select((), (), (), 0.001)
        yield


# In the child


def _confine(parent: int, answer: int, prints: int, limits: Limits) -> None:
    """Give up what the parent had: its session, signals, files, memory to grow into."""
    import resource  # POSIX only

    gc.freeze()  # the parent's garbage must not be collected here: it would close files by numbers used anew
    os.setsid()
    if _prctl is not None:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDONLY)
    for target, source in enumerate((null, prints, prints)):
        os.dup2(source, target)
    for name in os.listdir("/dev/fd"):
        if int(name) not in (0, 1, 2, answer):
            with contextlib.suppress(OSError):
                os.close(int(name))
    _streams.extend((sys.stdin, sys.stdout, sys.stderr))
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115  open until the end
        for number, mode in ((0, "r"), (1, "w"), (2, "w"))
    )
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits.child_files, limits.child_files))
    with contextlib.suppress(OSError), open("/proc/self/statm", encoding="ascii") as statm:
        most = int(statm.read().split()[0]) * resource.getpagesize() + limits.child_memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


_streams: list[Any] = []  # the parent's, kept: dropping them would write their buffers out a second time


def _answer(end: int, outcome: Outcome) -> NoReturn:
    """Say the outcome, then wait to be killed: as long as this process lives, what it started can be found."""
    data = memoryview(pack(outcome))
    while data:
        data = data[os.write(end, data) :]
    while _prctl is not None:
        signal.pause()
    os._exit(0)
