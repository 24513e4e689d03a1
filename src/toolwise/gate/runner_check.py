"""What whoever runs the tools of a gate must do, as a suite that ships with it.

`check_runner(make)` runs short functions in the runner that `make(tools, limits, clock)` gives, as `isolate.Runner` is
made, and looks at what becomes of them: in time, in memory, in output, and in what they leave behind. It returns the
promises that hold and raises `AssertionError` with those that are broken. Every function ends by itself after some
seconds, so that a runner that bounds nothing is found out and does not hang. It takes some seconds, and a folder that
both sides see.

Not covered: who may read which file and reach which host; native code; `bounded` tools, which no runner bounds.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from toolwise.core.clock import Clock, SystemClock
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Effect, Principal, Tool, ToolContext
from toolwise.gate.isolate import Runs
from toolwise.gate.outcome import Outcome
from toolwise.gate.self_check import held

_SECONDS = 0.5  # a call's deadline
_TOO_LONG = 4 * _SECONDS  # how long a function goes on that nobody ends
_BEAT = 0.02
_MEGABYTE = 1024**2
_SMALL = replace(LIMITS, child_memory_bytes=64 * _MEGABYTE, result_bytes=64 * 1024, warm_children=1)
_CLOCK = SystemClock()
_SECRET = "hunter2"


Make = Callable[[Sequence[Tool], Limits, Clock], Runs]


def check_runner(make: Make) -> tuple[str, ...]:
    """The promises that hold, all of them."""
    functions = (_echo, _fail, _spin, _die, _flood, _print, _hoard, _linger, _remember)
    tools = [
        Tool(function.__name__, "", {}, Effect.PURE, function, context_parameter="context") for function in functions
    ]
    runner = make(tools, _SMALL, _CLOCK)
    with closing(runner), tempfile.TemporaryDirectory(prefix="toolwise-check-") as folder:
        bench = _Bench(runner, {tool.name: tool for tool in tools}, Path(folder))
        return held("the runner", {promise: partial(keeps, bench) for promise, keeps in _PROMISES.items()})


@dataclass(frozen=True)
class _Bench:
    _runner: Runs
    tools: Mapping[str, Tool]
    folder: Path

    def call(self, function: Callable[..., Any], **arguments: Any) -> Outcome:
        context = ToolContext(Principal("ann"), "2024-05-01", _SECONDS, "key")
        return self._runner.run(self.tools[function.__name__], arguments, context)


# What is run. Module-level functions and JSON, so that any process can be given them.


def _echo(context: ToolContext, text: str) -> str:
    return f"{text} for {context.principal.id} under {context.key} on {context.today}"


def _fail(context: ToolContext) -> NoReturn:
    raise ValueError(_SECRET)


def _spin(context: ToolContext) -> str:
    until = _CLOCK.monotonic() + _TOO_LONG
    while _CLOCK.monotonic() < until:
        pass
    return "still here"


def _die(context: ToolContext, caller: int) -> str:
    if os.getpid() != caller:
        os._exit(0)
    return "in the caller's own process"


def _flood(context: ToolContext) -> str:
    return "x" * (2 * _SMALL.result_bytes)


def _print(context: ToolContext) -> str:
    for _ in range(16):
        sys.stdout.write("y" * _SMALL.result_bytes)
        sys.stdout.flush()
    return "printed"


def _hoard(context: ToolContext) -> int:
    return len(bytearray(4 * _SMALL.child_memory_bytes))


def _linger(context: ToolContext, path: str, waits: bool) -> str:
    """Start a process in a session of its own that writes on and on, and end, or wait for it."""
    pid = os.fork()
    if pid == 0:
        try:  # whatever happens, a copy of the caller must not go on as if it were the caller
            os.setsid()
            if os.fork() == 0:
                _beat(Path(path))
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    until = _CLOCK.monotonic() + _TOO_LONG
    while not os.path.exists(path) and _CLOCK.monotonic() < until:
        _CLOCK.sleep(_BEAT)
    return _spin(context) if waits else "left"


def _beat(path: Path) -> None:
    until = _CLOCK.monotonic() + 2 * _TOO_LONG
    while _CLOCK.monotonic() < until:
        with path.open("ab") as file:
            file.write(b".")
        _CLOCK.sleep(_BEAT)


_left: list[str] = []


def _remember(context: ToolContext) -> int:
    _left.append("was here")
    return len(_left)


# What must become of it


def _answers(bench: _Bench) -> bool:
    outcome = bench.call(_echo, text="n\u00e9\n")
    return (outcome.code, outcome.text) == ("ok", "n\u00e9\n for ann under key on 2024-05-01")


def _fails_in_silence(bench: _Bench) -> bool:
    outcome = bench.call(_fail)
    return outcome.code == "tool_failed" and _SECRET not in outcome.text and _SECRET in outcome.detail


def _ends_in_time(bench: _Bench) -> bool:
    started = _CLOCK.monotonic()
    outcome = bench.call(_spin)
    took = _CLOCK.monotonic() - started
    return outcome.code == "timeout" and not outcome.answered and _SECONDS <= took < _TOO_LONG


def _survives(bench: _Bench) -> bool:
    outcome = bench.call(_die, caller=os.getpid())
    return outcome.code == "tool_failed" and not outcome.answered


def _cuts(bench: _Bench) -> bool:
    outcome = bench.call(_flood)
    return len(outcome.text) <= _SMALL.result_bytes and outcome.total_bytes == 2 * _SMALL.result_bytes


def _stops_printing(bench: _Bench) -> bool:
    return bench.call(_print).code == "limit"


def _bounds_memory(bench: _Bench) -> bool:
    return bench.call(_hoard).code == "limit"


def _leaves_nothing(bench: _Bench, *, waits: bool) -> bool:
    path = bench.folder / f"beats-{waits}"
    bench.call(_linger, path=str(path), waits=waits)
    written = path.stat().st_size
    _CLOCK.sleep(10 * _BEAT)
    return path.stat().st_size == written > 0


def _forgets(bench: _Bench) -> bool:
    return [bench.call(_remember).text for _ in range(2)] == ["1", "1"]


_PROMISES: dict[str, Callable[[_Bench], bool]] = {
    "a tool gets its arguments and its context, and its answer comes back": _answers,
    "what an exception says stays with the operator": _fails_in_silence,
    "a call ends at its deadline, and has not answered": _ends_in_time,
    "a tool whose process ends has not answered": _survives,
    "a long answer is cut, and its length is told": _cuts,
    "a tool that prints without end meets its limit": _stops_printing,
    "a tool that takes memory without end meets its limit": _bounds_memory,
    "what a call started ends with its answer": partial(_leaves_nothing, waits=False),
    "what a call started ends at its deadline": partial(_leaves_nothing, waits=True),
    "a call leaves nothing for the next one": _forgets,
    "after all of that the next call is answered": _answers,
}
