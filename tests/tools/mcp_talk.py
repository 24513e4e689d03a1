"""What the tests of MCP tools share: servers that are begun and ended, and a gate that lets everything through."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolwise import Call, CallContext, CedarPolicy, Gate, Principal, Registry, Result, open_state
from toolwise.core.limits import LIMITS, Limits
from toolwise.gate.definitions import Definitions
from toolwise.tools.mcp import Brought, mcp_tools

HOSTILE = Path(__file__).with_name("mcp_hostile.py")
#: Short where a test waits for it, and long enough for a machine that is busy.
SHORT = replace(LIMITS, mcp_close_seconds=0.5, grace_seconds=0.2)
PERMIT = CedarPolicy.from_text("permit (principal, action, resource);")


def hostile(way: str, *more: str, **said: Any) -> dict[str, Any]:
    """The configuration of the hand-written server."""
    return {"command": sys.executable, "args": [str(HOSTILE), way, *more], "revision": "2025-11-25"} | said


@contextmanager
def brought(limits: Limits = SHORT, **servers: Mapping[str, Any]) -> Iterator[Brought]:
    """The tools of these servers, which are ended afterwards."""
    found = mcp_tools({"servers": servers}, limits)
    try:
        yield found
    finally:
        found.close()


class Asking:
    """A gate over tools, asked one call after the other."""

    def __init__(self, found: Brought, limits: Limits = SHORT, definitions: bool = False) -> None:
        self.state = open_state(":memory:")
        pins = Definitions(self.state) if definitions else None
        self.gate = Gate(Registry(found.tools), PERMIT, self.state, definitions=pins, limits=limits)
        self._calls = 0

    def __call__(self, name: str, call_id: str = "", run: str = "run", **arguments: Any) -> Result:
        self._calls += 1
        call = Call(call_id or f"call-{self._calls}", name, arguments)
        return self.gate.execute(call, CallContext(Principal("ann"), run))


@contextmanager
def asking(way: str, *more: str, limits: Limits = SHORT, **said: Any) -> Iterator[Asking]:
    """One hand-written server `s` behind a gate."""
    with brought(limits, s=hostile(way, *more, **said)) as found:
        asked = Asking(found, limits)
        with asked.gate:
            yield asked
