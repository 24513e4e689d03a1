"""What the tests of loops share: a model whose turns are given, and a gate whose tools keep what they were given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolwise.core.chat import (
    ChatCall,
    ChatDelta,
    ChatReply,
    ChatRequest,
    Message,
    Role,
    StopReason,
    TokenUsage,
    pieces,
)
from toolwise.core.limits import LIMITS
from toolwise.core.types import CallContext, Effect, Principal, Tool
from toolwise.decode.agent import Agent, AgentSettings
from toolwise.decode.events import AgentEvent, RunEnded
from toolwise.decode.run_state import RunState
from toolwise.gate.budget import Budgets, Cap
from toolwise.gate.gate import Gate
from toolwise.gate.policy import CedarPolicy
from toolwise.gate.state import open_state
from toolwise.gate.turn import Cancel
from toolwise.tools.registry import Registry

RULES = """
permit (principal, action, resource) when { resource.effect != "write" };
@id("a person looks") permit (principal, action == Action::"ask", resource) when { resource.effect == "write" };
"""
ANN = Principal("ann")


def call(name: str, arguments: str = "{}", id: str = "c1", complete: bool = True) -> ChatCall:
    return ChatCall(id, name, arguments, complete)


def turn(*calls: ChatCall, text: str = "", stop: StopReason | None = None) -> ChatReply:
    stop = stop or (StopReason.CALLS if calls else StopReason.END)
    return ChatReply(text, calls, stop, TokenUsage(10, 5))


class Turns:
    """A ChatModel that gives these turns, the last one for ever, and keeps what it was asked."""

    name = "turns"

    def __init__(self, *turns: ChatReply) -> None:
        self.turns = turns
        self.asked: list[ChatRequest] = []
        self.closed = 0

    def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
        self.asked.append(request)
        try:
            yield from pieces(self.turns[min(len(self.asked), len(self.turns)) - 1])
        finally:
            self.closed += 1


class Desk:
    """A gate over a state that others may open too, and what its tools did, in order."""

    def __init__(
        self, where: str | Path = ":memory:", *, calls: int = 1_000, limits: Any = LIMITS, look: Any = None
    ) -> None:
        self.done: list[tuple[str, dict[str, Any]]] = []
        self.tools = [
            self._tool("add", Effect.PURE, {"a": {"type": "integer"}, "b": {"type": "integer"}}, ("a", "b")),
            self._tool("look", Effect.READ, {"at": {"type": "string"}}),
            self._tool("send", Effect.WRITE, {"to": {"type": "string"}}, ("to",)),
        ]
        if look is not None:
            self.tools[1] = replace(self.tools[1], run=look)
        self.state = open_state(where)
        self.gate = Gate(
            Registry(self.tools),
            CedarPolicy.from_text(RULES),
            self.state,
            budgets=Budgets(Cap(calls=calls)),
            limits=limits,
        )

    def decide(self, approval: str, verdict: Any = "approved") -> None:
        asked = self.gate.approvals.get(approval)
        self.gate.approvals.decide(approval, verdict, "bob", asked.digest)

    def close(self) -> None:
        self.gate.close()
        self.state.close()

    def _tool(self, name: str, effect: Effect, properties: dict[str, Any], required: Iterable[str] = ()) -> Tool:
        def run(**given: Any) -> str:
            self.done.append((name, given))
            return str(given["a"] + given["b"]) if name == "add" else f"{name} done"

        schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
        return Tool(name, f"{name} something.", schema, effect, run, bounded=True)


def went(
    model: Any, desk: Desk, state: RunState | None = None, cancel: Cancel | None = None, **settings: Any
) -> tuple[RunEnded, list[AgentEvent]]:
    """Run until the end, or until it pauses."""
    state = RunState.begin("ann").asked("Do it.") if state is None else state
    agent = Agent(model, desk.gate, desk.tools, AgentSettings(**settings))
    events = list(agent.run(state, CallContext(ANN, state.id), cancel))
    ended = events[-1]
    assert isinstance(ended, RunEnded)
    return ended, events


def results(state: RunState) -> list[Message]:
    return [message for message in state.messages if message.role is Role.TOOL]


def unanswered(state: RunState) -> list[str]:
    """What is wrong with the history: calls without exactly one result behind their turn, in their order."""
    wrong, messages = [], list(state.messages)
    for number, message in enumerate(messages):
        ids = [one.id for one in message.calls]
        behind = messages[number + 1 : number + 1 + len(ids)]
        if [(one.role, one.call_id) for one in behind] != [(Role.TOOL, id) for id in ids] or len(set(ids)) != len(ids):
            wrong.append(f"{ids} are answered by {[one.call_id for one in behind]}")
    answers = sum(message.role is Role.TOOL for message in messages)
    if answers != sum(len(message.calls) for message in messages):
        wrong.append("there are other results than calls")
    return wrong
