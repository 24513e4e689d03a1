"""Refusals and failures of the Messages API: `{"type": "error", "error": {"type", "message"}}`."""

from __future__ import annotations

from typing import Any

from toolwise.core.errors import BadInput, ToolwiseError
from toolwise.notation.wire import server
from toolwise.notation.wire.base import Json, status_of

# Statuses that this API has of its own.
_STATUS = {"timeout": 504, "overloaded": 529}
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def write_error(error: ToolwiseError) -> tuple[int, Json]:
    status = _STATUS.get(error.code) or status_of(error)
    told: Json = {"type": _TYPES.get(status, "api_error"), "message": str(error)}
    if isinstance(error, BadInput) and error.field == "thread":
        # The client's tool runner asks the server to hold the conversation. Told so, it sends all of it every time.
        told["details"] = {"error_code": "thread_unsupported_request", "unsupported": []}
    return status, {"type": "error", "error": told}


def read_error(status: int, body: Any) -> ToolwiseError:
    """What an answer with this status says. In a stream there is no status (0), and the error's type stands for it."""
    return server.read_error(status, body, {kind: number for number, kind in _TYPES.items()})
