"""`toolwise mcp`: tools for MCP clients, every call through the gate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from toolwise.commands.common import (
    DEFAULT_STATE,
    TOOLS_HELP,
    StateOption,
    ToolOptionsOption,
    examples,
    gated,
    say,
    with_state,
)
from toolwise.commands.serve import answered_hosts, is_near, known_keys
from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS

app = typer.Typer()


@app.command(
    epilog=examples(
        "toolwise mcp --tools Calculator,mine.py",
        "toolwise mcp --tools mine.py --policy policy.cedar --state toolwise.db",
        "toolwise mcp --tools Calculator --port 8001 --keys keys.toml",
    )
)
def mcp(
    tools: Annotated[str, typer.Option(help=TOOLS_HELP)],
    option: ToolOptionsOption = None,
    policy: Annotated[
        Path | None, typer.Option(help="What they may do, in Cedar. Default: looks; asks before it changes.")
    ] = None,
    state: StateOption = DEFAULT_STATE,
    principal: Annotated[str, typer.Option(help="Who every call is for, over standard input and output.")] = "local",
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Answer over HTTP here (0: any that is free), under /mcp.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to answer at; other ones than this machine's need keys.")] = (
        "127.0.0.1"
    ),
    keys: Annotated[Path | None, typer.Option(help="The file of those who may use it; without: this machine.")] = None,
    audience: Annotated[str, typer.Option(help="The server's name in keys that are only for some servers.")] = "",
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name besides this machine's own under which the server is reached.")
    ] = None,
) -> None:
    """Serve tools to MCP clients: to the one that starts this command, or over HTTP with --port.

    Every call goes through the gate, like those of a model: policy, approvals, audit log. Standard output holds the
    protocol and nothing else. For other machines put a server with TLS in front.
    """
    try:
        from toolwise.serve.mcp import ToolServer, mcp_app, serve_http, serve_stdio
        from toolwise.serve.mcp_stdio import claimed
        from toolwise.serve.run import bound
    except ModuleNotFoundError as error:
        raise BadInput(f"This needs more packages ({error.name}): pip install 'toolwise[mcp,serve]'.") from error
    from toolwise.core.types import Principal

    if port is None:
        if keys or audience or allow_host or host != "127.0.0.1":
            raise BadInput("Keys and hosts are for HTTP: give --port, or leave them out.")
        if not 0 < len(principal) <= LIMITS.id_chars or not principal.isprintable():
            raise BadInput(f"--principal is a name of at most {LIMITS.id_chars} characters that print.")
        streams = claimed()  # before the tools are loaded, which may print
        with gated(tools, option, policy, state) as (gate, registry, _):
            served = ToolServer(gate, registry, decide=_decide(state))
            asyncio.run(serve_stdio(served, Principal(principal), streams))
        return
    if keys is None and not is_near(host):
        raise BadInput(f"Whoever reaches {host} could use the tools: give --keys, or answer at 127.0.0.1.")
    known = known_keys(keys, audience)
    with bound(port, host) as socket, gated(tools, option, policy, state) as (gate, registry, _):
        served = ToolServer(gate, registry, decide=_decide(state))
        application, running = mcp_app(served, keys=known, hosts=answered_hosts(host, allow_host))
        shown = f"[{host}]" if ":" in host else host
        say(f"http://{shown}:{socket.getsockname()[1]}/mcp (Ctrl-C ends it)")
        serve_http(application, running, socket)


def _decide(state: str) -> Callable[[str], str]:
    return lambda approval: f"toolwise approvals show {approval}{with_state(state)}"
