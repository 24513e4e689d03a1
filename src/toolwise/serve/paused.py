"""Runs that wait for a person, under the conversation in which they were asked: in the gate's state, across restarts.

A name stands for one beginning of a conversation of one principal, so nobody comes into somebody else's run. A run is
taken out when somebody goes on with it. The oldest go when there are too many; their calls are asked for anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from toolwise.core import jsonio
from toolwise.core.chat import Message, Role
from toolwise.core.limits import LIMITS, Limits
from toolwise.decode.run_state import RunState
from toolwise.gate.state import State

_TABLE = """CREATE TABLE IF NOT EXISTS paused_runs (
    name TEXT PRIMARY KEY, number BIGINT NOT NULL, principal TEXT NOT NULL, run TEXT NOT NULL
)"""
_OLD = "DELETE FROM paused_runs WHERE number <= (SELECT MAX(number) FROM paused_runs) - ?"
_OF = "SELECT name FROM paused_runs WHERE principal = ?"  # a few, where a conversation has thousands of beginnings
_NEXT = "SELECT COALESCE(MAX(number), 0) + 1 FROM paused_runs"


class Paused:
    """The runs in `state`. Every method raises StorageUnavailable."""

    def __init__(self, state: State, limits: Limits = LIMITS) -> None:
        self._state = state
        self._most = limits.paused_runs
        with state.transaction() as sql:
            sql(_TABLE)

    def put(self, name: str, run: RunState) -> None:
        with self._state.transaction() as sql:
            ((number,),) = sql(_NEXT, ())
            sql("DELETE FROM paused_runs WHERE name = ?", (name,))
            sql("INSERT INTO paused_runs VALUES (?, ?, ?, ?)", (name, number, run.principal, run.to_json()))
            sql(_OLD, (self._most,))

    def take(
        self, names: Sequence[tuple[str, int]], principal: str, only: str | None = None
    ) -> tuple[RunState, int] | None:
        """The run of the first of these that has one, and the number beside its name; nobody else gets it. `only` is
        the id of the one run that may be meant, where it is known.

        One question to the database where none of them has one, and no lock, however long the conversation is.
        """
        waiting = {name for (name,) in self._state.read(_OF, (principal,))}
        for name, number in names:
            if name not in waiting:
                continue
            with self._state.transaction() as sql:
                found = sql("SELECT run FROM paused_runs WHERE name = ?", (name,))
                run = RunState.from_json(found[0][0], principal) if found else None
                if run is None or only not in (None, run.id):  # another request took it since, or it is another's
                    continue
                sql("DELETE FROM paused_runs WHERE name = ?", (name,))
            return run, number
        return None


def names_of(principal: str, messages: Sequence[Message]) -> list[tuple[str, int]]:
    """One for each beginning of the conversation that a message of the user's or a tool's ends, the longest first, and
    how many messages it has."""
    digest = hashlib.sha256(principal.encode())
    names: list[tuple[str, int]] = []
    for count, message in enumerate(messages, 1):
        calls = [[call.name, call.arguments] for call in message.calls]
        digest.update(jsonio.fingerprint([message.role.value, message.text, calls, message.call_id]).encode())
        if message.role in (Role.USER, Role.TOOL):
            names.insert(0, (digest.hexdigest(), count))
    return names or [(digest.hexdigest(), len(messages))]
