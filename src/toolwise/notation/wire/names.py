"""Names of tools that every API takes, and back: letters, digits, _ and -, 64 at most.

Our registry allows a point, as in `calendar.update`, for which an API refuses the whole request. A name gets another
one for the wire, which depends on the names of the request alone and not on their order, so that the same tools have
the same names in every turn. A server's model sees only those.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from toolwise.core.chat import CallDelta, ChatCall, ChatDelta, ChatReply, ChatRequest, Message
from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS, Limits

_OTHER = re.compile(r"[^A-Za-z0-9_-]")


class WireNames:
    """The names of a request's tools on the wire. Raises BadInput where two cannot be told apart."""

    def __init__(self, names: Sequence[str], limits: Limits = LIMITS) -> None:
        most = limits.name_chars
        plain = {name: _OTHER.sub("_", name)[:most] for name in names}
        taken = Counter(plain.values())
        # Where two would be one, all that are not themselves are told apart by a part of their digest.
        self._sent = {
            name: short if short == name or taken[short] == 1 else f"{short[: most - 9]}_{_digest(name)}"
            for name, short in plain.items()
        }
        self._meant = {sent: name for name, sent in self._sent.items()}
        if len(self._meant) < len(self._sent):  # by chance, or since somebody chose a name so
            raise BadInput("Two tools have one name on the wire: give one of them another name.")

    def sent(self, request: ChatRequest) -> ChatRequest:
        """The request with the names as they go over the wire, also in its history and its choice."""
        if all(name == sent for name, sent in self._sent.items()) and not _odd(request.messages):
            return request
        return replace(
            request,
            tools=tuple(replace(tool, name=self._name(tool.name)) for tool in request.tools),
            choice=replace(request.choice, names=tuple(map(self._name, request.choice.names))),
            messages=tuple(self._message(message) for message in request.messages),
        )

    def meant(self, delta: ChatDelta) -> ChatDelta:
        """A piece of the answer, with the name of the tool that is meant; one that was not sent stays as it is."""
        if isinstance(delta, CallDelta) and delta.name in self._meant:
            return replace(delta, name=self._meant[delta.name])
        return delta

    def meant_reply(self, reply: ChatReply) -> ChatReply:
        """The same for a whole answer."""
        calls = tuple(replace(call, name=self._meant.get(call.name, call.name)) for call in reply.calls)
        return replace(reply, calls=calls)

    def _name(self, name: str) -> str:
        return self._sent.get(name) or _OTHER.sub("_", name)[: LIMITS.name_chars]

    def _message(self, message: Message) -> Message:
        return replace(message, calls=tuple(replace(call, name=self._name(call.name)) for call in message.calls))


def wire_names(request: ChatRequest) -> WireNames:
    """The names for this request: of its tools, and of no other."""
    return WireNames([tool.name for tool in request.tools])


def _odd(messages: Sequence[Message]) -> bool:
    calls: list[ChatCall] = [call for message in messages for call in message.calls]
    return any(_OTHER.search(call.name) or len(call.name) > LIMITS.name_chars for call in calls)


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:8]
