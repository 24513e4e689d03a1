"""The fork server: one small process with a single thread that keeps children ready, each for one call.

It is forked from the program once, early, and holds the program's tools in its memory, since a tool is often a closure
that no other process could import. Each child is forked ahead of its call and offers itself to the program by three
ends, which it passes on:

    answer   the program writes the request, the child its outcome (`frames`)
    prints   what the child and the programs that it starts print
    life     a byte from the program says that the child is taken, the end of its side that the child must go, with
             all that it started; then the server says what became of it, and nothing of it is left

The server is the parent of every child, and orphans fall to it. So it signals and reaps nobody's processes but its
own, no number means another process before the server has reaped it, and what a tool started is found wherever it
moved to. While children work it counts what they start. When the program ends, it ends, and all below it.

Not covered
- locks that another thread of the program held at the fork: a tool that needs one hangs until its deadline. Make the
  runner before threads are started and models are loaded
- somebody who kills the server itself: its children die with it, programs that left their sessions do not
- without prctl and /proc (macOS): programs that left the child's process group, and how many there are
"""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from pydantic import TypeAdapter

from toolwise.core import jsonio
from toolwise.core.clock import SystemClock
from toolwise.core.errors import ToolwiseError
from toolwise.core.limits import Limits
from toolwise.core.types import Effect, Principal, Tool, ToolContext
from toolwise.gate import confine, frames, processes
from toolwise.gate.outcome import Outcome, attempt, failed, pack
from toolwise.tools.registry import tool

TAKEN = b"t"
ENDED, CROWDED = b"ended", b"crowded"  # what became of a child; or its wait status in words

_TICK = 0.05  # seconds between two looks at what working children do
_MOMENT = 0.001  # seconds between two looks at children that are being ended
_IDLE = 1.0  # seconds between two looks at whether the program is still there
_CHUNK = 64 * 1024
_CONTEXT = TypeAdapter(ToolContext)


def start(tools: Mapping[str, Tool], limits: Limits) -> tuple[int, socket.socket]:
    """Fork a server for these tools: its process id, and the socket from which children come. Raises OSError."""
    program = os.getpid()
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            pid = os.fork()
            if pid == 0:
                confine.leave_program(theirs.fileno(), limits)
                processes.adopt_orphans()
                _Server(program, theirs, tools, limits).run()
        finally:
            if os.getpid() != program:
                os._exit(1)
    return pid, ours


def pack_request(tool: Tool, arguments: Mapping[str, Any], context: ToolContext, limits: Limits) -> bytes:
    """The call as a child reads it. Raises ResultInvalid where something in it is no JSON."""
    given = (jsonio.dumps(value, limits) for value in (arguments, _CONTEXT.dump_python(context)))
    return frames.pack(tool.name.encode(), *(text.encode() for text in given))


def unpack_request(request: bytes | bytearray, limits: Limits) -> tuple[str, Any, ToolContext]:
    """Name, arguments and context of a call. Raises InvalidArguments, MalformedCall."""
    name, arguments, context = frames.unpack(request, 3)
    told = _CONTEXT.validate_python(jsonio.loads(context, limits))
    return name.decode(), jsonio.loads(arguments, limits), told


@tool(effect=Effect.PURE)
def _rehearsal(number: int) -> int:
    """As a tool is that is made of a typed function."""
    return number


@dataclass(slots=True, eq=False)
class _Child:
    pid: int
    life: socket.socket
    taken: bool = False
    ending_since: float | None = None
    crowded: bool = False
    status: int | None = None  # once it is reaped
    gone: bool = False  # the program has been told that nothing is left of it

    @property
    def fate(self) -> bytes:
        if self.crowded or self.status is None:
            return CROWDED if self.crowded else ENDED
        return b"wait status %d" % self.status


