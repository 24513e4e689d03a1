"""What the calls of a turn have in common on every wire: the text of their arguments, ids, and how the turn ended."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterable
from typing import Any

from toolwise.core import jsonio
from toolwise.core.chat import ChatCall, StopReason
from toolwise.core.limits import LIMITS, Limits

_JSON_MARK = re.compile(r'["\\\[\]{}]')


def arguments_text(value: Any) -> str:
    """The text of a call's arguments, as it was sent. Nothing at all, blanks and null are an object without any.

    Some servers send the object itself. Raises ResultInvalid for what is no JSON.
    """
    if isinstance(value, str):
        return "{}" if value.strip() in ("", "null") else value
    return "{}" if value is None else jsonio.compact(value)


class Arguments:
    """The text of a call's arguments, piece by piece: nothing at all, blanks and null are an object without any."""

    def __init__(self) -> None:
        self._held = ""  # while it may still be one of these
        self._told = False

    def push(self, piece: str) -> str:
        """What is certain by now, and was not before."""
        if not self._told and self._held[-1:].isspace() and not piece.strip():
            return ""  # blanks without end would be looked at again with each of them
        self._held += piece
        if not self._told and "null".startswith(self._held.strip()):
            return ""
        told, self._held, self._told = self._held, "", True
        return told

    def end(self) -> str:
        """What is left."""
        nothing = not self._told and self._held.strip() in ("", "null")
        return "{}" if nothing else self._held

    @property
    def begun(self) -> bool:
        """Whether there was a piece."""
        return self._told or bool(self._held)


class Nesting:
    """How far a JSON text has got, piece by piece: `open` until every bracket and string is closed."""

    def __init__(self) -> None:
        self._level = 0
        self._in_string = False
        self._escaped = False
        self._begun = False

    def push(self, text: str) -> Nesting:
        at = 1 if self._escaped and text else 0
        self._escaped = self._escaped and not text
        while mark := _JSON_MARK.search(text, at):
            at = mark.end()
            if self._in_string:
                self._in_string = mark[0] != '"'
                if mark[0] == "\\":
                    self._escaped = at == len(text)
                    at += 1
            elif mark[0] == '"':
                self._in_string = True
            elif mark[0] != "\\":
                self._level += 1 if mark[0] in "[{" else -1
                self._begun = True
        return self

    @property
    def open(self) -> bool:
        return self._in_string or self._level > 0

    @property
    def closed(self) -> bool:
        """Whether an object or a list began and ended."""
        return self._begun and not self.open


def cut_off(arguments: str) -> bool:
    """Whether JSON text ended before it was closed. Other mistakes are the gate's to find."""
    return Nesting().push(arguments).open


def minted_id(prefix: str) -> str:
    """A new id: `prefix` and 24 hex digits."""
    return f"{prefix}{secrets.token_hex(12)}"


def own_id(sent: Any, taken: Collection[str], prefix: str, limits: Limits = LIMITS) -> str:
    """The id that a server gave a call, or a new one where it gave none, one that is taken in this turn, or one that
    nobody should have to keep: long, or with what does not print."""
    usable = isinstance(sent, str) and 0 < len(sent) <= limits.id_chars and sent.isprintable()
    return sent if usable and sent not in taken else minted_id(prefix)


def shown_as_text(calls: Iterable[ChatCall]) -> tuple[str, tuple[ChatCall, ...]]:
    """What began like a call and is none, as text, and the calls that are some."""
    named: list[ChatCall] = []
    texts: list[str] = []
    for call in calls:
        if call.name:
            named.append(call)
        else:
            texts.append(call.arguments)
    return "".join(texts), tuple(named)


def any_broken(calls: Iterable[ChatCall]) -> bool:
    """Whether one of the calls was never closed; what has no name was none."""
    return any(call.name and not call.complete for call in calls)


def told_stop(stop: StopReason, called: bool, broken: bool) -> StopReason:
    """How a turn ended, for an API that says so of the whole turn.

    One in which a call was never closed counts as cut off, lest a client runs it; one without calls waits for none.
    """
    if broken and stop is not StopReason.REFUSED:
        return StopReason.LENGTH
    return StopReason.END if stop is StopReason.CALLS and not called else stop
