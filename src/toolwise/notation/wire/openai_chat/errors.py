"""An error in the shape of OpenAI's API, both ways."""

from __future__ import annotations

from typing import Any

from toolwise.core.errors import BadInput, ToolwiseError
from toolwise.notation.wire import server
from toolwise.notation.wire.base import Json, status_of

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
}
_KINDS = {"invalid_request_error": 400, "invalid_prompt": 400, "authentication_error": 401, "permission_error": 403}


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
    """What an answer with this status says. In a stream there is no status (0), and the error's type stands for it."""
    return server.read_error(status, body, _KINDS)
