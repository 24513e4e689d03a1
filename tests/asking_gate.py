"""A gate that asks a person about its one tool, over a state that others may open too."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from toolwise.core.clock import Clock, FakeClock, SystemClock
from toolwise.core.limits import LIMITS
from toolwise.core.types import Call, CallContext, Effect, Principal, Result, Tool
from toolwise.gate.gate import Gate
from toolwise.gate.policy import CedarPolicy
from toolwise.gate.state import open_state
from toolwise.tools.registry import Registry

ASK = '@id("a person looks") permit (principal, action == Action::"ask", resource);'
TEXT = {"type": "string"}


class AskingGate:
    """What it sent is counted. `ago` seconds have passed since its clock was right."""

    def __init__(self, where: str | Path = ":memory:", *, ago: float = 0.0, policy: str = ASK, **names: Any) -> None:
        now = datetime.now().astimezone() - timedelta(seconds=ago)
        self.clock: Clock = FakeClock(now) if ago else SystemClock()
        self.sent: list[dict[str, Any]] = []
        self.state = open_state(where)
        tools = [self._tool(name) for name in names.pop("tools", ("send",))]
        limits = names.pop("limits", LIMITS)
        self.gate = Gate(Registry(tools), CedarPolicy.from_text(policy), self.state, clock=self.clock, limits=limits)
        self.approvals = self.gate.approvals

    def ask(self, id: str = "c1", tool: str = "send", who: str = "ann", run: str = "run-1", **arguments: Any) -> Result:
        return self.gate.execute(Call(id, tool, arguments), CallContext(Principal(who), run))

    @property
    def events(self) -> list[str]:
        return [row.line.event for row in self.gate.audit.rows()]

    def _tool(self, name: str) -> Tool:
        schema = {"type": "object", "properties": {"to": TEXT, "text": TEXT}, "additionalProperties": False}
        return Tool(name, "Sends.", schema, Effect.WRITE, lambda **given: self.sent.append(given), bounded=True)
