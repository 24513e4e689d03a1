"""`mcp_tools`: the tools of MCP servers, as tools of ours.

What the operator says and nobody else: which servers, what they are given, and what their tools may do to the world. A
server's words are untrusted: its tools' descriptions are shown to models as they are, so pin them (`gate.definitions`);
what it says of its own tools' harmlessness is not read. A tool that cannot be used, and a server that does not answer,
are left out with a reason and cost the others nothing.
"""

from __future__ import annotations

import atexit
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from toolwise.core.clock import Clock, SystemClock
from toolwise.core.errors import BadInput
from toolwise.core.jsonio import printable, quote
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.schema_safety import DATA, NAMES
from toolwise.core.types import Effect, Tool, ToolContext
from toolwise.tools.confined.network import Network, SystemNetwork
from toolwise.tools.mcp.config import read_config
from toolwise.tools.mcp.names import full_name
from toolwise.tools.mcp.server import Server
from toolwise.tools.mcp.session import Listed, Lost
from toolwise.tools.registry import Registry

_CLOCK, _NETWORK = SystemClock(), SystemNetwork()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A tool that cannot be used, or with an empty name all of a server's, and why."""

    server: str
    tool: str
    reason: str

    def __str__(self) -> str:
        what = f"{quote(self.tool)} of the server {self.server}" if self.tool else f"the server {self.server}"
        return f"{what} is left out: {self.reason}"


@dataclass(frozen=True, slots=True)
class Brought:
    """The tools, what stands behind each, and what was left out. The servers run until `close`, or the program ends."""

    tools: tuple[Tool, ...]
    identity: Mapping[str, str]
    left_out: tuple[LeftOut, ...]
    servers: tuple[Server, ...]

    def close(self) -> None:
        """End the servers. No tool works any more."""
        for server in self.servers:
            server.close()
        atexit.unregister(self.close)


def mcp_tools(
    source: str | Path | Mapping[str, Any],
    limits: Limits = LIMITS,
    *,
    only: str = "",
    network: Network = _NETWORK,
    clock: Clock = _CLOCK,
    tls: ssl.SSLContext | None = None,
) -> Brought:
    """The tools of the servers in a file (TOML, or `.json`) or in its value; of one server, with `only`.

    Raises BadInput for a file that cannot be used, and where none of its servers has a tool that can be.
    """
    if find_spec("mcp") is None:
        raise BadInput("Tools of MCP servers need another package: pip install 'toolwise[mcp]'.")
    configs = read_config(source, limits)
    if only:
        known = ", ".join(config.name for config in configs)
        configs = [config for config in configs if config.name == only]
        if not configs:
            raise BadInput(f"There is no server {quote(only)} in {str(source)!r}; it has {known}.")
    servers = tuple(Server(config, limits, network, clock, tls) for config in configs)  # they start side by side
    tools: list[Tool] = []
    identity: dict[str, str] = {}
    left_out: list[LeftOut] = []
    for server in servers:
        for tool, listed in _tools(server, limits, left_out):
            tools.append(tool)
            identity[tool.name] = f"{server.config.shown}, definition {listed.fingerprint[:16]}"
    brought = Brought(tuple(tools), identity, tuple(left_out), servers)
    if not tools:
        brought.close()
        reasons = "; ".join(map(str, left_out[:3])) or "they have none"
        raise BadInput(f"No tool of these MCP servers can be used: {reasons}.")
    atexit.register(brought.close)
    return brought


def _tools(server: Server, limits: Limits, left_out: list[LeftOut]) -> list[tuple[Tool, Listed]]:
    """The tools of one server that can be used; the others are noted."""
    config = server.config
    try:
        session = server.first()
    except Lost as lost:
        left_out.append(LeftOut(config.name, "", f"it {lost}"))
        return []
    left_out += [LeftOut(config.name, printable(name, limits.name_chars), why) for name, why in session.left_out]
    for name in sorted(config.named - session.listed.keys()):
        left_out.append(LeftOut(config.name, name, "the configuration names it, and the server has no such tool"))
    made: dict[str, list[tuple[Tool, Listed]]] = {}
    for listed in session.listed.values():
        if listed.name in config.without or (config.tools is not None and listed.name not in config.tools):
            continue
        try:
            tool = _tool(server, listed, limits)
            Registry([tool], limits)
            made.setdefault(tool.name, []).append((tool, listed))
        except BadInput as error:
            left_out.append(LeftOut(config.name, printable(listed.name, limits.name_chars), str(error)))
    for name, same in made.items():
        if len(same) > 1:
            left_out += [LeftOut(config.name, each.name, f"another one is named {name} as well") for _, each in same]
    return [same[0] for same in made.values() if len(same) == 1]


def _tool(server: Server, listed: Listed, limits: Limits) -> Tool:
    config = server.config
    effect = config.effects.get(listed.name, Effect.WRITE)
    writes = effect is Effect.WRITE
    idempotent, keyed = writes and listed.name in config.idempotent, writes and listed.name in config.keyed
    repeatable = not writes or idempotent or keyed
    context = "toolwise_context"
    while context in listed.schema.get("properties", ()):
        context += "_"

    def run(**arguments: Any) -> str:
        told: ToolContext = arguments.pop(context)
        return server.call(listed, arguments, told.key if keyed else "", told.seconds, repeatable)

    return Tool(
        name=full_name(config.name, listed.name, limits.name_chars),
        description=f"{_line(listed.description, limits)} (of the server {config.name})".lstrip(),
        parameters=_shown(listed.schema, limits),
        effect=effect,
        run=run,
        bounded=True,
        context_parameter=context,
        idempotent=idempotent,
        keyed=keyed,
        private=config.private,
        public=config.public,
    )


def _shown(schema: Any, limits: Limits, names: bool = False) -> Any:
    """The schema without titles, its descriptions in one line that shows all that is in them.

    `names` says that its keys are names and no keywords.
    """
    if isinstance(schema, list):
        return [_shown(part, limits) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    if names:
        return {name: _shown(part, limits) for name, part in schema.items()}
    shown: dict[str, Any] = {}
    for key, part in schema.items():
        if key == "description" and isinstance(part, str):
            shown[key] = _line(part, limits)
        elif key in DATA:
            shown[key] = part
        elif key != "title" or not isinstance(part, str):
            shown[key] = _shown(part, limits, key in NAMES)
    return shown


def _line(words: str, limits: Limits) -> str:
    return printable(" ".join(words.split()), limits.openapi_text_chars)
