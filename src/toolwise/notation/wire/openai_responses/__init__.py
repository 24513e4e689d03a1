"""OpenAI's Responses: `POST /v1/responses`. Nothing is stored; a client sends the whole conversation."""

from toolwise.notation.wire.openai_chat.errors import read_error, write_error
from toolwise.notation.wire.openai_responses.read import read_request
from toolwise.notation.wire.openai_responses.read_reply import read_reply, reader
from toolwise.notation.wire.openai_responses.reply import write_reply
from toolwise.notation.wire.openai_responses.stream import writer
from toolwise.notation.wire.openai_responses.write import write_request

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
