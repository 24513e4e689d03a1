"""Runs that wait for a person, under the conversation in which they were asked."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from toolwise.core.chat import Message, Role
from toolwise.core.limits import LIMITS
from toolwise.decode.run_state import RunState
from toolwise.gate.state import Sql, State, open_state
from toolwise.serve.paused import Paused, names_of

LONG = tuple(Message(Role.USER, f"question {number}") for number in range(LIMITS.chat_messages))


class Counting:
    """A state that remembers what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._state: State = open_state(":memory:")

    def transaction(self, *, durable: bool = True) -> AbstractContextManager[Sql]:
        self.asked.append("transaction")
        return self._state.transaction(durable=durable)

    def read(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        self.asked.append("read")
        return self._state.read(statement, values)

    def close(self) -> None:
        self._state.close()


def test_a_conversation_of_any_length_for_which_no_run_waits_is_one_question_and_no_lock() -> None:
    state = Counting()
    paused = Paused(state)
    state.asked.clear()
    assert paused.take(names_of("ann", LONG), "ann") is None
    assert state.asked == ["read"]


def test_the_run_of_the_longest_beginning_is_taken_once_and_by_its_principal_alone() -> None:
    paused = Paused(open_state(":memory:"))
    names = names_of("ann", LONG[:5])
    short, longer = RunState.begin("ann", LONG[:2], id="short"), RunState.begin("ann", LONG[:4], id="longer")
    for run in (short, longer):
        paused.put(names_of("ann", run.messages)[0][0], run)
    assert paused.take(names, "bob") is None
    assert paused.take(names_of("bob", LONG[:5]), "bob") is None
    assert paused.take(names, "ann") == (longer, 4)
    assert paused.take(names, "ann") == (short, 2)
    assert paused.take(names, "ann") is None
