"""The calls of one turn: those that do not get in each other's way run together, and the results keep their order.

Of a turn with more calls than `limits.calls_per_turn` the first ones are handled, and every other one is refused by
name: each call has its result. Two calls conflict when they read and write one resource (`gate.slots`); such calls keep
the order in which they were emitted.

Not covered: labels within a turn. The model wrote all of its calls before it read any result, but a call that comes to
its turn late may already be judged by what an earlier one has read: it can be asked about where, a moment sooner, it
would not have been.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from toolwise.core.errors import BudgetExceeded, ToolwiseError
from toolwise.core.types import Call, CallContext, Result, Tool, WrittenCall
from toolwise.gate.gate import Gate
from toolwise.gate.slots import conflict


def execute_all(gate: Gate, calls: Sequence[Call | WrittenCall], context: CallContext) -> list[Result]:
    """One result for every call, in the order of the calls."""
    most = gate.limits.calls_per_turn
    handled, rest = calls[:most], calls[most:]
    too_many = BudgetExceeded(f"A turn may make {most} calls; ask for this one again later.")
    tools = [_tool(gate, call) for call in handled]
    running: list[Future[Result]] = []
    with ThreadPoolExecutor(max(1, len(handled)), thread_name_prefix="toolwise-turn") as pool:
        for number, call in enumerate(handled):
            before = [running[earlier] for earlier in range(number) if _conflict(tools[earlier], tools[number])]
            running.append(pool.submit(_run, gate, call, context, before))
        results = [future.result() for future in running]
    return results + [gate.refuse(call, context, too_many) for call in rest]


def _run(gate: Gate, call: Call | WrittenCall, context: CallContext, before: list[Future[Result]]) -> Result:
    wait(before)
    return gate.execute(call, context)


def _tool(gate: Gate, call: Call | WrittenCall) -> Tool | None:
    try:
        return gate.tool_of(call)
    except ToolwiseError:
        return None


def _conflict(a: Tool | None, b: Tool | None) -> bool:
    return a is not None and b is not None and conflict(a, b)
