"""A call with an effect runs at most once under its key, whoever asks, how often, and whatever is killed meanwhile.

    (nothing) --begin--> running --finish--> done       its result is given again
                            |     --finish--> unknown    it may have had its effect
                            |     --finish--> late       it answered after its deadline: given again from now on
                            +-- the process died ------> unknown
    unknown --begin, if the tool may be repeated--> running    at most `limits.attempts` times, then: dead
    unknown, dead --resolve, by an operator--> done, or (nothing)

`begin` is one transaction with the intent's line of the audit log, `finish` one with the result's: two writes a call.
The key is made of principal, run and call id, which are the runtime's, never the model's; the fingerprint says which
tool and arguments it was first used for.

`Memory` does the same for calls without effect, for the lifetime of a process: it spares work and gives every call id
one result, and of the finished calls the oldest are forgotten when there are more than `limits.replays`.

Covered: threads, processes and machines that use one key at once; kill -9 at every step; a result that cannot be
stored (then the call is unknown). Not covered: exactly-once effects in systems that ignore the key that they are given;
a process that another machine cannot see and that outlives its lease; machines whose clocks differ by minutes; one call
id that is used for a call with an effect and for one without, which stand in two ledgers and are no conflict.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections import OrderedDict
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal, Protocol

from toolwise.core import jsonio
from toolwise.core.clock import Clock
from toolwise.core.errors import BadInput, Conflict, Corrupt, InProgress, OutcomeUnknown, ToolwiseError
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Confidentiality, Integrity, Labels, Result
from toolwise.gate import owner
from toolwise.gate.state import Sql, State

End = Literal["done", "unknown", "late"]


@dataclass(frozen=True)
class Entry:
    """One call as the ledger knows it. `repeatable`: may it be started again when its outcome is unknown?"""

    principal: str
    run: str
    call: str
    tool: str
    fingerprint: str
    repeatable: bool = False
    seconds: float | None = None  # its deadline, if it has an enforceable one

    @property
    def identity(self) -> tuple[str, str, str]:
        """What is unique about the call."""
        return self.principal, self.run, self.call

    @cached_property
    def key(self) -> str:
        """Its identity as 64 hex digits. A tool may hand it on."""
        parts = "".join(f"{len(part)}:{part}" for part in self.identity)
        return hashlib.sha256(parts.encode()).hexdigest()


def fingerprint(tool: str, arguments: str) -> str:
    """The digest of a tool's name and the canonical JSON of arguments: two calls with the same one ask for the same."""
    return hashlib.sha256(f"{tool} {arguments}".encode()).hexdigest()


class Ledger(Protocol):
    """Whoever keeps calls from running twice."""

    def find(self, entry: Entry) -> Result | None:
        """The stored result; None when the call may begin. Raises Conflict, InProgress, OutcomeUnknown."""

    def check(self, entry: Entry, sql: Sql | None = None) -> None:
        """Raises what `begin` would raise now."""

    def begin(self, entry: Entry, sql: Sql | None = None) -> None:
        """Take the call; nobody else gets it from now on. Raises what `find` raises, also for one that is done."""

    def finish(self, entry: Entry, result: Result | None, end: End = "done", sql: Sql | None = None) -> None:
        """Store how it ended; `result` None where nobody knows."""

    def leave(self, entry: Entry) -> None:
        """Whoever began with this very entry no longer executes the call, whatever was stored of it."""


_USED = "This call id was used for another call; give every call an id of its own."
_RUNS = "This call is being executed; wait for its result."
_UNKNOWN = "This call was started before and may have had its effect: do not repeat it."
_DEAD = "This call was started several times and never ended; an operator has to look at it."


