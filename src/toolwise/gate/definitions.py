"""What was approved is what runs: a tool's name, description, schema and all that is declared of it are pinned.

A tool that was never seen is pinned when the gate is made (`trust="first"`), or waits until a person has approved it
(`trust="approved"`). A tool whose definition is another than the pinned one is suspended, and every call of it is
`definition_changed`, until a person has seen the difference and approved the new one: `toolwise definitions`. A pin and
its line in the audit log, `pinned`, are one transaction.

Worth its trouble for tools whose definitions come from elsewhere (servers, files); a program's own tools change only
with the program. Not covered: what the tool's code does, which no hash of its words can pin.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from toolwise.core import jsonio
from toolwise.core.clock import Clock, SystemClock
from toolwise.core.errors import BadInput, Conflict, DefinitionChanged
from toolwise.core.limits import LIMITS
from toolwise.core.types import Tool
from toolwise.gate.audit import Audit, Line
from toolwise.gate.state import Sql, State
from toolwise.tools.registry import definition, definition_hash

_CLOCK = SystemClock()
_TABLE = """CREATE TABLE IF NOT EXISTS definitions (
    name TEXT PRIMARY KEY, hash TEXT NOT NULL, text TEXT NOT NULL, approved_by TEXT NOT NULL, wall TEXT NOT NULL)"""
_PUT = """INSERT INTO definitions (name, hash, text, approved_by, wall) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (name) DO UPDATE SET hash = excluded.hash, text = excluded.text,
    approved_by = excluded.approved_by, wall = excluded.wall"""


@dataclass(frozen=True, slots=True)
class Pin:
    """One approved definition; `text` is the whole of it as a person reads it."""

    name: str
    hash: str
    text: str
    approved_by: str
    wall: str


class Definitions:
    """The pinned definitions in `state`; of the tools in `only`, if that is said, and others are not looked at.

    Every method raises StorageUnavailable.
    """

    def __init__(
        self,
        state: State,
        clock: Clock = _CLOCK,
        *,
        trust: Literal["first", "approved"] = "first",
        only: Collection[str] | None = None,
    ) -> None:
        self._state = state
        self._only = only
        self._audit = Audit(state)
        self._clock = clock
        self._trust = trust
        with state.transaction() as sql:
            sql(_TABLE)

    def meet(self, tools: Iterable[Tool]) -> None:
        """Pin the tools that were never seen, where the first sight is trusted."""
        known = {pin.name for pin in self.pins()}
        if self._trust == "first":
            for tool in tools:
                if tool.name not in known and self._concerns(tool):
                    with suppress(Conflict):  # another gate has met it meanwhile, and its sight was the first
                        self._pin(tool, "first use", first=True)

    def check(self, tool: Tool, hash: str) -> None:
        """Raises DefinitionChanged for a tool that is not, or no longer, the approved one."""
        if not self._concerns(tool):
            return
        found = self._state.read("SELECT hash FROM definitions WHERE name = ?", (tool.name,))
        if not found:
            raise DefinitionChanged("Nobody has approved this tool yet: do without it.")
        if found[0][0] != hash:
            changed = ", ".join(self.changed(tool))
            raise DefinitionChanged(
                f"This tool is not as it was approved (changed: {changed}); it waits for a person: do without it."
            )

    def _concerns(self, tool: Tool) -> bool:
        return self._only is None or tool.name in self._only

    def approve(self, tool: Tool, by: str) -> Pin:
        """Pin the tool as it is now."""
        if not 0 < len(by) <= LIMITS.id_chars:
            raise BadInput("Say who approves the definition.")
        return self._pin(tool, by)

    def _pin(self, tool: Tool, by: str, *, first: bool = False) -> Pin:
        pin = Pin(tool.name, definition_hash(tool), readable(tool), by, self._clock.now().isoformat())
        line = Line(
            run="",
            call="",
            principal="",
            event="pinned",
            tool=pin.name,
            effect=tool.effect.value,
            digest=pin.hash,
            detail=f"by {jsonio.printable(by)}",
            wall=pin.wall,
        )

        def also(sql: Sql) -> None:
            if first and sql("SELECT hash FROM definitions WHERE name = ?", (tool.name,)):
                raise Conflict("The definition was pinned meanwhile.")
            sql(_PUT, (pin.name, pin.hash, pin.text, pin.approved_by, pin.wall))

        self._audit.append(line, also, durable=True)
        return pin

    def pins(self) -> list[Pin]:
        """Every pinned definition, by name."""
        rows = self._state.read("SELECT name, hash, text, approved_by, wall FROM definitions ORDER BY name")
        return [Pin(*row) for row in rows]

    def changed(self, tool: Tool) -> list[str]:
        """The fields of its definition that are not as they were approved; all of them where none was."""
        before, now = _fields(self._approved(tool)), _fields(readable(tool))
        return [name for name in before | now if before.get(name) != now.get(name)]

    def difference(self, tool: Tool) -> str:
        """What changed since the tool was approved: the fields, and line by line; empty when nothing did."""
        before, now = self._approved(tool).split("\n"), readable(tool).split("\n")
        lines = list(difflib.unified_diff(before, now, "approved", "now", lineterm="", n=2))
        return "\n".join([f"changed: {', '.join(self.changed(tool))}", *lines]) if lines else ""

    def _approved(self, tool: Tool) -> str:
        return next((pin.text for pin in self.pins() if pin.name == tool.name), "")


# What is deeper stands further to the right, and no text in JSON goes on in another line.
_FIELD = re.compile(r'^  "(\w+)": ', re.MULTILINE)


def _fields(text: str) -> dict[str, str]:
    """The fields of a definition that `readable` wrote."""
    _, *parts = _FIELD.split(text)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def readable(tool: Tool) -> str:
    """The whole definition as a person reads it; what does not print, or cannot be seen, is an escape."""
    return jsonio.printable_lines(jsonio.pretty(definition(tool)))
