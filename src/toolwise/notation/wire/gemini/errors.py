"""Refusals and failures of the Gemini API: `{"error": {"code", "message", "status"}}`."""

from __future__ import annotations

from typing import Any

from toolwise.core.errors import ToolwiseError
from toolwise.notation.wire import server
from toolwise.notation.wire.base import Json, status_of

_WORDS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def write_error(error: ToolwiseError) -> tuple[int, Json]:
    status = 504 if error.code == "timeout" else status_of(error)
    return status, {"error": {"code": status, "message": str(error), "status": _WORDS.get(status, "INTERNAL")}}


def read_error(status: int, body: Any) -> ToolwiseError:
    """What an answer with this status says. In a stream there is no status (0), and the error's code stands for it."""
    return server.read_error(status, body, {})
