"""Run one tool so that it ends: in time, in memory, in processes, in output.

A bounded tool (`Tool.bounded`, the author's word) runs here, unless it is a coroutine function. Any other tool runs in
a child that a fork server (`forkserver`) has made ready before the call: in a session of its own, without inherited
files, bounded by `confine`, with what it prints counted and with a deadline that is held here. When its answer is
there, or will not come, the child and all that it started are killed, wherever that moved to. A child serves one call.

The server is a copy of the process as it is when the runner is made: that is what a tool sees of it, and what each
child's fork costs, a tenth of a second for each GB. Make the runner before models are loaded.

Not covered
- untrusted native code, and tools that mean harm: no namespaces, no system call filter, the same user and files
- connections and files opened before the call: they are closed in the child, a tool opens its own
- platforms without `os.fork` (Windows): every tool that is not bounded is refused. `forkserver` says what macOS lacks
- the time and the memory of bounded tools; how many files any tool writes
"""

from __future__ import annotations

import array
import inspect
import os
import select
import signal
import socket
import threading
import weakref
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol, Self

from toolwise.core.clock import Clock
from toolwise.core.errors import DeadlineExceeded, LimitExceeded, ToolFailed, ToolwiseError, UnknownTool
from toolwise.core.limits import Limits
from toolwise.core.types import Tool, ToolContext
from toolwise.gate import forkserver, processes
from toolwise.gate.frames import frame_bytes
from toolwise.gate.outcome import Outcome, attempt, failed, most_frame_bytes, unpack

_TICK = 0.05  # seconds of real time after which a clock that is not the machine's own is read again
_CHUNK = 64 * 1024
_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_NOSIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)  # a program may have it that a broken pipe kills it


def here(tool: Tool) -> bool:
    """Whether the tool runs in this process."""
    return tool.bounded and not inspect.iscoroutinefunction(tool.run)


