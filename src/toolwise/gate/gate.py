"""The only place where a call becomes an effect. `Gate.execute` is the whole path of a call, top to bottom.

Covers: every call gets exactly one result and nothing is skipped silently; without a policy, a budget and a state that
works, nothing runs; no effect starts before its intent is durable; no effect happens twice under one call id;
exception text and secrets never reach the model. Each step lives in the module that it is named after, with what that
step does not cover. Not covered at all: that a model is not persuaded; only that persuasion has no forbidden effect.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

from toolwise.core import jsonio
from toolwise.core.clock import Clock, SystemClock
from toolwise.core.errors import (
    ApprovalRequired,
    BadInput,
    BudgetExceeded,
    Denied,
    OutcomeUnknown,
    StorageUnavailable,
    ToolFailed,
    ToolwiseError,
    UnknownTool,
)
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Call, CallContext, Effect, Labels, Result, Tool, ToolContext, WrittenCall
from toolwise.gate import ledger, telemetry
from toolwise.gate.approval import Approval, Approvals, view
from toolwise.gate.audit import Audit, Event, Line
from toolwise.gate.budget import Amount, Budgets, Reservation
from toolwise.gate.definitions import Definitions
from toolwise.gate.isolate import Runner, Runs, here
from toolwise.gate.labels import Flow, labels_of, written
from toolwise.gate.outcome import Outcome, failed
from toolwise.gate.parse import Arguments, fitted, parse
from toolwise.gate.policy import Decision, DenyAll, Policy
from toolwise.gate.rates import Rates
from toolwise.gate.redact import SHOWN, blanked, has_secrets, redacted
from toolwise.gate.retry import attempts
from toolwise.gate.slots import Slots
from toolwise.gate.state import Sql, State
from toolwise.notation.markers import PLAIN, Notation
from toolwise.tools.registry import Registry

_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class Checked:
    """A call that was read and validated: all that is needed to decide about it, to run it and to say how it ended.

    `shown` are the arguments as a person may see them, without what is in `secrets`.
    """

    context: CallContext
    tool: Tool
    arguments: Arguments
    shown: Mapping[str, Any]
    secrets: tuple[str, ...]
    entry: ledger.Entry


class Gate:
    """Runs the tools of `registry` for those whom `policy` allows (None: nobody). Threads may share a gate.

    `state` holds the audit log, the ledger of calls with an effect, approvals and labels; processes that share it share
    them all. `definitions` pins tools whose descriptions come from elsewhere. `runner` runs the tools instead of
    `isolate.Runner`; it is the gate's then, and ends with it. `approvals`, `ledger` and `audit` are for people who
    decide and look; `registry` holds the tools. `close`, or the end of a `with` block, ends the tools' processes.

    Raises BadInput when a tool has a budget or a rate of its own and is not among those of `registry`.
    """

    def __init__(
        self,
        registry: Registry,
        policy: Policy | None,
        state: State,
        *,
        budgets: Budgets | None = None,
        rates: Rates | None = None,
        definitions: Definitions | None = None,
        runner: Runs | None = None,
        limits: Limits = LIMITS,
        clock: Clock = _CLOCK,
        notation: Notation = PLAIN,
    ) -> None:
        for name in {*(budgets.tools if budgets else ()), *(rates.tools if rates else ())}:
            _known(name, registry)
        # Early: the processes of ours are copies of this one.
        self._runner: Runs = Runner(registry.values(), limits, clock) if runner is None else runner
        self.registry = registry
        self._policy = DenyAll() if policy is None else policy
        self._budgets = Budgets(limits=limits) if budgets is None else budgets
        self._rates = Rates() if rates is None else rates
        self._definitions = definitions
        self.limits = limits
        self._clock = clock
        self._notation = notation
        self._secretive = frozenset(name for name, tool in registry.items() if has_secrets(tool.parameters))
        self._slots = Slots(limits)
        self._flow = Flow(state, limits)
        self._memory = ledger.Memory(limits)
        self.ledger = ledger.Durable(state, clock, limits)
        self.audit = Audit(state, limits=limits)
        self.approvals = Approvals(state, self.audit, clock, limits)
        if definitions is not None:
            definitions.meet(registry.values())

    def execute(self, call: Call | WrittenCall, context: CallContext) -> Result:
        """The one result of the call, whatever happens; an error is a result whose text says so in words.

        `call.id` is the runtime's, never the model's: the same id and call in one run gets the stored result again.
        Raises BadInput for an id that is empty, longer than `limits.id_chars`, or that does not print.
        """
        started = self._clock.monotonic()
        line = self._opened(call, context)
        try:
            parsed = parse(call, self._notation, self.limits)
            tool = self.registry.resolve(parsed.name)
            line = line._replace(tool=tool.name, effect=tool.effect.value)
            self._pinned(tool)
            arguments, told = fitted(parsed, tool, self.registry.validator(tool.name), self.limits)
            line = line._replace(detail=told)
            line, checked = self._identified(line, context, tool, arguments)
            line, decision = self._authorised(line, checked)
            earlier = self._ledger(tool).find(checked.entry)
            if earlier is not None:
                return self._replayed(line, checked, earlier, started)
            approval = self._confirmed(line, checked, decision)
            with self._budgets.reserve(context, tool, self._most(tool)) as held, self._slots.take(tool):
                self._rates.hit(context.principal, tool)
                with self._begun(line, checked, approval, started):
                    outcome = self._run(line, checked, held, started)
                    return self._recorded(line, checked, outcome, started)
        except ToolwiseError as refusal:
            return self._refused(line, refusal, started)

    def refuse(self, call: Call | WrittenCall, context: CallContext, refusal: ToolwiseError) -> Result:
        """The result of a call that is refused before anything is read of it."""
        return self._refused(self._opened(call, context), refusal, self._clock.monotonic())

    def tool_of(self, call: Call | WrittenCall) -> Tool:
        """The tool that a call names. Raises MalformedCall, TruncatedCall, InvalidArguments, UnknownTool."""
        return self.registry.resolve(parse(call, self._notation, self.limits).name)

    def close(self) -> None:
        """End the tools' processes and write what waits. The state is the caller's to close."""
        self._runner.close()
        self.audit.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The steps, in their order

    def _opened(self, call: Call | WrittenCall, context: CallContext) -> Line:
        """What the audit log will say of this call; it is filled in as it becomes known."""
        most = self.limits.id_chars
        ids = context.run_id, call.id, context.principal.id
        for identity in ids:
            if not 0 < len(identity) <= most or not identity.isprintable():
                raise BadInput(f"Give principal, run and call an id of 1 to {most} characters that print.")
        if isinstance(call, Call):
            return Line(*ids, tool=jsonio.printable(call.name, self.limits.name_chars))
        text = SHOWN if self._secretive else call.text  # until it is read, nobody knows which part is secret
        name = jsonio.printable(call.name, self.limits.name_chars)
        return Line(*ids, tool=name, arguments=jsonio.printable(text, self.limits.audit_chars))

    def _pinned(self, tool: Tool) -> None:
        if self._definitions is not None:
            self._definitions.check(tool, self.registry.hash_of(tool.name))

    def _identified(self, line: Line, context: CallContext, tool: Tool, arguments: Arguments) -> tuple[Line, Checked]:
        """The line with digest and arguments, and the call with the key under which it runs once."""
        canonical = jsonio.canonical(arguments)
        shown, secrets = redacted(arguments, tool.parameters) if tool.name in self._secretive else (arguments, ())
        digest = ledger.fingerprint(tool.name, canonical)
        told = jsonio.canonical(shown) if secrets else canonical
        line = line._replace(arguments=jsonio.printable(told, self.limits.audit_chars), fingerprint=digest)
        entry = ledger.Entry(
            principal=line.principal,
            run=line.run,
            call=line.call,
            tool=tool.name,
            fingerprint=digest,
            repeatable=tool.repeatable,
            seconds=None if here(tool) else self._seconds(tool),
        )
        return line, Checked(context, tool, arguments, shown, secrets, entry)

    def _authorised(self, line: Line, checked: Checked) -> tuple[Line, Decision]:
        """The line with what decided and what the model had read, and the decision.

        A denial waits until the ledger was asked: of a call that ran before, it would say that nothing had happened.
        """

        def said(by: str) -> str:  # a rule that fails quotes what it failed over
            return jsonio.printable(blanked(by, checked.secrets), self.limits.message_chars)

        labels = self._flow.of(checked.context, checked.tool)
        try:
            decision = self._policy.decide(checked.context.principal, checked.tool, checked.arguments, labels)
            decision = Decision(decision.verdict, said(decision.policy))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001  whatever a policy raises, an engine's panic too, allows nothing
            decision = Decision("deny", said(f"the policy failed: {error!r}"))
        return line._replace(policy=decision.policy, labels=written(labels)), decision

    def _confirmed(self, line: Line, checked: Checked, decision: Decision) -> Approval | None:
        """The approval of a person, where the policy asks for one. Raises Denied where it does not allow the call."""
        if decision.verdict == "ask":
            tool = checked.tool
            text = view(tool.name, tool.effect.value, line.principal, checked.shown, self.limits)
            hash, version, taken = self.registry.hash_of(tool.name), self._policy.version, self._ledger(tool)
            return self.approvals.confirm(line, text, hash, version, lambda sql: taken.check(checked.entry, sql))
        if decision.verdict != "allow":
            raise Denied("No policy allows this call: do without it.")
        return None

    @contextmanager
    def _begun(self, line: Line, checked: Checked, approval: Approval | None, started: float) -> Iterator[None]:
        """The call is taken, its approval used up and its intent written, in one transaction; then it may run."""
        taken = self._ledger(checked.tool)

        def take(sql: Sql | None) -> None:
            taken.begin(checked.entry, sql)
            if approval is not None and sql is not None:
                self.approvals.use(approval, sql)

        try:
            if checked.tool.effect is Effect.WRITE or approval is not None:
                self._append(line, started, event="intent", also=take)
            else:
                take(None)
                self._append(line, started, event="intent")
            yield
        finally:
            taken.leave(checked.entry)

    def _run(self, line: Line, checked: Checked, held: Reservation, started: float) -> Outcome:
        """What the tool gave, tried again where that does no harm, all within one deadline."""
        tool, context = checked.tool, checked.context
        asks = tool.context_parameter is not None
        today = context.today or (self._clock.now().date().isoformat() if asks else "")
        held.start()

        def attempt(seconds: float) -> Outcome:
            told = ToolContext(context.principal, today, seconds, checked.entry.key if asks else "")
            try:
                return self._runner.run(tool, checked.arguments, told)
            except Exception as error:  # noqa: BLE001  of another runner nobody knows how far it came
                lost = ToolFailed("The tool could not be run; the operator's log says why.")
                return failed(lost, self.limits, detail=repr(error), answered=False)

        def again(outcome: Outcome) -> bool:
            try:
                held.take(self._most(tool))
                self._append(line, started, event="retried", code=outcome.code)
            except (BudgetExceeded, StorageUnavailable):
                return False
            return True

        before = self._clock.monotonic()
        outcome = attempts(attempt, tool, self._seconds(tool), again, self.limits, self._clock)
        held.end(self._clock.monotonic() - before, outcome.total_bytes)
        return outcome

    # The three ways to end: executed, refused, replayed

    def _recorded(self, line: Line, checked: Checked, outcome: Outcome, started: float) -> Result:
        """What the tool gave, capped and labelled, once ledger and audit log have it."""
        tool, late = checked.tool, outcome.late
        writes = tool.effect is Effect.WRITE
        if writes and not outcome.answered:
            told = f"The call may have had its effect ({outcome.code}): do not repeat it."
            outcome = replace(outcome, code=OutcomeUnknown.code, text=told)
        result = self._result(line, checked, outcome, started)
        kept = result if late is None else self._result(line, checked, late, started)
        end: ledger.End = "late" if late is not None else "unknown" if result.code == OutcomeUnknown.code else "done"
        taken = self._ledger(tool)
        detail = blanked(outcome.detail, checked.secrets).replace("\0", "\\0")

        def finish(sql: Sql | None = None) -> None:
            taken.finish(checked.entry, kept, end, sql)

        try:
            also, code, digest = finish if writes else None, result.code, result.sha256
            self._append(line, started, event="result", also=also, code=code, digest=digest, detail=detail)
            if not writes:
                finish()
            if late is not None:
                self._append(line, started, event="late", code=kept.code, digest=kept.sha256)
        except StorageUnavailable as error:
            return self._unrecorded(line, tool, error, started)
        return self._released(line, checked, result, started)

    def _refused(self, line: Line, refusal: ToolwiseError, started: float) -> Result:
        """Nothing ran. A refusal that cannot be recorded says so: the operator has to act before the model does."""
        try:
            self._append(line, started, event="refused", code=refusal.code)
        except StorageUnavailable as error:
            refusal = error
        return self._error(line, refusal, started)

    def _replayed(self, line: Line, checked: Checked, earlier: Result, started: float) -> Result:
        self._append(line, started, event="replayed", code=earlier.code, digest=earlier.sha256)
        return self._released(line, checked, earlier, started)

    def _released(self, line: Line, checked: Checked, result: Result, started: float) -> Result:
        """The result, once its labels stay with the run: nobody reads what is not labelled."""
        try:
            self._flow.add(checked.context, result.labels)
        except StorageUnavailable as error:
            return self._unrecorded(line, checked.tool, error, started)
        return result

    def _unrecorded(self, line: Line, tool: Tool, error: StorageUnavailable, started: float) -> Result:
        lost = OutcomeUnknown("The call was executed, but no record of it could be kept: do not repeat it.")
        return self._error(line, lost if tool.effect is Effect.WRITE else error, started)

    def _result(self, line: Line, checked: Checked, outcome: Outcome, started: float) -> Result:
        text = blanked(outcome.text, checked.secrets)
        kept = text.encode()
        ok = outcome.code == "ok"
        shown = (text if ok else f"Error ({outcome.code}): {text}")[: self.limits.result_chars]
        return Result(
            call_id=line.call,
            code=outcome.code,
            text=shown,
            seconds=self._clock.monotonic() - started,
            truncated=ok and (outcome.total_bytes > len(outcome.text.encode()) or len(text) > len(shown)),
            total_bytes=outcome.total_bytes if ok else len(kept),
            sha256=hashlib.sha256(kept).hexdigest(),
            labels=labels_of(checked.tool),
        )

    def _error(self, line: Line, error: ToolwiseError, started: float) -> Result:
        """The result that says an error of ours: its sentence is the gate's own, and may be believed."""
        outcome = failed(error, self.limits)
        kept = outcome.text.encode()
        return Result(
            call_id=line.call,
            code=error.code,
            text=f"Error ({error.code}): {outcome.text}",
            seconds=self._clock.monotonic() - started,
            total_bytes=len(kept),
            sha256=hashlib.sha256(kept).hexdigest(),
            labels=Labels(),
            approval=error.approval if isinstance(error, ApprovalRequired) else "",
        )

    # What the steps share

    def _ledger(self, tool: Tool) -> ledger.Ledger:
        return self.ledger if tool.effect is Effect.WRITE else self._memory

    def _seconds(self, tool: Tool) -> float:
        return tool.seconds or self.limits.call_seconds

    def _most(self, tool: Tool) -> Amount:
        """What one attempt may use at most."""
        return Amount(1, self._seconds(tool), self.limits.result_bytes, tool.cost)

    def _append(
        self, line: Line, started: float, *, event: Event, also: Callable[[Sql], None] | None = None, **told: str
    ) -> None:
        """Write the line down with what is `told` besides."""
        seconds = self._clock.monotonic() - started
        line = line._replace(event=event, seconds=seconds, wall=self._clock.now().isoformat(), **told)
        executed = event in ("intent", "result", "late") and line.effect == Effect.WRITE
        self.audit.append(line, also, durable=executed)
        telemetry.record(line)


def _known(name: str, registry: Registry) -> None:
    """A misspelt name would bound nothing."""
    try:
        registry.resolve(name)
    except UnknownTool as error:
        raise BadInput(f"A budget or a rate is for a tool that the gate does not have: {error}.") from None
