"""The calls of one turn: those that do not get in each other's way run together, and the results keep their order.

Of a turn with more calls than `limits.calls_per_turn` the first ones are handled, and every other one is refused by
name: each call has its result. Two calls conflict when they read and write one resource (`gate.slots`); such calls keep
the order in which they were emitted.

Whoever asked may go away meanwhile (`Cancel`, or an interrupt): what has not begun then does not begin, and what runs
goes on to its end, so that the ledger and the audit log know what became of it.

Not covered: labels within a turn. The model wrote all of its calls before it read any result, but a call that comes to
its turn late may already be judged by what an earlier one has read: it can be asked about where, a moment sooner, it
would not have been.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, InvalidStateError, ThreadPoolExecutor, wait
from contextlib import suppress
from threading import Event
from typing import Any

from toolwise.core.errors import BudgetExceeded, ToolwiseError
from toolwise.core.types import Call, CallContext, Result, Tool, WrittenCall
from toolwise.gate.gate import Gate
from toolwise.gate.slots import conflict


class Cancel:
    """Ends, from another thread, what somebody waits for: call it."""

    def __init__(self) -> None:
        self.asked: Future[None] = Future()

    def __call__(self) -> None:
        with suppress(InvalidStateError):
            self.asked.set_result(None)

    def __bool__(self) -> bool:
        return self.asked.done()


def execute_all(gate: Gate, calls: Sequence[Call | WrittenCall], context: CallContext) -> list[Result]:
    """One result for every call, in the order of the calls."""
    results = dict(execute_each(gate, calls, context))
    return [results[number] for number in range(len(calls))]


def execute_each(
    gate: Gate, calls: Sequence[Call | WrittenCall], context: CallContext, cancel: Cancel | None = None
) -> Generator[tuple[int, Result], None, None]:
    """The number of a call and its one result, as each ends; all of them, unless `cancel` is called meanwhile."""
    most = gate.limits.calls_per_turn
    handled = calls[:most]
    tools = [_tool(gate, call) for call in handled]
    running: list[Future[Result]] = []
    gone = Event()
    pool = ThreadPoolExecutor(max(1, len(handled)), thread_name_prefix="toolwise-turn")
    try:
        for number, call in enumerate(handled):
            before = [running[earlier] for earlier in range(number) if _conflict(tools[earlier], tools[number])]
            running.append(pool.submit(_run, gate, call, context, before, gone))
        waiting: set[Future[Any]] = {*running}
        while waiting and not cancel:
            watched = waiting if cancel is None else {*waiting, cancel.asked}
            done, _ = wait(watched, return_when=FIRST_COMPLETED)
            waiting -= done
            yield from ((number, future.result()) for number, future in enumerate(running) if future in done)
    finally:
        gone.set()
        pool.shutdown(wait=False)
    too_many = BudgetExceeded(f"A turn may make {most} calls; ask for this one again later.")
    for number in range(most, len(calls) if not cancel else 0):
        yield number, gate.refuse(calls[number], context, too_many)


def _run(
    gate: Gate, call: Call | WrittenCall, context: CallContext, before: list[Future[Result]], gone: Event
) -> Result:
    wait(before)
    if gone.is_set():
        raise CancelledError
    return gate.execute(call, context)


def _tool(gate: Gate, call: Call | WrittenCall) -> Tool | None:
    try:
        return gate.tool_of(call)
    except ToolwiseError:
        return None


def _conflict(a: Tool | None, b: Tool | None) -> bool:
    return a is not None and b is not None and conflict(a, b)
