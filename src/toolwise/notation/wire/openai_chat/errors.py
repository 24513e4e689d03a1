"""An error in the shape of OpenAI's API, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolwise.core.errors import BadInput, ToolwiseError
from toolwise.notation.wire.base import Json, status_of
from toolwise.notation.wire.server import said

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
}


def write_error(error: ToolwiseError) -> tuple[int, Json]:
    """The HTTP status, and the body."""
    return status_of(error), {"error": error_object(error)}


def error_object(error: ToolwiseError) -> Json:
    """`param` is the place in the request's body, where the error has one."""
    return {
        "message": str(error),
        "type": _TYPES.get(status_of(error), "server_error"),
        "param": (error.field or None) if isinstance(error, BadInput) else None,
        "code": error.code,
    }


def read_error(status: int, body: Any) -> ToolwiseError:
    """What a server that refuses or fails says, in whichever of the shapes that are about."""
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if isinstance(error, Mapping):
        error = error.get("message") or error.get("detail")
    return said(status, error)
