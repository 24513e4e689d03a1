"""Call a tool's function once and turn whatever it does into one bounded value.

Covers: results that are no text and no finite JSON, exceptions (their text stays in `detail`, which only operators
read), exits, memory errors, results of any size. Not covered: a function that does not end; that is `isolate`'s part.
"""

from __future__ import annotations

import asyncio
import errno
import inspect
import struct
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolwise.core import errors, jsonio
from toolwise.core.errors import LimitExceeded, ResultInvalid, ToolFailed, ToolwiseError
from toolwise.core.limits import Limits
from toolwise.core.types import Tool, ToolContext

_FRAME = struct.Struct("!HIIQ")  # bytes of code, text and detail; total_bytes
_CODES = frozenset(
    leaf.code
    for leaf in vars(errors).values()
    if isinstance(leaf, type) and issubclass(leaf, ToolwiseError) and leaf.code != ToolwiseError.code
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the function gave: `ok` and the kept text, or an error's code and a sentence that the model may read.

    `answered` is False when the function was ended, or died, before it could say whether it had an effect.
    """

    code: str
    text: str
    total_bytes: int = 0
    detail: str = ""
    answered: bool = True


def attempt(tool: Tool, arguments: Mapping[str, Any], context: ToolContext, limits: Limits) -> Outcome:
    """The outcome of `tool.run`, which is called here and now. Raises nothing but KeyboardInterrupt."""
    given = dict(arguments)
    if tool.context_parameter is not None:
        given[tool.context_parameter] = context
    try:
        value = tool.run(**given)
        if inspect.iscoroutine(value):
            value = asyncio.run(value)
        return _kept(value, limits)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  a tool may raise anything; the model gets a code
        return failed(_as_ours(error), limits, detail=traceback.format_exc())


def failed(error: ToolwiseError, limits: Limits, *, detail: str = "", answered: bool = True) -> Outcome:
    """The outcome that says this error, its sentence and the end of the detail made safe to show and to store."""
    text = jsonio.printable(str(error), limits.message_chars)
    told = detail[-limits.audit_chars :].encode("utf-8", "replace").decode()
    return Outcome(error.code, text, 0, told, answered)


def pack(outcome: Outcome) -> bytes:
    """The outcome as bytes for a pipe."""
    code, text, detail = (part.encode("utf-8", "replace") for part in (outcome.code, outcome.text, outcome.detail))
    return _FRAME.pack(len(code), len(text), len(detail), outcome.total_bytes) + code + text + detail


def frame_bytes(received: bytes | bytearray) -> int | None:
    """How long the frame is that begins so; None while its head has not arrived."""
    if len(received) < _FRAME.size:
        return None
    code, text, detail, _ = _FRAME.unpack_from(received)
    return int(_FRAME.size + code + text + detail)


def most_frame_bytes(limits: Limits) -> int:
    """No outcome of an honest tool is packed into more."""
    longest_code = max(map(len, _CODES))
    return _FRAME.size + longest_code + max(limits.result_bytes, 10 * limits.message_chars) + 4 * limits.audit_chars


def unpack(frame: bytes | bytearray) -> Outcome:
    """The outcome in a whole frame. Raises ToolFailed when it is not one that `pack` makes."""
    code_end = _FRAME.size + _FRAME.unpack_from(frame)[0]
    text_end = code_end + _FRAME.unpack_from(frame)[1]
    code = frame[_FRAME.size : code_end].decode("ascii", "replace")
    if code != "ok" and code not in _CODES:
        raise ToolFailed("The tool's process gave an answer that cannot be read.")
    text, detail = frame[code_end:text_end].decode("utf-8", "replace"), frame[text_end:].decode("utf-8", "replace")
    return Outcome(code, text, _FRAME.unpack_from(frame)[3], detail)


def _kept(value: Any, limits: Limits) -> Outcome:
    text = value if isinstance(value, str) else jsonio.dumps(value, limits)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ResultInvalid("The tool returned text with an unpaired surrogate.") from None
    return Outcome("ok", data[: limits.result_bytes].decode("utf-8", "ignore"), len(data))


def _as_ours(error: BaseException) -> ToolwiseError:
    if isinstance(error, ToolwiseError) and error.code in _CODES:
        return error
    if isinstance(error, MemoryError):
        return LimitExceeded("The tool needs more memory than it may use.")
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return LimitExceeded("The tool opens more files than it may.")
    return ToolFailed("The tool could not answer; the operator's log says why.")
