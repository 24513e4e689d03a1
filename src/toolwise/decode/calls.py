"""Between a conversation's calls and the gate's: what every loop does with them, whoever runs it."""

from __future__ import annotations

from collections.abc import Iterable

from toolwise.core.chat import ChatCall, Message, Role, ToolSpec
from toolwise.core.types import Result, Tool, WrittenCall
from toolwise.gate.labels import Boundary


def specs(tools: Iterable[Tool]) -> tuple[ToolSpec, ...]:
    """The tools as a request declares them."""
    return tuple(ToolSpec(tool.name, tool.description, tool.parameters) for tool in tools)


def written(call: ChatCall, id: str) -> WrittenCall:
    """The call as the gate reads it, under an id of the runtime's. What the model wrote stays as it is."""
    return WrittenCall(id, call.arguments, "arguments", call.complete, call.name)


def result_message(call: ChatCall, result: Result, boundary: Boundary | None = None) -> Message:
    """The result as the model reads it, under the model's own id. `boundary` sets untrusted text apart."""
    text = result.text if boundary is None else boundary.around(result)
    return Message(Role.TOOL, text, call_id=call.id, is_error=not result.ok)
