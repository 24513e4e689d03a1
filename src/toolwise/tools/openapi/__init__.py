"""Tools from an OpenAPI description: HTTP interfaces that others described, called through the gate."""

from toolwise.tools.openapi.tools import openapi_tools

__all__ = ["openapi_tools"]
