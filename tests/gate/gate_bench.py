"""A gate that counts what runs."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from toolwise.core.limits import LIMITS
from toolwise.core.types import (
    Call,
    CallContext,
    Effect,
    Labels,
    Principal,
    Result,
    Tool,
    WrittenCall,
)
from toolwise.gate.audit import Line
from toolwise.gate.gate import Gate
from toolwise.gate.policy import Decision
from toolwise.gate.state import open_state
from toolwise.tools.registry import Registry

ANN = CallContext(Principal("ann"), "run-1")
TEXT = {"type": "string"}
QUICK = replace(LIMITS, call_seconds=0.5)


class Allow:
    """Everything, to everybody; what it was asked is kept."""

    version = "1"

    def __init__(self) -> None:
        self.asked: list[tuple[Principal, str, dict[str, Any]]] = []

    def decide(self, principal: Principal, tool: Tool, arguments: Mapping[str, Any], labels: Labels) -> Decision:
        self.asked.append((principal, tool.name, dict(arguments)))
        return Decision("allow", "test")


def tool(
    run: Callable[..., Any],
    name: str = "probe",
    effect: Effect = Effect.PURE,
    bounded: bool = True,
    required: tuple[str, ...] = (),
    declared: Mapping[str, Any] = MappingProxyType({}),
    **properties: Mapping[str, Any],
) -> Tool:
    schema = {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}
    return Tool(name, "A probe.", schema, effect, run, bounded, **declared)


@dataclass
class Bench:
    """A gate over one tool that counts its executions (in this process), or over the tools that are given."""

    tools: tuple[Tool, ...] = ()
    policy: Any = field(default_factory=Allow)
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ran: list[dict[str, Any]] = []
        counting = tool(lambda **given: self.ran.append(given), to=TEXT, amount={"type": "integer"})
        self.state = self.settings.pop("state", None) or open_state(":memory:")
        self.gate = Gate(Registry(self.tools or (counting,)), self.policy, self.state, **self.settings)
        self.audit = self.gate.audit
        self.calls = 0

    def call(self, arguments: Mapping[str, Any], name: str = "probe", context: CallContext = ANN) -> Result:
        self.calls += 1
        return self.gate.execute(Call(f"c{self.calls}", name, arguments), context)

    def json(self, text: str, **settings: Any) -> Result:
        self.calls += 1
        return self.gate.execute(WrittenCall(f"c{self.calls}", text, "json", **settings), ANN)

    def inline(self, text: str, **settings: Any) -> Result:
        self.calls += 1
        return self.gate.execute(WrittenCall(f"c{self.calls}", text, "inline", **settings), ANN)

    @property
    def lines(self) -> list[Line]:
        return [row.line for row in self.audit.rows()]

    @property
    def events(self) -> list[tuple[str, str]]:
        return [(line.event, line.code) for line in self.lines]

    def refuses(self, result: Result, code: str) -> None:
        """It was the bench's only call: nothing ran, one line says so, and the text says so in words."""
        assert (result.code, self.ran, self.events) == (code, [], [("refused", code)])
        assert result.text.startswith(f"Error ({code}): ")
        assert len(result.text) < LIMITS.message_chars + 50


def counter(path: Path) -> Callable[[], None]:
    """A function that leaves a byte in a file: executions are counted across processes."""

    def leave() -> None:
        end = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(end, b"x")
        os.close(end)

    return leave


def count(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
