"""OpenAI's Chat Completions, which most servers speak: `POST /v1/chat/completions`."""

from toolwise.notation.wire.openai_chat.errors import read_error, write_error
from toolwise.notation.wire.openai_chat.read import read_request
from toolwise.notation.wire.openai_chat.read_reply import read_reply, reader
from toolwise.notation.wire.openai_chat.reply import write_reply
from toolwise.notation.wire.openai_chat.stream import writer
from toolwise.notation.wire.openai_chat.write import write_request

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
