"""An MCP server made with the `mcp` package: over stdio, or `http PORT` on the loopback."""

from __future__ import annotations

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("official")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool(name="calendar.update")
def update(day: str) -> str:
    """Changes a day."""
    return f"updated {day}"


@server.tool()
def fail(path: str) -> str:
    """Fails."""
    raise ValueError(f"no file {path}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        server.run(
            "streamable-http", host="127.0.0.1", port=int(sys.argv[2]), stateless_http=sys.argv[3] == "stateless"
        )
    else:
        server.run("stdio")