class Memory:
    """For calls without effect: in this process only, and a call that did not end may begin again."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._most = limits.replays
        self._calls: OrderedDict[tuple[str, str, str], tuple[Entry, Result | None]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, entry: Entry) -> Result | None:
        first, result = self._calls.get(entry.identity, (entry, None))
        if first.fingerprint != entry.fingerprint:
            raise Conflict(_USED)
        return result

    def check(self, entry: Entry, sql: Sql | None = None) -> None:
        first, _ = self._calls.get(entry.identity, (entry, None))
        if first is not entry:
            raise InProgress(_RUNS) if first.fingerprint == entry.fingerprint else Conflict(_USED)

    def begin(self, entry: Entry, sql: Sql | None = None) -> None:
        with self._lock:
            self.check(entry)
            self._calls[entry.identity] = (entry, None)

    def finish(self, entry: Entry, result: Result | None, end: End = "done", sql: Sql | None = None) -> None:
        with self._lock:
            self._calls[entry.identity] = (entry, result)

    def leave(self, entry: Entry) -> None:
        with self._lock:
            first, result = self._calls.get(entry.identity, (None, None))
            if first is entry and result is None:
                del self._calls[entry.identity]
            if len(self._calls) > self._most:  # one call has come, so one has to go: the oldest that has ended
                ended = (identity for identity, (_, result) in self._calls.items() if result is not None)
                oldest = next(ended, None)
                if oldest is not None:
                    del self._calls[oldest]


_TABLE = """CREATE TABLE IF NOT EXISTS ledger (
    key TEXT PRIMARY KEY, principal TEXT NOT NULL, run TEXT NOT NULL, call TEXT NOT NULL, tool TEXT NOT NULL,
    fingerprint TEXT NOT NULL, state TEXT NOT NULL, attempts BIGINT NOT NULL, owner TEXT NOT NULL,
    until DOUBLE PRECISION NOT NULL, result TEXT NOT NULL)"""
_NAMES = "key, principal, run, call, tool, fingerprint, state, attempts, owner, until, result"
_ONE = f"SELECT {_NAMES} FROM ledger WHERE key = ?"  # noqa: S608  names of ours
_ALL = f"SELECT {_NAMES} FROM ledger ORDER BY principal, run, call"  # noqa: S608
_INSERT = f"INSERT INTO ledger ({_NAMES}) VALUES (?, ?, ?, ?, ?, ?, 'running', 1, ?, ?, '')"  # noqa: S608
_AGAIN = "UPDATE ledger SET state = 'running', attempts = attempts + 1, owner = ?, until = ? WHERE key = ?"
_FINISH = "UPDATE ledger SET state = ?, result = ? WHERE key = ? AND owner = ? AND state = 'running'"
_STATE = "UPDATE ledger SET state = ?, result = ? WHERE key = ?"


@dataclass(frozen=True, slots=True)
class Record:
    """One row: a call that was begun. `state` is running, done, late, unknown or dead, as seen now."""

    key: str
    principal: str
    run: str
    call: str
    tool: str
    fingerprint: str
    state: str
    attempts: int
    owner: str
    until: float
    result: str

    def decoded(self) -> Result | None:
        """The stored result. Raises Corrupt."""
        return _decoded(self.result) if self.result else None


class Owners(Protocol):
    """Who executes calls; the module `owner`, unless somebody stands in for it."""

    def myself(self) -> str:
        """The name of this process."""

    def gone(self, owner: str) -> bool | None:
        """Whether the process with that name has ended; None where only time can tell."""


class Durable:
    """For calls with an effect, in a state that all who might run them share."""

    def __init__(self, state: State, clock: Clock, limits: Limits = LIMITS, owners: Owners = owner) -> None:
        self._state = state
        self._clock = clock
        self._limits = limits
        self._owners = owners
        self._me = f"{owners.myself()} {secrets.token_hex(4)}"  # one process may have several ledgers over one state
        self._mine: dict[str, Entry] = {}  # what is executed now through this one
        self._lock = threading.Lock()
        with state.transaction() as sql:
            sql(_TABLE)

    def find(self, entry: Entry) -> Result | None:
        found = self._state.read(_ONE, (entry.key,))
        if found and self._abandoned(Record(*found[0])):
            # Whoever was executing it may have stored its result and left since: certain behind every other writer.
            with self._state.transaction(durable=False) as sql:
                found = sql(_ONE, (entry.key,))
        return self._answer(entry, Record(*found[0])) if found else None

    def check(self, entry: Entry, sql: Sql | None = None) -> None:
        self._begun(entry, sql)

    def begin(self, entry: Entry, sql: Sql | None = None) -> None:
        begun = self._begun(entry, sql)
        assert sql is not None
        until = self._clock.now().timestamp() + self._lease(entry)
        if begun:
            sql(_AGAIN, (self._me, until, entry.key))
        else:
            told = (entry.key, entry.principal, entry.run, entry.call, entry.tool, entry.fingerprint)
            sql(_INSERT, (*told, self._me, until))
        with self._lock:
            self._mine[entry.key] = entry

    def finish(self, entry: Entry, result: Result | None, end: End = "done", sql: Sql | None = None) -> None:
        assert sql is not None
        sql(_FINISH, (end, "" if result is None else _encoded(result), entry.key, self._me))

    def leave(self, entry: Entry) -> None:
        with self._lock:
            if self._mine.get(entry.key) is entry:
                del self._mine[entry.key]

    def records(self) -> list[Record]:
        """Every call that was begun, its state as it is now."""
        return [self._seen(Record(*row)) for row in self._state.read(_ALL)]

    def resolve(self, key: str, end: Literal["done", "retry"], sql: Sql) -> Record:
        """What an operator found out about a call whose outcome is unknown: it was done, or it may begin anew.

        Raises BadInput for a call that is not there or whose outcome is known.
        """
        found = sql(_ONE, (key,))
        record = self._seen(Record(*found[0])) if found else None
        if record is None or record.state not in ("unknown", "dead"):
            raise BadInput("No call of unknown outcome has this key; `toolwise ledger` lists them.")
        if end == "retry":
            sql("DELETE FROM ledger WHERE key = ?", (key,))
        else:
            told = Result(record.call, "ok", "Done, as an operator confirmed.")
            sql(_STATE, ("done", _encoded(told), key))
        return record

    def _begun(self, entry: Entry, sql: Sql | None) -> bool:
        """Whether it has begun before, and may begin again."""
        assert sql is not None, "a durable call begins in the transaction of its intent"
        found = sql(_ONE, (entry.key,))
        if found and self._answer(entry, Record(*found[0])) is not None:
            raise InProgress(_RUNS)  # it ended between `find` and now: whoever asks again gets its result
        return bool(found)

    def _answer(self, entry: Entry, record: Record) -> Result | None:
        """The stored result, or None when the call may begin (again)."""
        record = self._seen(record)
        if record.fingerprint != entry.fingerprint:
            raise Conflict(_USED)
        if record.state == "running":
            raise InProgress(_RUNS)
        if record.state == "dead":
            raise OutcomeUnknown(_DEAD)
        if record.state == "unknown":
            if entry.repeatable:
                return None
            raise OutcomeUnknown(_UNKNOWN)
        return record.decoded()

    def _seen(self, record: Record) -> Record:
        """The record as it is now: whoever was running it may have died, and it may have died too often."""
        state = "unknown" if self._abandoned(record) else record.state
        if state == "unknown" and record.attempts >= self._limits.attempts:
            state = "dead"
        return replace(record, state=state)

    def _abandoned(self, record: Record) -> bool:
        """It is stored as running, and nobody runs it."""
        if record.state != "running":
            return False
        if record.owner == self._me:
            with self._lock:
                return record.key not in self._mine
        ended = self._owners.gone(record.owner.rpartition(" ")[0])
        return record.until < self._clock.now().timestamp() if ended is None else ended

    def _lease(self, entry: Entry) -> float:
        return self._limits.lease_seconds + (entry.seconds or 0.0)


_STORED = replace(LIMITS, string_bytes=LIMITS.json_size)  # a result may be longer than an argument


def _encoded(result: Result) -> str:
    return jsonio.dumps(asdict(result))


def _decoded(text: str) -> Result:
    try:
        told: dict[str, Any] = dict(jsonio.loads(text, _STORED))
        labels = dict(told.pop("labels"))
        return Result(**told, labels=Labels(Integrity(labels["integrity"]), Confidentiality(labels["confidentiality"])))
    except (ToolwiseError, KeyError, TypeError, ValueError) as error:
        raise Corrupt("A stored result cannot be read; an operator has to look at the ledger.") from error
