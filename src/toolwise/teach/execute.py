"""Every candidate is executed, through the gate: there is no other way to run a tool.

Identical calls run once: within a passage for any tool, across passages for pure ones, whose result depends on their
arguments alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolwise.core.jsonio import fingerprint
from toolwise.core.limits import LIMITS
from toolwise.core.types import CallContext, Effect, Principal, Result, WrittenCall
from toolwise.gate.gate import Gate
from toolwise.teach.records import Candidate, Passage
from toolwise.tools.registry import Registry

#: On whose behalf calls run while a corpus is annotated.
TEACHER = Principal("teach")


class Executor:
    """Runs candidates of one run. `pure` holds results of pure tools, and may be shared by executors."""

    def __init__(self, gate: Gate, registry: Registry, run_id: str, pure: dict[str, Result] | None = None) -> None:
        self._gate = gate
        self._registry = registry
        self._run_id = run_id
        self._pure = {} if pure is None else pure

    def execute(self, passage: Passage, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates with their results; a call that fails is dropped as `tool_error`, its text says why."""
        seen = {(call.offset, call.body) for call in passage.calls}
        local: dict[str, Result] = {}
        finished = []
        for candidate in candidates:
            if candidate.reason is not None:
                finished.append(candidate)
                continue
            key = (candidate.offset, candidate.body)
            if key in seen:
                finished.append(replace(candidate, reason="duplicate"))
                continue
            seen.add(key)
            result = self._result(passage, candidate, local)
            reason = None if result.ok else "tool_error"
            finished.append(replace(candidate, result=result.text, reason=reason))
        return finished

    def again(self, passage: Passage, body: str) -> Result:
        """The result of a call that is made once more, or of another tool, past every cache."""
        return self._executed(passage, body, "again")

    def _result(self, passage: Passage, candidate: Candidate, local: dict[str, Result]) -> Result:
        pure = self._registry.resolve(candidate.tool).effect is Effect.PURE
        cache = self._pure if pure else local
        if candidate.body in cache:
            return cache[candidate.body]
        result = self._executed(passage, candidate.body)
        if result.ok:  # a failure may pass, and the gate itself remembers it for this passage
            if len(cache) >= LIMITS.cached_results:
                cache.clear()
            cache[candidate.body] = result
        return result

    def _executed(self, passage: Passage, body: str, time: str = "") -> Result:
        call_id = fingerprint([passage.id, body, time])
        # Without a date of its own a text has none: on the day of the run it would give other calls than tomorrow.
        context = CallContext(TEACHER, self._run_id, today=passage.date or "unknown")
        return self._gate.execute(WrittenCall(call_id, body), context)
