"""A runner of one probe, and what is seen of its processes."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolwise.core.clock import SystemClock
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Effect, Principal, Tool, ToolContext
from toolwise.gate import processes
from toolwise.gate.isolate import Runner
from toolwise.gate.outcome import Outcome

LEAN = replace(LIMITS, warm_children=1)


def tool(function: Callable[..., Any], **settings: Any) -> Tool:
    return Tool("probe", "A probe.", {"type": "object"}, Effect.PURE, function, **settings)


def told(seconds: float = 5.0) -> ToolContext:
    return ToolContext(Principal("ann"), "2024-05-01", seconds, "key-1")


def runner(*tools: Tool, limits: Limits = LEAN) -> Runner:
    return Runner(tools, limits, SystemClock())


def once(probe: Tool, seconds: float = 5.0, limits: Limits = LEAN, /, **arguments: Any) -> Outcome:
    with runner(probe, limits=limits) as running:
        return running.run(probe, arguments, told(seconds))


def run(function: Callable[..., Any], seconds: float = 5.0, limits: Limits = LEAN, /, **arguments: Any) -> Outcome:
    return once(tool(function), seconds, limits, **arguments)


def spin() -> None:
    while True:
        pass


def stay(begun: Path, until: Path) -> str:
    """A tool that says that it has begun, and works until it is told otherwise."""
    whole = begun.with_name(f".{begun.name}")
    whole.write_text(str(os.getpid()))
    whole.rename(begun)
    while not until.exists():
        pass
    return "done"


def eventually(condition: Callable[[], Any], seconds: float = 10.0) -> Any:
    """What the condition gives, once that is true."""
    for _ in range(int(seconds * 100)):
        if found := condition():
            return found
        threading.Event().wait(0.01)
    raise AssertionError("it never became true")


def is_dead(pid: int) -> bool:
    with contextlib.suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        return state in (b"Z", b"X")
    return True


def servers() -> list[int]:
    """The fork servers of this process: all the children that it has."""
    return processes.children(os.getpid())


def running(marker: str) -> list[str]:
    """Processes that carry the marker in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                found += [entry.name] * (marker.encode() in (entry / "cmdline").read_bytes())
    return found


@contextlib.contextmanager
def lasting_at_most(seconds: float) -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started <= seconds
