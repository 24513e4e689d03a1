"""The only place where a call becomes an effect. `Gate.execute` is the whole path of a call, top to bottom.

Covers: every call gets exactly one result and nothing is skipped silently; without a policy, a budget and an audit log
that work, nothing runs; no effect starts before its intent is durable; no effect happens twice under one call id;
exception text never reaches the model. Each step lives in the module that it is named after, with what that step does
not cover. Not covered at all: that a model is not persuaded; only that persuasion has no forbidden effect.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from toolwise.core import jsonio
from toolwise.core.clock import Clock, SystemClock
from toolwise.core.errors import (
    ApprovalRequired,
    BadInput,
    Conflict,
    Denied,
    InvalidArguments,
    LimitExceeded,
    MalformedCall,
    OutcomeUnknown,
    StorageUnavailable,
    ToolwiseError,
    TruncatedCall,
)
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Call, CallContext, Effect, Integrity, Result, Tool, ToolContext, WrittenCall
from toolwise.gate import isolate
from toolwise.gate.audit import Audit, Event, Line
from toolwise.gate.budget import Budget
from toolwise.gate.labels import integrity
from toolwise.gate.ledger import Ledger
from toolwise.gate.outcome import Outcome, failed
from toolwise.gate.policy import Decision, DenyAll, Policy
from toolwise.notation import inline
from toolwise.tools.registry import Registry

Arguments = dict[str, Any]
_CLOCK = SystemClock()


class Gate:
    """Runs the tools of `registry` for those whom `policy` allows (None: nobody). Threads may share a gate."""

    def __init__(
        self,
        registry: Registry,
        policy: Policy | None,
        *,
        audit: Audit,
        budget: Budget | None = None,
        limits: Limits = LIMITS,
        clock: Clock = _CLOCK,
        notation: inline.Notation = inline.PLAIN,
    ) -> None:
        self._registry = registry
        self._policy = DenyAll() if policy is None else policy
        self._audit = audit
        self._budget = Budget(limits.calls_per_run, limits=limits) if budget is None else budget
        self._limits = limits
        self._clock = clock
        self._notation = notation
        self._ledger = Ledger(limits)
        self._slots = threading.BoundedSemaphore(limits.children)

    def execute(self, call: Call | WrittenCall, context: CallContext) -> Result:
        """The one result of the call, whatever happens; an error is a result whose text says so in words.

        `call.id` is the runtime's, never the model's: the same id and call in one run gets the stored result again.
        Raises BadInput for an id that is empty, longer than `limits.id_chars`, or that cannot be encoded.
        """
        started = self._clock.monotonic()
        line = self._opened(call, context)
        try:
            name, read = self._parse(call)
            tool = self._registry.resolve(name)
            line = replace(line, tool=tool.name, effect=tool.effect.value)
            arguments = read(tool)
            self._registry.validator(name).validate(arguments)
            line = self._identified(line, arguments)
            decision = self._authorise(context, tool, arguments)
            line = replace(line, policy=decision.policy)
            self._confirm(decision)
            with self._ledger.claim((line.principal, line.run, line.call), line.fingerprint) as claim:
                if claim.result is not None:
                    return self._replayed(line, claim.result, started)
                self._never_twice(line)
                self._budget.reserve(context.run_id)
                with self._slot(tool):
                    self._append(line, started, event="intent")
                    outcome = isolate.run(tool, arguments, self._told(context), self._limits, self._clock)
                    claim.result = self._recorded(line, tool, outcome, started)
                    return claim.result
        except ToolwiseError as refusal:
            return self._refused(line, refusal, started)

    # The steps, in their order

    def _opened(self, call: Call | WrittenCall, context: CallContext) -> Line:
        """What the audit log will say of this call; it is filled in as it becomes known."""
        most = self._limits.id_chars
        for identity in (context.run_id, call.id, context.principal.id):
            if not 0 < len(identity) <= most:
                raise BadInput(f"Give principal, run and call an id of 1 to {most} characters.")
            jsonio.check_text(identity, BadInput)
        line = Line(context.run_id, call.id, context.principal.id)
        if isinstance(call, Call):
            return replace(line, tool=jsonio.printable(call.name, self._limits.name_chars))
        return replace(line, arguments=jsonio.printable(call.text, self._limits.audit_chars))

    def _parse(self, call: Call | WrittenCall) -> tuple[str, Callable[[Tool], Arguments]]:
        """The name, and a function that gives a private copy of the arguments once the tool is known."""
        limits = self._limits
        if isinstance(call, Call):
            given = call.arguments
            return call.name, lambda tool: jsonio.plain(given, InvalidArguments, limits.argument_bytes, limits)
        most = limits.call_chars if call.form == "inline" else limits.argument_bytes
        if not call.complete or len(call.text) > most:
            raise TruncatedCall(f"The call was not closed within {most} characters: write it shorter and close it.")
        if call.form == "inline":
            name, raw = inline.read_body(call.text, self._notation)
            return name, lambda tool: inline.read_arguments(raw, tool, self._notation)
        match jsonio.loads(call.text, limits):
            case {"name": str(name), "arguments": dict(arguments), **rest} if not rest:
                return name, lambda tool: arguments
        raise MalformedCall('A call is an object with exactly "name" (a string) and "arguments" (an object).')

    def _identified(self, line: Line, arguments: Arguments) -> Line:
        try:
            canonical = jsonio.dumps(arguments, self._limits)
        except ToolwiseError as error:
            raise InvalidArguments(str(error)) from None
        digest = hashlib.sha256(f"{line.tool} {canonical}".encode()).hexdigest()
        return replace(line, arguments=jsonio.printable(canonical, self._limits.audit_chars), fingerprint=digest)

    def _authorise(self, context: CallContext, tool: Tool, arguments: Arguments) -> Decision:
        try:
            decision = self._policy.decide(context.principal, tool, arguments)
            return replace(decision, policy=jsonio.printable(decision.policy, self._limits.message_chars))
        except Exception as error:  # noqa: BLE001  whatever a policy raises, it has not allowed the call
            return Decision("deny", jsonio.printable(f"the policy failed: {error!r}", self._limits.message_chars))

    def _confirm(self, decision: Decision) -> None:
        if decision.verdict == "ask":
            raise ApprovalRequired("A person must confirm this call before it can run.")
        if decision.verdict != "allow":
            raise Denied("No policy allows this call: do without it.")

    def _never_twice(self, line: Line) -> None:
        """The ledger forgets; a write that the audit log knows to have been started is never started again."""
        events = self._audit.written(line.principal, line.run, line.call) if line.effect == Effect.WRITE else []
        if "result" in events:
            raise Conflict("This call id was executed before and its result is no longer kept: do not repeat it.")
        if events:
            raise OutcomeUnknown("This call was started before and may have had its effect: do not repeat it.")

    @contextmanager
    def _slot(self, tool: Tool) -> Iterator[None]:
        """A place among the `limits.children` processes that may run at one time; what runs here needs none."""
        if isolate.here(tool):
            yield
            return
        if not self._slots.acquire(timeout=self._limits.call_seconds):
            raise LimitExceeded("Too many tools are running: try again later.")
        try:
            yield
        finally:
            self._slots.release()

    def _told(self, context: CallContext) -> ToolContext:
        today = context.today or self._clock.now().date().isoformat()
        return ToolContext(context.principal, today, self._limits.call_seconds)

    # The three ways to end: executed, refused, replayed

    def _recorded(self, line: Line, tool: Tool, outcome: Outcome, started: float) -> Result:
        """What the tool gave, capped and labelled, once the audit log has it."""
        if tool.effect is Effect.WRITE and not outcome.answered:
            outcome = replace(outcome, code=OutcomeUnknown.code, text=f"It may have had its effect. {outcome.text}")
        result = self._result(line, outcome, started, integrity(tool))
        try:
            told = replace(line, code=result.code, digest=result.sha256, detail=outcome.detail)
            self._append(told, started, event="result")
        except StorageUnavailable as error:
            lost = OutcomeUnknown("The call was executed, but no record of it could be kept: do not repeat it.")
            outcome = failed(lost if tool.effect is Effect.WRITE else error, self._limits)
            return self._result(line, outcome, started)
        return result

    def _refused(self, line: Line, refusal: ToolwiseError, started: float) -> Result:
        """Nothing ran. A refusal that cannot be recorded says so: the operator has to act before the model does."""
        try:
            self._append(replace(line, code=refusal.code), started, event="refused")
        except StorageUnavailable as error:
            refusal = error
        return self._result(line, failed(refusal, self._limits), started)

    def _replayed(self, line: Line, earlier: Result, started: float) -> Result:
        self._append(replace(line, code=earlier.code, digest=earlier.sha256), started, event="replayed")
        return earlier

    def _result(self, line: Line, outcome: Outcome, started: float, label: Integrity = Integrity.UNTRUSTED) -> Result:
        kept = outcome.text.encode()
        ok = outcome.code == "ok"
        shown = outcome.text[: self._limits.result_chars] if ok else f"Error ({outcome.code}): {outcome.text}"
        return Result(
            call_id=line.call,
            code=outcome.code,
            text=shown,
            seconds=self._clock.monotonic() - started,
            truncated=ok and (outcome.total_bytes > len(kept) or len(outcome.text) > len(shown)),
            total_bytes=outcome.total_bytes if ok else len(kept),
            sha256=hashlib.sha256(kept).hexdigest(),
            integrity=label if ok else Integrity.UNTRUSTED,
        )

    def _append(self, line: Line, started: float, *, event: Event) -> None:
        seconds = self._clock.monotonic() - started
        self._audit.append(replace(line, event=event, seconds=seconds, wall=self._clock.now().isoformat()))