class Runs(Protocol):
    """Whoever runs the tools of a gate: `Runner`, or another one for which `runner_check.check_runner` holds."""

    def run(self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        """The outcome of the tool within `context.seconds`; an exception is an outcome too."""

    def close(self) -> None:
        """End whatever was started."""


class Runner:
    """Runs these tools. Threads may share it; a forked copy of the process gets a fork server of its own.

    Where every tool runs here, no process is ever started. `close` ends all processes; a later call starts them again.
    """

    def __init__(self, tools: Iterable[Tool], limits: Limits, clock: Clock) -> None:
        self._tools = {tool.name: tool for tool in tools if not here(tool)}
        self._limits = limits
        self._clock = clock
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._server: _Server | None = None
        if self._tools and hasattr(os, "fork"):
            with suppress(OSError):  # the first call tries again
                self._running()

    def run(self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> Outcome:
        """The outcome of the tool within `context.seconds` of the clock and `limits.grace_seconds` of real time.

        Raises nothing but KeyboardInterrupt, and then the child is dead too.
        """
        if here(tool):
            return attempt(tool, arguments, context, self._limits)
        try:
            if not hasattr(os, "fork"):
                raise LimitExceeded("This platform can only run tools that are marked as bounded: do without this one.")
            if self._tools.get(tool.name) is not tool:
                raise UnknownTool("The tool is not among those that may run here.")
            request = forkserver.pack_request(tool, arguments, context, self._limits)
            deadline = self._clock.monotonic() + context.seconds
            child = self._given(request, deadline)
        except ToolwiseError as error:
            return failed(error, self._limits)
        try:
            return child.outcome(deadline, self._clock)
        finally:
            child.close()

    def close(self) -> None:
        """End every process, those of calls in flight too."""
        if self._process == os.getpid():
            with self._lock:
                server, self._server = self._server, None
            if server is not None:
                server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _given(self, request: bytes, deadline: float) -> _Child:
        """A child that has got the request. Raises LimitExceeded when none can be had before the deadline."""
        tries = self._limits.warm_children + 2  # each ready child may have been killed, and then the server too
        while tries and self._clock.monotonic() < deadline:
            try:
                child = self._running().take(_TICK)
                if child is None:
                    continue
                try:
                    child.give(request)
                    return child
                except BaseException:
                    child.close()
                    raise
            except OSError:
                tries -= 1
        raise LimitExceeded("No process could be started for the tool; try again later.")

    def _running(self) -> _Server:
        """The fork server; started, if there is none. Raises OSError."""
        if self._process != os.getpid():  # a copy, in which nobody would ever release a lock that was held
            self._process, self._lock, self._server = os.getpid(), threading.Lock(), None
        with self._lock:
            if self._server is None or self._server.gone:
                self._server = _Server(self._tools, self._limits)
            return self._server


class _Server:
    """The program's side of a fork server. It ends with this object, and with the program."""

    def __init__(self, tools: Mapping[str, Tool], limits: Limits) -> None:
        self._limits = limits
        self._gone = False
        self._turn = threading.Lock()  # of many that wait one looks, or each child would wake them all
        pid, self._control = forkserver.start(tools, limits)
        self._control.setblocking(False)
        self.close = weakref.finalize(self, _end, pid, self._control, os.getpid(), limits.grace_seconds)

    @property
    def gone(self) -> bool:
        return self._gone or not self.close.alive

    def take(self, seconds: float) -> _Child | None:
        """A child that is ready, or None if there is none in time. Raises OSError when the server is gone."""
        if not self._turn.acquire(timeout=seconds):
            return None
        try:
            if self.gone:
                raise ConnectionError
            if not processes.readable(self._control.fileno(), seconds):
                return None
            ends = array.array("i")
            message, passed, _, _ = self._control.recvmsg(1, socket.CMSG_SPACE(3 * ends.itemsize), _CLOEXEC)
        finally:
            self._turn.release()
        for _, _, data in passed:
            ends.frombytes(data[: len(data) - len(data) % ends.itemsize])
        if len(ends) == 3:
            return _Child(ends, self._limits)
        self._gone = not message
        for end in ends:  # this process may open no more files
            os.close(end)
        raise ConnectionError


def _end(pid: int, control: socket.socket, process: int, seconds: float) -> None:
    """Have the server end, with all that is below it, and wait for that."""
    if os.getpid() == process:  # in a copy it is not ours to end
        with suppress(OSError):
            control.shutdown(socket.SHUT_WR)
        while (heard := processes.readable(control.fileno(), 2 * seconds)) and control.recv(1):
            pass  # a child that was ready: its ends go with the message
        if not heard:
            os.kill(pid, signal.SIGKILL)  # it still holds its end, so the number is its own
        with suppress(ChildProcessError):  # the host program reaps every child
            os.waitpid(pid, 0)
    control.close()


class _Child:
    """The program's side of a child (`forkserver`). Nothing of it is left after `close`."""

    def __init__(self, ends: Iterable[int], limits: Limits) -> None:
        answer, self._prints, life = ends
        self._answer = socket.socket(fileno=answer)
        self._life = socket.socket(fileno=life)
        self._limits = limits
        self._frame = bytearray()
        self._printed, self._printed_bytes = bytearray(), 0
        self._fate: bytes | None = None

    def give(self, request: bytes) -> None:
        """Raises OSError, and then nothing has run."""
        self._answer.settimeout(self._limits.grace_seconds)
        self._answer.sendall(request, _NOSIGNAL)
        with suppress(OSError):  # the answer will say what became of it
            self._life.send(forkserver.TAKEN, _NOSIGNAL)

    def outcome(self, deadline: float, clock: Clock) -> Outcome:
        """What the child answers, or why it did not."""
        problem: ToolwiseError
        try:
            return self._answered(deadline, clock)
        except ToolwiseError as error:
            problem = error
        fate = self._end()
        if fate == forkserver.CROWDED:
            problem = LimitExceeded("The tool starts more processes than it may: ask it for less.")
        told = f"process: {fate.decode() or 'unknown'}; printed: {self._printed.decode('utf-8', 'replace')}"
        late = self._late() if isinstance(problem, DeadlineExceeded) else None
        return replace(failed(problem, self._limits, detail=told, answered=False), late=late)

    def close(self) -> None:
        try:
            self._end()
        finally:
            self._answer.close()
            os.close(self._prints)
            self._life.close()

    def _end(self) -> bytes:
        """Have the child killed with all that it started, wait for that, and hear what became of it."""
        if self._fate is None:
            self._fate = b""
            with suppress(OSError):
                self._life.shutdown(socket.SHUT_WR)
                if processes.readable(self._life.fileno(), self._limits.grace_seconds):
                    self._fate = self._life.recv(_CHUNK)
        return self._fate

    def _answered(self, deadline: float, clock: Clock) -> Outcome:
        """The outcome that the child writes, read without ever waiting longer than the deadline."""
        ready = select.poll()
        ready.register(self._answer, select.POLLIN)
        ready.register(self._prints, select.POLLIN)
        while True:
            left = deadline - clock.monotonic()
            if left <= 0:
                raise DeadlineExceeded("The tool was ended at its deadline: ask it for less.")
            for end, _ in ready.poll(1000 * min(left, _TICK)):
                if end != self._prints:
                    if self._read_answer():
                        return unpack(self._frame)
                elif not self._read_prints():
                    ready.unregister(self._prints)

    def _read_answer(self) -> bool:
        """Whether the answer is there, as a whole."""
        most = most_frame_bytes(self._limits)
        try:
            chunk = self._answer.recv(_CHUNK)
        except ConnectionError:  # it died before it had read its request
            chunk = b""
        if not chunk:
            raise ToolFailed("The tool's process ended without an answer; the operator's log says more.")
        self._frame += chunk
        length = frame_bytes(self._frame)
        if max(length or 0, len(self._frame)) > most:
            raise LimitExceeded("The tool's process answered more than it may: ask it for less.")
        return length is not None and len(self._frame) >= length

    def _read_prints(self) -> bool:
        """Whether more may come of what the tool prints."""
        chunk = os.read(self._prints, _CHUNK)
        self._printed_bytes += len(chunk)
        self._printed += chunk[: self._limits.audit_chars - len(self._printed)]
        if self._printed_bytes > self._limits.result_bytes:
            raise LimitExceeded(f"The tool printed more than {self._limits.result_bytes} bytes: ask it for less.")
        return bool(chunk)

    def _late(self) -> Outcome | None:
        """What the child had answered when it was killed, where that is whole."""
        self._answer.setblocking(False)
        with suppress(OSError, ToolwiseError):
            while not self._read_answer():
                pass
            return unpack(self._frame)
        return None
