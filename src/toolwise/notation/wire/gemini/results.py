"""Results of calls on the wire: which call they answer, and whether they say a failure.

Calls need no ids there. A result without one answers the first call of its name that has no result yet.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolwise.core import jsonio
from toolwise.core.chat import ChatCall, Message, Role
from toolwise.core.errors import ResultInvalid
from toolwise.core.jsonio import quote
from toolwise.notation.wire.base import Json
from toolwise.notation.wire.fields import Field
from toolwise.notation.wire.history import error_text

_READ = frozenset({"id", "name", "response", "willContinue"})
_LEFT = frozenset({"scheduling"})


def read_result(place: Field, before: Sequence[Message]) -> Message:
    """`before` is the conversation up to here. Raises BadInput where no call waits for this result."""
    place.check_keys(_READ, _LEFT)
    if place["willContinue"].flag():
        raise place["willContinue"].refused("is not supported; send one result for each call")
    text, failed = _read_response(place["response"])
    return Message(Role.TOOL, text, call_id=_answered(place, before), is_error=failed)


def write_result(message: Message, call: ChatCall) -> Json:
    response = {"error" if message.is_error else "output": error_text(message)}
    return {"functionResponse": {"id": call.id, "name": call.name, "response": response}}


def _answered(place: Field, before: Sequence[Message]) -> str:
    id, name = place["id"].text(""), place["name"].text("")
    if id:
        return id  # whether a call has it, `paired` checks
    done: set[str] = set()
    for message in reversed(before):
        if message.role is Role.TOOL:
            done.add(message.call_id)
            continue
        waiting = [call.id for call in message.calls if call.name == name and call.id not in done]
        if waiting:
            return waiting[0]
        break
    raise place.refused(f"no call of {quote(name)} waits for a result; send one for each call")


def _read_response(place: Field) -> tuple[str, bool]:
    """The API's clients put a result under `output` or `result`, a failure under `error`, or an object of their own."""
    if place.absent:
        return "", False
    response = place.object()
    failed = response.get("error") is not None
    key = next(iter(response)) if len(response) == 1 else ""
    value = response[key] if key in ("output", "result", "error") else response
    try:
        return value if isinstance(value, str) else jsonio.compact(value), failed
    except ResultInvalid as error:
        raise place.refused(str(error)) from None
