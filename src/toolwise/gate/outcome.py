"""Call a tool's function once and turn whatever it does into one bounded value.

Covers: results that are no text and no finite JSON, exceptions (their text stays in `detail`, which only operators
read), exits, memory errors, results of any size. Not covered: a function that does not end (that is `isolate`'s part);
an effect behind which a function raises something of its own: it is taken for its word that it failed.
"""

from __future__ import annotations

import asyncio
import errno
import inspect
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolwise.core import jsonio
from toolwise.core.errors import (
    LEAVES,
    LimitExceeded,
    OutcomeUnknown,
    ResultInvalid,
    ToolFailed,
    ToolUnavailable,
    ToolwiseError,
)
from toolwise.core.limits import Limits
from toolwise.core.types import Tool, ToolContext
from toolwise.gate import frames

_COUNT_BYTES = 8  # for `total_bytes`
_CODES = frozenset(leaf.code for leaf in LEAVES)
# What the system refuses at a bound of the child, as a sentence.
_REFUSED = {
    errno.ENOMEM: "The tool needs more memory than it may use: ask it for less.",
    errno.EMFILE: "The tool opens more files than it may: ask it for less.",
    errno.EFBIG: "The tool writes a larger file to the disk than it may: ask it for less.",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the function gave: `ok` and the kept text, or an error's code and a sentence that the model may read.

    `answered` is False when the function was ended, or died, before it could say whether it had an effect; `late` is
    what it said all the same, too late to be delivered.
    """

    code: str
    text: str
    total_bytes: int = 0
    detail: str = ""
    answered: bool = True
    late: Outcome | None = None


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
        return failed(_as_ours(error, tool), limits, detail=traceback.format_exc())


def failed(error: ToolwiseError, limits: Limits, *, detail: str = "", answered: bool = True) -> Outcome:
    """The outcome that says this error, its sentence and the end of the detail made safe to show and to store."""
    text = jsonio.printable(str(error), limits.message_chars)
    told = detail[-limits.audit_chars :].encode("utf-8", "replace").decode()
    return Outcome(error.code, text, 0, told, answered)


def pack(outcome: Outcome) -> bytes:
    """The outcome as bytes for a stream."""
    code, text, detail = (part.encode("utf-8", "replace") for part in (outcome.code, outcome.text, outcome.detail))
    return frames.pack(code, text, detail, outcome.total_bytes.to_bytes(_COUNT_BYTES))


def most_frame_bytes(limits: Limits) -> int:
    """No outcome of an honest tool is packed into more."""
    text = max(limits.result_bytes, 10 * limits.message_chars)
    return frames.packed_bytes(max(map(len, _CODES)), text, 4 * limits.audit_chars, _COUNT_BYTES)


def unpack(frame: bytes | bytearray) -> Outcome:
    """The outcome in a whole frame. Raises ToolFailed when it is not one that `pack` makes."""
    unreadable = ToolFailed("The tool's process gave an answer that cannot be read; the operator's log says more.")
    try:
        *told, total_bytes = frames.unpack(frame, 4)
    except frames.FrameError:
        raise unreadable from None
    code, text, detail = (part.decode("utf-8", "replace") for part in told)
    if code != "ok" and code not in _CODES:
        raise unreadable
    return Outcome(code, text, int.from_bytes(total_bytes[:_COUNT_BYTES]), detail)


def _kept(value: Any, limits: Limits) -> Outcome:
    text = value if isinstance(value, str) else jsonio.dumps(value, limits)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise ResultInvalid("The tool returned text with an unpaired surrogate.") from None
    return Outcome("ok", data[: limits.result_bytes].decode("utf-8", "ignore"), len(data))


def _as_ours(error: BaseException, tool: Tool) -> ToolwiseError:
    if isinstance(error, ToolwiseError) and error.code in _CODES:
        return error
    if isinstance(error, ConnectionError | TimeoutError):
        if not tool.repeatable:
            return OutcomeUnknown("The connection was lost, and it may have had its effect: do not repeat it.")
        return ToolUnavailable("What the tool depends on does not answer; try again later.")
    refused = errno.ENOMEM if isinstance(error, MemoryError) else error.errno if isinstance(error, OSError) else None
    if refused in _REFUSED:
        return LimitExceeded(_REFUSED[refused])
    return ToolFailed("The tool could not answer; the operator's log says why.")
