"""What every engine for the gate's state must do, as a suite that ships with it.

`self_check(open)` opens the state twice, as two processes would, and tries what the gate's parts rely on. It returns
the promises that hold and raises `AssertionError` with those that are broken. It writes to one table of its own, which
is gone afterwards.

Not covered: kill -9, a full disk, a lost server (the tests do that to both engines of ours), and whether what is
`durable` really is on the disk, which only a power cut shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from functools import partial
from typing import Any

from toolwise.core.errors import Conflict, StorageUnavailable
from toolwise.gate.state import State

_MAKE = "CREATE TABLE IF NOT EXISTS self_check (name TEXT PRIMARY KEY, number BIGINT NOT NULL, size DOUBLE PRECISION)"
_PUT = "INSERT INTO self_check (name, number, size) VALUES (?, ?, ?)"
_REPLACE = f"{_PUT} ON CONFLICT (name) DO UPDATE SET number = excluded.number, size = excluded.size"
_ROWS = "SELECT name, number, size FROM self_check ORDER BY name"
_TURNS, _THREADS = 10, 4  # of each of the two


def self_check(open: Callable[[], State]) -> tuple[str, ...]:
    """The promises that hold, all of them; `open` opens the same place anew each time."""
    with ExitStack() as stack:
        one, other = (stack.enter_context(closing(open())) for _ in range(2))
        stack.callback(_write, one, "DROP TABLE IF EXISTS self_check")
        return held(
            "the state", {promise: partial(_emptied, keeps, one, other) for promise, keeps in _PROMISES.items()}
        )


def held(what: str, promises: Mapping[str, Callable[[], bool]]) -> tuple[str, ...]:
    """The promises, if `what` keeps them all. Raises AssertionError with those that are broken."""
    broken = [promise for promise, keeps in promises.items() if not _kept(keeps)]
    assert not broken, f"{what} breaks: {'; '.join(broken)}"
    return tuple(promises)


def _kept(keeps: Callable[[], bool]) -> bool:
    try:
        return keeps()
    except Exception:  # noqa: BLE001  whatever goes wrong, the promise is not kept
        return False


def _emptied(keeps: Callable[[State, State], bool], one: State, other: State) -> bool:
    for statement in (_MAKE, "DELETE FROM self_check"):
        _write(one, statement)
    return keeps(one, other)


def _shared(one: State, other: State) -> bool:
    _write(one, _PUT, ("a", 1, 0.5))
    return other.read(_ROWS) == [("a", 1, 0.5)]


def _unchanged(one: State, other: State) -> bool:
    told = [("né\u200b\n'\"%s?", 2**62, 1e-300), ("x" * 100_000, -(2**63), None)]
    for row in told:
        _write(one, _PUT, row)
    return other.read("SELECT name, number, size FROM self_check ORDER BY number DESC") == told


def _replaced(one: State, other: State) -> bool:
    for number in (1, 2):
        _write(one, _REPLACE, ("a", number, None))
    return other.read(_ROWS) == [("a", 2, None)]


def _rolled_back(one: State, other: State) -> bool:
    for number, error in enumerate((Conflict("ours"), KeyboardInterrupt())):
        with suppress(type(error)), one.transaction() as sql:
            sql(_PUT, ("a", number, None))
            raise error
    return one.read(_ROWS) == other.read(_ROWS) == []


def _seen_late(one: State, other: State) -> bool:
    with one.transaction() as sql:
        sql(_PUT, ("a", 1, None))
        return sql(_ROWS) == [("a", 1, None)] and other.read(_ROWS) == []


def _unavailable(one: State, other: State) -> bool:
    _write(one, _PUT, ("a", 1, None))
    wrong: list[Callable[[], object]] = [
        lambda: _write(one, _PUT, ("a", 2, None)),  # somebody has the key
        lambda: _write(one, _PUT, ("\ud800", 2, None)),  # half a surrogate pair is no text
        lambda: _write(one, "SELECT nothing FROM nowhere"),
        lambda: one.read("SELECT nothing FROM nowhere"),
    ]
    refused = 0
    for use in wrong:
        try:
            use()
        except StorageUnavailable:
            refused += 1
    _write(one, _PUT, ("b", 2, None))
    return refused == len(wrong) and other.read(_ROWS) == [("a", 1, None), ("b", 2, None)]


def _exclusive(one: State, other: State) -> bool:
    _write(one, _PUT, ("a", 0, None))

    def count(state: State) -> None:
        for _ in range(_TURNS):
            with state.transaction(durable=False) as sql:
                ((number,),) = sql("SELECT number FROM self_check")
                sql("UPDATE self_check SET number = ?", (number + 1,))

    states = [one, other] * _THREADS
    with ThreadPoolExecutor(len(states)) as pool:
        list(pool.map(count, states))
    return one.read(_ROWS) == [("a", len(states) * _TURNS, None)]


_PROMISES: dict[str, Callable[[State, State], bool]] = {
    "what was written is there for everybody": _shared,
    "every value comes back as it was": _unchanged,
    "a row is replaced under its key": _replaced,
    "what failed is there for nobody, and its error passes": _rolled_back,
    "what is not committed is seen by nobody else": _seen_late,
    "an error of the engine is StorageUnavailable, and the state is used again": _unavailable,
    "transactions that write exclude each other": _exclusive,
}


def _write(state: State, statement: str, values: Sequence[Any] = ()) -> None:
    with state.transaction() as sql:
        sql(statement, values)
