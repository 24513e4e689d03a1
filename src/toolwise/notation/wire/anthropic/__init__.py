"""Anthropic's Messages API: `POST /v1/messages`."""

from toolwise.notation.wire.anthropic.errors import read_error, write_error
from toolwise.notation.wire.anthropic.read import read_request
from toolwise.notation.wire.anthropic.reply import read_reply, write_reply
from toolwise.notation.wire.anthropic.stream import reader, writer
from toolwise.notation.wire.anthropic.write import write_request

__all__ = [
    "read_error",
    "read_reply",
    "read_request",
    "reader",
    "write_error",
    "write_reply",
    "write_request",
    "writer",
]