class _Server:
    def __init__(self, program: int, control: socket.socket, tools: Mapping[str, Tool], limits: Limits) -> None:
        self._program = program
        self._control = control
        self._tools = tools
        self._limits = limits
        self._clock = SystemClock()
        self._children: list[_Child] = []
        self._heard: dict[int, _Child] = {}  # by the number of `life`, until they are being ended
        self._next_look = self._next_fork = 0.0
        self._ready = select.poll()
        self._ready.register(control, select.POLLIN)

    def run(self) -> NoReturn:
        while os.getppid() == self._program:  # a copy of the program may hold the other end of `control` open
            for end, _ in self._ready.poll(1000 * self._pause()):
                if end not in self._heard:  # it is `control`: there will be no more calls
                    self._leave()
                self._hear(self._heard[end])
            self._look()
            self._end()
            self._refill()
        self._leave()

    def _pause(self) -> float:
        """How long there is nothing to do unless somebody says so."""
        now = self._clock.monotonic()
        due = [now + _IDLE]
        if self._count_ready() < self._limits.warm_children:
            due.append(self._next_fork)
        for child in self._children:
            if child.ending_since is not None:
                hurry = not child.gone and now - child.ending_since < self._limits.grace_seconds
                due.append(now + (_MOMENT if hurry else _TICK))
            elif child.taken:
                due.append(self._next_look)
        return max(0.0, min(due) - now)

    def _hear(self, child: _Child) -> None:
        """The program has taken the child, or is done with it."""
        with suppress(OSError):
            if child.life.recv(1) == TAKEN:
                if not self._working():
                    self._next_look = self._clock.monotonic() + _TICK
                child.taken = True
                self._put_off_fork(_TICK)
                return
        self._start_ending(child)

    def _look(self) -> None:
        """Has a child ended without a word, or started too much?"""
        now = self._clock.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + _TICK
        most = self._limits.child_processes
        for child in self._working():
            child.crowded = processes.count_below(child.pid, most) > most
            # What an ended child left behind may keep its end of `answer` open.
            if child.crowded or processes.has_ended(child.pid):
                self._start_ending(child)

    def _start_ending(self, child: _Child) -> None:
        child.ending_since = self._clock.monotonic()
        self._ready.unregister(child.life)
        del self._heard[child.life.fileno()]
        processes.kill_group(child.pid)

    def _end(self) -> None:
        """Kill what is left of the children that must go, and tell the program once nothing is."""
        ending = [child for child in self._children if child.ending_since is not None]
        for child in ending:
            if child.status is None:
                child.status = processes.reap(child.pid)
        untold = [child for child in ending if not child.gone]
        alone = [child for child in untold if child.status is not None or processes.is_alone(child.pid)]
        # Whatever a child left is below this process once the child is dead: looked for after that was looked at.
        strays = self._strays() if untold else set()
        for stray in strays:
            processes.kill_group(stray)
            processes.reap(stray)
        for child in alone if not strays else ():
            child.gone = True
            with suppress(OSError):  # the program no longer listens
                child.life.send(child.fate)
            child.life.close()
            self._put_off_fork(_MOMENT)
        self._children = [child for child in self._children if not child.gone or child.status is None]

    def _strays(self) -> set[int]:
        mine = {child.pid for child in self._children if child.status is None}
        return set(processes.children(os.getpid())) - mine

    def _working(self) -> list[_Child]:
        return [child for child in self._children if child.taken and child.ending_since is None]

    def _count_ready(self) -> int:
        return sum(not child.taken and child.ending_since is None for child in self._children)

    def _put_off_fork(self, seconds: float) -> None:
        """While children are ready: nobody is heard during a fork, and whoever is served needs a processor first."""
        self._next_fork = self._clock.monotonic() + seconds if self._count_ready() else 0.0

    def _refill(self) -> None:
        """Fork one child if one is missing: between two of them, calls that end are heard."""
        if self._count_ready() >= self._limits.warm_children or self._clock.monotonic() < self._next_fork:
            return
        try:
            self._fork()
        except OSError:  # no more processes or files for now
            self._next_fork = self._clock.monotonic() + _TICK

    def _fork(self) -> None:
        life, their_life = socket.socketpair()
        with their_life:
            server = os.getpid()
            pid = os.fork()
            if pid == 0:
                try:
                    processes.die_with(server)
                    self._serve_one(their_life)
                finally:
                    os._exit(1)
        child = _Child(pid, life)
        self._children.append(child)
        self._heard[life.fileno()] = child
        self._ready.register(life, select.POLLIN)

    def _leave(self) -> NoReturn:
        """End with everything below: the program is gone, or has no more calls."""
        for child in self._children:
            if child.ending_since is None:
                self._start_ending(child)
        until = self._clock.monotonic() + self._limits.grace_seconds
        while self._children and self._clock.monotonic() < until:
            self._end()
            self._clock.sleep(_MOMENT)
        os._exit(0)

    # In the child

    def _serve_one(self, their_life: socket.socket) -> NoReturn:
        """Offer itself to the program, answer one request, and wait for the end."""
        processes.adopt_orphans()
        answer, their_answer = socket.socketpair()
        their_prints, prints = os.pipe()
        self._rehearse()
        socket.send_fds(self._control, [b"c"], [their_answer.fileno(), their_prints, their_life.fileno()])
        confine.enter_child(answer.fileno(), prints, self._limits)
        answer.sendall(pack(self._outcome(_received(answer))))
        while True:  # to leave now would only keep a processor from whoever reads the answer
            signal.pause()

    def _rehearse(self) -> None:
        """Write to the pages of memory that a call writes to, if only to count references: the first time copies them,
        which is done before the call."""
        request = pack_request(_rehearsal, {"number": 0}, ToolContext(Principal(""), "", 1.0), self._limits)
        _, arguments, context = unpack_request(request, self._limits)
        confine.running()
        pack(attempt(_rehearsal, arguments, context, self._limits))

    def _outcome(self, request: bytearray) -> Outcome:
        try:
            name, arguments, context = unpack_request(request, self._limits)
        except ToolwiseError as error:
            return failed(error, self._limits)
        confine.bound_call(context.seconds, self._limits)
        return attempt(self._tools[name], arguments, context, self._limits)


def _received(answer: socket.socket) -> bytearray:
    request = bytearray()
    while (length := frames.frame_bytes(request)) is None or len(request) < length:
        chunk = answer.recv(_CHUNK)
        if not chunk:  # nobody needs this child
            os._exit(0)
        request += chunk
    return request
