"""Which calls may run at the same time, in this process.

Readers and writers of one resource exclude each other: any number of `read` calls, or one `write` call. A tool's
resource is its own name unless it declares one that it shares. `pure` calls exclude nobody. A call that runs in a child
process takes one of `limits.children` places besides. Whoever waits longer than a call may last is refused.

Not covered: other processes; for them, a tool's own system has to keep its writers apart.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from toolwise.core.errors import LimitExceeded
from toolwise.core.limits import Limits
from toolwise.core.types import Effect, Tool
from toolwise.gate.isolate import here


def conflict(a: Tool, b: Tool) -> bool:
    """Whether two calls of these tools must not run at the same time, and keep their order."""
    same = resource(a) == resource(b)
    return same and Effect.PURE not in (a.effect, b.effect) and Effect.WRITE in (a.effect, b.effect)


def resource(tool: Tool) -> str:
    """What the tool reads and writes."""
    return tool.resource or tool.name


class Slots:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._changed = threading.Condition()
        self._readers: Counter[str] = Counter()
        self._writers: set[str] = set()
        self._children = 0

    def take(self, tool: Tool) -> AbstractContextManager[None]:
        """A place for one call of the tool until the end of the block. Raises LimitExceeded."""
        child = not here(tool)
        return self._taken(tool, child) if child or tool.effect is not Effect.PURE else nullcontext()

    @contextmanager
    def _taken(self, tool: Tool, child: bool) -> Iterator[None]:
        self._enter(tool, child)
        try:
            yield
        finally:
            self._leave(tool, child)

    def _enter(self, tool: Tool, child: bool) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._free(tool, child), timeout=self._limits.call_seconds):
                raise LimitExceeded("Too many tools are running: try again later.")
            self._children += child
            if tool.effect is Effect.WRITE:
                self._writers.add(resource(tool))
            elif tool.effect is Effect.READ:
                self._readers[resource(tool)] += 1

    def _free(self, tool: Tool, child: bool) -> bool:
        if child and self._children >= self._limits.children:
            return False
        if tool.effect is Effect.PURE:
            return True
        busy = resource(tool) in self._writers
        return not busy and (tool.effect is Effect.READ or not self._readers[resource(tool)])

    def _leave(self, tool: Tool, child: bool) -> None:
        with self._changed:
            self._children -= child
            if tool.effect is Effect.WRITE:
                self._writers.discard(resource(tool))
            elif tool.effect is Effect.READ:
                self._readers[resource(tool)] -= 1
                if not self._readers[resource(tool)]:
                    del self._readers[resource(tool)]
            self._changed.notify_all()
