"""Work in processes of its own, which may be killed in the middle: forked, so that it can be any function."""

import json
import mmap
import os
import select
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from toolwise.gate.state import Sql, State

SECONDS = 60.0  # until a child that does not end is a failure


class Child:
    """A forked copy of this process that runs `work` and nothing else."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._answer, theirs = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self._answer)
                os.write(theirs, json.dumps(work()).encode())
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        os.close(theirs)

    def answer(self) -> Any:
        """What `work` returned; None if the process was killed with -9 before that. Anything else is a failure."""
        text = b""
        while True:
            if not select.select([self._answer], [], [], SECONDS)[0]:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise AssertionError("the child does not end")
            chunk = os.read(self._answer, 65536)
            if not chunk:
                break
            text += chunk
        os.close(self._answer)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        assert code in (0, -signal.SIGKILL), f"the child ended with {code}"
        return json.loads(text) if code == 0 else None


def at_once(works: Sequence[Callable[[], Callable[[], Any]]]) -> list[Any]:
    """The answers of one process for each: all get ready (`work()`), and then go at the same moment (`work()()`)."""
    ready, is_ready = os.pipe()
    waits, go = os.pipe()

    def run(work: Callable[[], Callable[[], Any]]) -> Any:
        os.close(go)
        act = work()
        os.write(is_ready, b"r")
        os.read(waits, 1)  # ends when the parent closes its end
        return act()

    children = [Child(lambda work=work: run(work)) for work in works]
    for _ in works:
        assert select.select([ready], [], [], SECONDS)[0], "a child does not get ready"
        os.read(ready, 1)
    os.close(go)
    answers = [child.answer() for child in children]
    for end in (ready, is_ready, waits):
        os.close(end)
    return answers


class Fuse:
    """Counts steps, of all processes forked from here together, and at one of them kills the process that lit it."""

    def __init__(self) -> None:
        self._shared = memoryview(mmap.mmap(-1, 32)).cast("q")  # the victim, its last step, the steps until now
        self._name = ""

    def light(self, at: int | str) -> None:
        """This process dies at the step with that number, counted from now, or with that name."""
        self._name = at if isinstance(at, str) else ""
        self._shared[0], self._shared[1], self._shared[2] = os.getpid(), 0 if self._name else int(at), 0

    def step(self, name: str = "") -> None:
        victim, last, steps = self._shared[:3]
        self._shared[2] = steps + 1
        if not victim or (name != self._name if self._name else steps + 1 != last):
            return
        os.kill(victim, signal.SIGKILL)
        if os.getpid() != victim:
            self._shared[3] = os.getpid()
            signal.pause()

    def out(self) -> None:
        """Whoever was below the victim when it died is gone too, in a moment; nobody else dies."""
        self._shared[0] = 0
        orphan = self._shared[3]
        for _ in range(1_000):
            if not orphan or not os.path.exists(f"/proc/{orphan}"):
                return
            time.sleep(0.01)
        raise AssertionError("a tool outlives the program that called it")


class Stepped:
    """A state that calls `step` before and behind everything that it does: where a process may die, or a disk fail."""

    def __init__(self, state: State, step: Callable[[str], None]) -> None:
        self._state = state
        self._step = step

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Sql]:
        self._step("begin")
        with self._state.transaction(durable=durable) as sql:

            def run(statement: str, values: Sequence[Any] = ()) -> list[Any]:
                self._step(statement)
                return sql(statement, values)

            yield run
            self._step("commit")
        self._step("committed")

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        self._step("read")
        return self._state.read(statement, values)

    def close(self) -> None:
        self._state.close()
