"""The pieces of calls in a stream -> whole calls, also where a server numbers or names them wrongly.

The API gives each call a number and an id; its first piece has the name. Servers repeat a number for every call, send
no number or no id, send one id for several calls, a new id with every piece, or the name with every piece. A piece
belongs to a new call if its id is new and it has a name, or if what it would go on is another tool's, or is an object
that has been closed; else to the call of its id, else to that of its number, else to the last one. So two objects are
never put together under a name that was sent twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from toolwise.core import jsonio
from toolwise.core.chat import CallDelta
from toolwise.notation.wire.turn import Arguments, Nesting, own_id


@dataclass(slots=True)
class _Call:
    number: int
    id: str  # as it is told here: unique, and never empty
    sent_id: str
    index: int | None
    name: str = ""
    begun: bool = False  # whether the first piece went out, with the name
    nesting: Nesting = field(default_factory=Nesting)
    arguments: Arguments = field(default_factory=Arguments)

    def take(self, name: str, arguments: str) -> list[CallDelta]:
        self.name = self.name or name
        self.nesting.push(arguments)
        return self._out(self.arguments.push(arguments))

    def end(self) -> list[CallDelta]:
        return self._out(self.arguments.end(), last=True) if self.name or self.arguments.begun else []

    def _out(self, arguments: str, last: bool = False) -> list[CallDelta]:
        if not self.begun:
            self.begun = bool(self.name or arguments or last)
            return [CallDelta(self.number, arguments, self.id, self.name)] if self.begun else []
        return [CallDelta(self.number, arguments)] if arguments else []


class CallPieces:
    """Calls are numbered in the order of their first pieces; an id that is empty or taken becomes a new one."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_id: dict[str, _Call] = {}
        self._by_index: dict[int, _Call] = {}

    def push(self, id_: Any, index: Any, name: Any, arguments: Any) -> list[CallDelta]:
        """One piece, its parts as they were sent: None or of a wrong type where a server sends none."""
        id_, name = (part if isinstance(part, str) else "" for part in (id_, name))
        index = index if isinstance(index, int) else None
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else jsonio.compact(arguments)  # some servers send the object itself
        call = self._going_on(id_, index, name, arguments) or self._new(id_, index)
        return call.take(name, arguments)

    def end(self) -> tuple[list[CallDelta], tuple[int, ...]]:
        """The last pieces, and the numbers of the calls whose arguments were never closed."""
        pieces = [piece for call in self._calls for piece in call.end()]
        return pieces, tuple(call.number for call in self._calls if call.nesting.open)

    def _going_on(self, id_: str, index: int | None, name: str, arguments: str) -> _Call | None:
        """The call to which a piece belongs; None for the first piece of one."""
        of_id = self._by_id.get(id_)
        of_index = None if index is None else self._by_index.get(index)
        if of_id is not None and of_index is not None and of_index.sent_id == id_:
            call: _Call | None = of_index
        elif of_id is not None:
            another = bool(name) and index is not None and of_id.index is not None and of_index is None
            call = None if another else of_id
        elif id_ and name:
            call = None
        elif index is None or (of_index is None and not id_ and not name):
            call = self._calls[-1] if self._calls and not id_ else None
        else:
            call = of_index
        if call is None or not name or not call.name:
            return call
        restarted = call.nesting.closed and bool(arguments.strip())
        return None if restarted or name != call.name else call

    def _new(self, id_: str, index: int | None) -> _Call:
        own = own_id(id_, self._by_id, "call_")
        call = _Call(len(self._calls), own, id_, index)
        self._calls.append(call)
        if id_:
            self._by_id[id_] = call
        if index is not None:
            self._by_index[index] = call
        return call
