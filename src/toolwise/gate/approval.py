"""A person confirms a call: exactly this one, once, and in time.

An approval is bound to the call's id, run and principal, to the digest of tool and arguments, to the hash of the tool's
definition and to the version of the policy that asked. Whatever of these changes, it approves nothing any more, and a
new one is asked for. It is used up in the transaction that writes the call's intent, so that two processes cannot use
it twice, and it expires. What the person sees is the whole call: nothing is cut off, and what does not print, or writes
from right to left, is shown as an escape.

    pending --decide--> approved --the call begins--> used
       |        |           +-- time passes, or anything changes --> void
       |        +--> rejected (the call is denied from then on)
       +-- time passes --> void

Covered: restarts; several processes; decisions that come twice or too late; floods (at most
`limits.pending_approvals` of one principal wait at one time, any further call is refused). Not covered: that the person
who decides is who they say they are: that is the business of the door through which the decision comes.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Literal

from toolwise.core import jsonio
from toolwise.core.clock import Clock
from toolwise.core.errors import ApprovalExpired, ApprovalRequired, BadInput, Denied, LimitExceeded, ToolwiseError
from toolwise.core.limits import LIMITS, Limits
from toolwise.gate.audit import Audit, Line
from toolwise.gate.state import Sql, State


@dataclass(frozen=True, slots=True)
class Approval:
    """One question to a person. `shown` is the call as it was shown, `digest` the SHA-256 of that text."""

    id: str
    state: str
    principal: str
    run: str
    call: str
    tool: str
    fingerprint: str
    definition: str
    policy: str
    shown: str
    reason: str
    asked: float
    expires: float
    decided_by: str = ""

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.shown.encode()).hexdigest()


_COLUMNS = list(Approval.__dataclass_fields__)
_values = attrgetter(*_COLUMNS)
_NAMES = ", ".join(_COLUMNS)
_TYPES = {"id": "TEXT PRIMARY KEY", "asked": "DOUBLE PRECISION NOT NULL", "expires": "DOUBLE PRECISION NOT NULL"}
_TYPED = ", ".join(f"{name} {_TYPES.get(name, 'TEXT NOT NULL')}" for name in _COLUMNS)
_TABLE = f"CREATE TABLE IF NOT EXISTS approvals ({_TYPED})"
_INDEX = "CREATE INDEX IF NOT EXISTS approvals_call ON approvals (principal, run, call)"
_SELECT = f"SELECT {_NAMES} FROM approvals"  # noqa: S608  names of ours
_OF_CALL = f"{_SELECT} WHERE principal = ? AND run = ? AND call = ? AND state <> 'void'"
_WAITING = "SELECT COUNT(*) FROM approvals WHERE principal = ? AND state = 'pending' AND expires > ?"
_INSERT = f"INSERT INTO approvals ({_NAMES}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608
_STATE = "SELECT state FROM approvals WHERE id = ?"
_MOVE = "UPDATE approvals SET state = ?, decided_by = ? WHERE id = ? AND state = ?"


class Approvals:
    """The questions in `state`. Every method raises StorageUnavailable."""

    def __init__(self, state: State, audit: Audit, clock: Clock, limits: Limits = LIMITS) -> None:
        self._state = state
        self._audit = audit
        self._clock = clock
        self._limits = limits
        with state.transaction() as sql:
            sql(_TABLE)
            sql(_INDEX)

    def confirm(self, line: Line, shown: str, definition: str, policy: str, check: Callable[[Sql], None]) -> Approval:
        """The approval of this call, to be used up when it begins.

        Raises ApprovalRequired with the id of the question where nobody has decided yet (it is asked now, if it was
        not), Denied where a person said no, ApprovalExpired where they said yes too long ago, LimitExceeded where too
        many questions wait. `check` is called before a question is asked, and raises where there is nothing to ask:
        somebody else may have begun the call meanwhile, with the approval that is missed now.
        """
        now = self._now()
        with self._state.transaction() as sql:  # what is found stays true until it is answered
            found = self._found(line, (line.fingerprint, definition, policy), now, sql)
            if found is None:
                check(sql)
                found = self._ask(line, shown, definition, policy, now, sql)
        if isinstance(found, ToolwiseError):
            raise found
        if found.state == "pending":
            raise ApprovalRequired(
                f"A person must confirm this call before it can run (approval {found.id}).", found.id
            )
        return found

    def use(self, approval: Approval, sql: Sql) -> None:
        """Use it up, in the transaction in which the call begins. Raises ApprovalExpired when somebody else did."""
        state = sql(_STATE, (approval.id,))
        if state != [("approved",)] or approval.expires <= self._now():
            raise ApprovalExpired("The confirmation is no longer there; ask again.")
        sql(_MOVE, ("used", approval.decided_by, approval.id, "approved"))

    def pending(self) -> list[Approval]:
        """The questions that wait for a decision, the oldest first."""
        rows = self._state.read(f"{_SELECT} WHERE state = 'pending' AND expires > ? ORDER BY asked", (self._now(),))
        return [Approval(*row) for row in rows]

    def get(self, id: str) -> Approval:
        """Raises BadInput for an id that is none."""
        found = self._state.read(f"{_SELECT} WHERE id = ?", (id,))
        if not found:
            raise BadInput("No approval has this id; `toolwise approvals` lists those that wait.")
        return Approval(*found[0])

    def decide(self, id: str, verdict: Literal["approved", "rejected"], by: str, digest: str) -> Approval:
        """A person's decision on what they saw: `digest` is that of the text that was shown to them.

        Raises BadInput where there is nothing to decide (any more) or where another text was shown, ApprovalExpired
        where it comes too late.
        """
        if not 0 < len(by) <= self._limits.id_chars:
            raise BadInput("Say who decides.")
        asked = self.get(id)
        if digest != asked.digest:
            raise BadInput("This decision is about another text than the one that has to be decided; look again.")
        if asked.state != "pending":
            raise BadInput(f"This approval is {asked.state}: there is nothing to decide.")
        if asked.expires <= self._now():
            self._void(asked)
            raise ApprovalExpired("This approval has expired; the call has to be asked for again.")
        self._audit.append(self._line(asked, verdict, by), self._moved(asked, verdict, by), durable=True)
        return replace(asked, state=verdict, decided_by=by)

    def _found(self, line: Line, bound: tuple[str, str, str], now: float, sql: Sql) -> Approval | ToolwiseError | None:
        """What was asked about exactly this call, or what became of it. Anything else under its id is void from now on,
        and so is what was asked too long ago."""
        found: Approval | ToolwiseError | None = None
        for asked in (Approval(*row) for row in sql(_OF_CALL, (line.principal, line.run, line.call))):
            same = (asked.fingerprint, asked.definition, asked.policy) == bound
            waits = asked.state in ("pending", "approved")
            if same and asked.state == "rejected":
                return Denied("A person looked at this call and said no: do without it.")
            if waits and same and asked.expires > now:
                found = asked
            elif waits:
                sql(_MOVE, ("void", asked.decided_by, asked.id, asked.state))
                if same and asked.state == "approved":
                    found = ApprovalExpired("The confirmation came too long ago; ask again.")
        return found

    def _ask(
        self, line: Line, shown: str, definition: str, policy: str, now: float, sql: Sql
    ) -> Approval | ToolwiseError:
        most = self._limits.pending_approvals
        ((waiting,),) = sql(_WAITING, (line.principal, now))
        if waiting >= most:
            return LimitExceeded(f"{most} calls wait for a person already: do without this one.")
        id = secrets.token_hex(8)
        told = (line.principal, line.run, line.call, line.tool, line.fingerprint, definition, policy, shown)
        asked = Approval(id, "pending", *told, line.policy, now, now + self._limits.approval_seconds)
        sql(_INSERT, _values(asked))
        return asked

    def _moved(self, approval: Approval, state: str, by: str) -> Callable[[Sql], None]:
        def move(sql: Sql) -> None:
            if sql(_STATE, (approval.id,)) != [(approval.state,)]:
                raise BadInput("Somebody else has decided meanwhile: there is nothing to decide.")
            sql(_MOVE, (state, by, approval.id, approval.state))

        return move

    def _void(self, approval: Approval) -> None:
        with self._state.transaction() as sql:
            sql(_MOVE, ("void", approval.decided_by, approval.id, approval.state))

    def _line(self, asked: Approval, verdict: Literal["approved", "rejected"], by: str) -> Line:
        return Line(
            run=asked.run,
            call=asked.call,
            principal=asked.principal,
            event=verdict,
            tool=asked.tool,
            fingerprint=asked.fingerprint,
            policy=asked.reason,
            digest=asked.digest,
            detail=f"approval {asked.id} by {jsonio.printable(by, self._limits.id_chars)}",
            wall=self._clock.now().isoformat(),
        )

    def _now(self) -> float:
        return self._clock.now().timestamp()


def view(tool: str, effect: str, principal: str, arguments: object, limits: Limits = LIMITS) -> str:
    """The whole call as a person is shown it: nothing cut off, nothing that does not print or turns the line round."""
    text = jsonio.pretty(arguments, limits)
    head = f"{tool} ({effect}), for {jsonio.printable(principal)}, {len(text)} characters of arguments:"
    return f"{head}\n{jsonio.printable_lines(text)}"
