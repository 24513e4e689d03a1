"""Where the processor time of a call goes: which step of the gate's page was at work, sampled while calls run.

The system interrupts the main thread every few milliseconds of processor time (`SIGPROF`), and the interrupted stack
says which function of the package was at work below `Gate.execute`. So the steps are those that the page has today,
and the shares add up to one.

Not covered: other threads; platforms without interval timers (nothing is sampled there); small differences (of a
thousand samples, a share of 10 % is right to about one in a hundred).
"""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from toolwise.gate.gate import Gate

_INTERVAL = 0.001  # seconds of processor time; the system rounds it up to its own tick
_PACKAGE = Gate.__module__.partition(".")[0]


class StepSamples:
    """How often each step was found at work: `steps` by the function that the page called, `modules` by the module."""

    def __init__(self) -> None:
        self.steps: Counter[str] = Counter()
        self.modules: Counter[str] = Counter()

    def take(self, frame: FrameType | None) -> None:
        """Count the stack that ends in this frame, if it is inside a call."""
        inside = []
        while frame is not None and frame.f_code is not Gate.execute.__code__:
            if _module(frame).startswith(_PACKAGE):
                inside.append(frame)
            frame = frame.f_back
        if frame is None:
            return
        at_work = inside[0] if inside else frame
        step = inside[-1] if inside else frame
        self.steps[step.f_code.co_name.strip("_")] += 1
        self.modules[_module(at_work).removeprefix(f"{_PACKAGE}.")] += 1


@contextmanager
def sampled() -> Iterator[StepSamples]:
    """Samples of what the calls inside the block do; none outside the main thread or where there is no such timer."""
    samples = StepSamples()
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield samples
        return
    before = signal.signal(signal.SIGPROF, lambda number, frame: samples.take(frame))
    signal.setitimer(signal.ITIMER_PROF, _INTERVAL, _INTERVAL)
    try:
        yield samples
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
