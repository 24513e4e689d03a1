"""The messages of a conversation as every API wants them: results paired with their calls, failures told in a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from toolwise.core.chat import Message, Role
from toolwise.core.errors import LEAVES, BadInput, ToolFailed
from toolwise.core.jsonio import quote
from toolwise.notation.wire.turn import shown_as_text

_ERROR = re.compile(rf"Error \(({'|'.join(leaf.code for leaf in LEAVES)})\): ")


def sendable(messages: Sequence[Message]) -> tuple[Message, ...]:
    """A history as APIs take it: results in the order of their calls, and what began like a call as text.

    Such a text is no call that a result could answer: what was said of it becomes a user's message after the turn's
    other results. Raises BadInput as `paired` does.
    """
    sent: list[Message] = []
    unread: set[str] = set()
    told: list[Message] = []
    for message in paired(messages):
        if message.role is Role.TOOL and message.call_id in unread:
            told.append(Message(Role.USER, error_text(message)))
            continue
        if message.role is not Role.TOOL:
            sent.extend(told)
            text, named = shown_as_text(message.calls)
            unread, told = {call.id for call in message.calls if not call.name}, []
            message = replace(message, text=message.text + text, calls=named) if unread else message
        sent.append(message)
    return (*sent, *told)


def paired(messages: Sequence[Message], places: Sequence[str] | None = None) -> tuple[Message, ...]:
    """The messages, with the results of a turn in the order of its calls.

    Raises BadInput, with the place of the message, where an id is empty or stands twice in a turn, where a result
    answers no call of the turn before it or one that is answered already, and where a call has no result although the
    conversation goes on. Ids are those of a turn: some clients count from zero in every one.
    """
    where = places or [f"messages[{number}]" for number in range(len(messages))]
    ordered: list[Message] = []
    open_calls: dict[str, int] = {}  # id -> where its result belongs, in `ordered`
    answered: set[str] = set()
    asked = ""  # where the turn with these calls stands

    def check_answered() -> None:
        for id_ in open_calls:
            if id_ not in answered:
                raise BadInput(f"{asked}: the call {quote(id_)} has no result; send one before what follows.", asked)

    for message, place in zip(messages, where, strict=True):
        if message.role is Role.TOOL:
            told = f"{place}: the result answers {quote(message.call_id)}, "
            if message.call_id not in open_calls:
                raise BadInput(f"{told}which is no call of the turn before it; send the id of one that is.", place)
            if message.call_id in answered:
                raise BadInput(f"{told}which has a result already; send one result for each call.", place)
            answered.add(message.call_id)
            ordered[open_calls[message.call_id]] = message
            continue
        check_answered()
        ordered.append(message)
        open_calls, answered, asked = {}, set(), place
        for call in message.calls:
            if not call.id or call.id in open_calls:
                raise BadInput(f"{place}: the call id {quote(call.id)} is empty or stands there twice.", place)
            open_calls[call.id] = len(ordered)
            ordered.append(message)  # its result takes this place
    check_answered()
    return tuple(ordered)


def error_text(message: Message) -> str:
    """The text of a result, which says a failure where an API has no flag for it."""
    if not message.is_error or _ERROR.match(message.text):
        return message.text
    return f"Error ({ToolFailed.code}): {message.text}"


def says_error(text: str) -> bool:
    """Whether a result's text says a failure, as `error_text` and the gate write it.

    A tool's own text can begin so too. That is safe: the flag only repeats what the model reads there anyway, and
    nothing that was refused or failed can pass for done by it.
    """
    return _ERROR.match(text) is not None
