"""Tools of MCP servers, over stdio and streamable HTTP, called through the gate."""

from toolwise.tools.mcp.tools import Brought, LeftOut, mcp_tools

__all__ = ["Brought", "LeftOut", "mcp_tools"]
