"""Google's Gemini API: `POST /v1/models/MODEL:generateContent` and `:streamGenerateContent` (older clients: `/v1beta`).

The model's name, and whether the answer streams, stand in the path and not in the body: whoever reads a request says
both. A stream is one of server-sent events where the query has `alt=sse`, and one JSON array (`JsonArray`) otherwise.
"""

from toolwise.notation.wire.gemini.errors import read_error, write_error
from toolwise.notation.wire.gemini.read import read_request
from toolwise.notation.wire.gemini.reply import read_reply, write_reply
from toolwise.notation.wire.gemini.stream import JsonArray, reader, writer
from toolwise.notation.wire.gemini.write import write_request

__all__ = [
    "JsonArray",
    "read_error",
    "read_reply",
    "read_request",
    "reader",
    "write_error",
    "write_reply",
    "write_request",
    "writer",
]
