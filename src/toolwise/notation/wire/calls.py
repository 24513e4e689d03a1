"""Calls on wires that write arguments as an object, and not as text.

Such a wire cannot carry a call whose text is no object, and one that was cut off or never became a call must not look
like a call to anybody: these are shown as text. Keys keep their order and integers their digits; spaces and the
spelling of other numbers are not on the wire.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from toolwise.core import jsonio
from toolwise.core.chat import ChatCall, Message
from toolwise.core.errors import ResultInvalid, ToolwiseError
from toolwise.notation.wire.fields import Field


def object_of(call: ChatCall) -> dict[str, Any] | None:
    """The arguments of a call that is one, None where it has no name, no end or no object.

    Nothing at all, blanks and `null` are the object without any.
    """
    if not call.name or not call.complete:
        return None
    try:
        value = jsonio.loads(call.arguments) if call.arguments.strip() else None
    except ToolwiseError:
        return None
    value = {} if value is None else value
    return value if isinstance(value, dict) else None


def shown(call: ChatCall) -> str:
    """A call that is none, as people and models may read it."""
    return f"{call.name} {call.arguments}" if call.name else call.arguments


def only_objects(messages: Sequence[Message]) -> tuple[Message, ...]:
    """A history in which a call that cannot be sent as an object has no name: `fields.sendable` makes it a text."""
    return tuple(
        replace(message, calls=tuple(call if object_of(call) is not None else _unread(call) for call in message.calls))
        for message in messages
    )


def text_of(place: Field) -> str:
    """The text of a call's arguments in a request."""
    try:
        return "{}" if place.absent else jsonio.compact(place.object())
    except ResultInvalid as error:
        raise place.refused(str(error)) from None


def _unread(call: ChatCall) -> ChatCall:
    return ChatCall(call.id, "", shown(call), complete=False)
