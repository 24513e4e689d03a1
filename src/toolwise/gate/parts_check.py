"""What the gate's durable parts do over an engine for its state, as a suite that ships with it.

`check_parts(open)` opens an empty state twice, as two processes would, and tries ledger, approvals, budgets, rates
and audit log of both against each other. It returns the promises that hold and raises `AssertionError` with those that
are broken. What an engine must do for that is `self_check`; this is what it is for. The tables stay as they were
written.

Not covered: what `self_check` does not cover, and the gate itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from toolwise.core.clock import FakeClock
from toolwise.core.errors import (
    ApprovalExpired,
    ApprovalRequired,
    BudgetExceeded,
    Conflict,
    Corrupt,
    InProgress,
    LimitExceeded,
    OutcomeUnknown,
    ToolwiseError,
)
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import CallContext, Effect, Principal, Result, Tool
from toolwise.gate.approval import Approval, Approvals
from toolwise.gate.audit import Audit, Line
from toolwise.gate.budget import Amount, Budgets, Cap
from toolwise.gate.ledger import Durable, Entry
from toolwise.gate.rates import Rates
from toolwise.gate.self_check import held
from toolwise.gate.state import Sql, State

_ASKED = 10  # at once, for what only one may have
_TOOL = Tool("self_check", "", {}, Effect.WRITE, dict)


@dataclass
class _Process:
    """A process that has a gate over the state; the other one sees when it ends."""

    state: State
    name: str
    ended: set[str]
    clock: FakeClock
    limits: Limits = LIMITS
    ledger: Durable = field(init=False)
    audit: Audit = field(init=False)
    approvals: Approvals = field(init=False)
    budgets: Budgets = field(init=False)
    rates: Rates = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = Durable(self.state, self.clock, self.limits, self)
        self.audit = Audit(self.state, limits=self.limits)
        self.approvals = Approvals(self.state, self.audit, self.clock, self.limits)
        self.budgets = Budgets(Cap(calls=3), state=self.state, limits=self.limits)
        self.rates = Rates({_TOOL.name: "3/hour"}, state=self.state, clock=self.clock)

    def myself(self) -> str:
        return self.name

    def gone(self, owner: str) -> bool | None:
        return owner in self.ended

    def begin(self, entry: Entry, approval: Approval | None = None) -> None:
        """As the gate does: the claim, the approval and the intent stand or fall together."""

        def also(sql: Sql) -> None:
            self.ledger.begin(entry, sql)
            if approval is not None:
                self.approvals.use(approval, sql)

        self.audit.append(_line(entry, "intent"), also)

    def finish(self, entry: Entry, result: Result) -> None:
        self.audit.append(_line(entry, "result"), lambda sql: self.ledger.finish(entry, result, "done", sql))
        self.ledger.leave(entry)

    def ask(self, entry: Entry) -> Approval:
        """The approval of the call. Raises ApprovalRequired."""
        return self.approvals.confirm(_line(entry), "shown", "definition", "policy", lambda sql: None)

    def decide(self, entry: Entry) -> Approval:
        """The approval of the call, from a person who has been asked about it now."""
        try:
            self.ask(entry)
        except ApprovalRequired as asked:
            self.approvals.decide(asked.approval, "approved", "somebody", self.approvals.get(asked.approval).digest)
        return self.ask(entry)


def check_parts(open: Callable[[], State]) -> tuple[str, ...]:
    """The promises that hold, all of them; `open` opens the same place anew each time."""
    with ExitStack() as stack:
        states = [stack.enter_context(closing(open())) for _ in range(2)]
        clock, ended = FakeClock(datetime(2024, 1, 1, tzinfo=UTC)), set[str]()
        one, other = (_Process(state, f"process-{n}", ended, clock) for n, state in enumerate(states))
        return held("the state", {promise: partial(keeps, one, other) for promise, keeps in _PROMISES.items()})


def _line(entry: Entry, event: Any = "refused") -> Line:
    effect = Effect.WRITE.value
    return Line(entry.run, entry.call, entry.principal, event, entry.tool, effect, fingerprint=entry.fingerprint)


def _entry(call: str, **other: Any) -> Entry:
    return replace(Entry("ann", "self_check", call, _TOOL.name, "digest"), **other)


def _raises(error: type[ToolwiseError], act: Callable[[], object]) -> bool:
    try:
        act()
    except error:
        return True
    return False


def _succeed(acts: Iterable[Callable[[], object]]) -> int:
    """How many do, all at once; an error of ours is none."""

    def succeeds(act: Callable[[], object]) -> bool:
        return not _raises(ToolwiseError, act)

    with ThreadPoolExecutor(_ASKED) as pool:
        return sum(pool.map(succeeds, acts))


# The ledger


def _begins_once(one: _Process, other: _Process) -> bool:
    entries = [_entry("once") for _ in range(_ASKED)]
    begun = _succeed(partial((one, other)[n % 2].begin, entry) for n, entry in enumerate(entries))
    return begun == 1 and _raises(InProgress, lambda: other.begin(_entry("once")))


def _comes_back(one: _Process, other: _Process) -> bool:
    entry, result = _entry("back"), Result("back", "ok", "n\u00e9\0" * 10_000, 0.1, True, 2**50, "f" * 64)
    one.begin(entry)
    one.finish(entry, result)
    foreign = other.ledger.find(replace(entry, principal="eve"))
    changed = _raises(Conflict, lambda: other.ledger.find(replace(entry, fingerprint="other")))
    return one.ledger.find(entry) == other.ledger.find(entry) == result and foreign is None and changed


def _is_unknown(one: _Process, other: _Process) -> bool:
    plain, again = _entry("plain"), _entry("again", repeatable=True)
    dies = _Process(one.state, "dies", one.ended, one.clock)
    for entry in (plain, again):
        dies.begin(entry)
        if not _raises(InProgress, partial(other.begin, entry)):
            return False
    one.ended.add("dies")
    other.begin(again)
    return _raises(OutcomeUnknown, lambda: other.begin(plain)) and _raises(InProgress, lambda: one.begin(again))


# Approvals


def _is_used_once(one: _Process, other: _Process) -> bool:
    asked = _entry("asked")
    approval = one.decide(asked)
    calls = [_entry(f"use-{n}") for n in range(_ASKED)]  # of which none is kept from beginning by another one
    used = _succeed(partial((one, other)[n % 2].begin, entry, approval) for n, entry in enumerate(calls))
    begun = sum(record.call.startswith("use-") for record in other.ledger.records())
    return used == begun == 1 and other.approvals.get(approval.id).state == "used"


def _approves_nothing_else(one: _Process, other: _Process) -> bool:
    entry = _entry("bound")
    approval = one.decide(entry)
    if other.ask(entry) != approval:
        return False
    changed = _raises(ApprovalRequired, lambda: other.ask(replace(entry, fingerprint="other")))
    return changed and _raises(ApprovalExpired, lambda: one.begin(entry, approval))


def _expires(one: _Process, other: _Process) -> bool:
    entry = _entry("late")
    approval = one.decide(entry)
    one.clock.set(one.clock.now() + timedelta(seconds=LIMITS.approval_seconds + 1))
    unused = _raises(ApprovalExpired, lambda: other.begin(entry, approval))
    return unused and _raises(ApprovalExpired, lambda: other.ask(entry)) and other.ledger.find(entry) is None


# Budgets, rates and the audit log


def _is_not_overdrawn(one: _Process, other: _Process) -> bool:
    context = CallContext(Principal("ann"), "self_check")

    def takes(process: _Process) -> None:
        process.budgets.reserve(context, _TOOL, Amount(1)).start()

    taken = _succeed(partial(takes, (one, other)[n % 2]) for n in range(_ASKED))
    return taken == 3 and _raises(BudgetExceeded, lambda: takes(other))


def _is_given_back(one: _Process, other: _Process) -> bool:
    context = CallContext(Principal("eve"), "self_check")
    for process in (one, other) * 3:
        with process.budgets.reserve(context, _TOOL, Amount(2)):
            pass  # it never began
    return True


def _is_not_passed(one: _Process, other: _Process) -> bool:
    def hit(process: _Process) -> None:
        process.rates.hit(Principal("ann"), _TOOL)

    counted = _succeed(partial(hit, (one, other)[n % 2]) for n in range(_ASKED))
    over = _raises(LimitExceeded, lambda: hit(other))
    one.clock.set(one.clock.now() + timedelta(hours=1))
    hit(other)
    return counted == 3 and over and one.state.read("SELECT COUNT(*) FROM rates") == [(1,)]


def _is_one_chain(one: _Process, other: _Process) -> bool:
    last = other.audit.verify()
    before = 0 if last is None else last.sequence
    lines = [_line(_entry(f"line-{n}"), "intent") for n in range(_ASKED)]
    _succeed(partial((one, other)[n % 2].audit.append, line) for n, line in enumerate(lines))
    found = [row.line for row in one.audit.rows(before)]
    last = one.audit.verify()
    return sorted(found) == sorted(lines) and last is not None and last.sequence == before + len(lines)


def _stands_or_falls(one: _Process, other: _Process) -> bool:
    entry, before = _entry("falls"), len(list(other.audit.rows()))

    def also(sql: Sql) -> None:
        one.ledger.begin(entry, sql)
        raise Conflict("no")

    refused = _raises(Conflict, lambda: one.audit.append(_line(entry, "intent"), also))
    one.ledger.leave(entry)
    return refused and other.ledger.find(entry) is None and len(list(other.audit.rows())) == before


def _shows_a_change(one: _Process, other: _Process) -> bool:
    one.audit.append(_line(_entry("changed"), "intent"))
    for code in ("forged", ""):
        with other.state.transaction() as sql:
            sql("UPDATE audit SET code = ? WHERE call = 'changed'", (code,))
        if code and not _raises(Corrupt, one.audit.verify):
            return False
    return one.audit.verify() is not None


_PROMISES: dict[str, Callable[[_Process, _Process], bool]] = {
    "a call that began begins nowhere else": _begins_once,
    "a result comes back as it was, to its user and for its arguments alone": _comes_back,
    "what a process that ended was executing is unknown": _is_unknown,
    "an approval is used once": _is_used_once,
    "an approval approves nothing else": _approves_nothing_else,
    "an approval expires": _expires,
    "a budget is not overdrawn": _is_not_overdrawn,
    "what was not used is given back": _is_given_back,
    "a rate is not passed, and what has left its window is forgotten": _is_not_passed,
    "two logs are one chain": _is_one_chain,
    "what is written with a line stands or falls with it": _stands_or_falls,
    "a change of the log is seen": _shows_a_change,
}
