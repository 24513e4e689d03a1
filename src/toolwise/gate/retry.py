"""Another attempt where one failed in a way that may pass, and only where two attempts do no harm.

Tried again: outcomes whose error is `retryable` (`tool_unavailable`), of tools that look or compute, that are declared
idempotent, or that hand their key on (`Tool.repeatable`). Never: refusals, which are decided and not failed, and
anything of a plain `write` tool. At most `limits.attempts` attempts, with a jittered, growing wait between them, all
inside the one deadline of the call.
"""

from __future__ import annotations

from collections.abc import Callable

import tenacity

from toolwise.core.clock import Clock
from toolwise.core.errors import LEAVES
from toolwise.core.limits import Limits
from toolwise.core.types import Tool
from toolwise.gate.outcome import Outcome

_RETRYABLE = frozenset(leaf.code for leaf in LEAVES if leaf.retryable)


def attempts(
    run: Callable[[float], Outcome],
    tool: Tool,
    seconds: float,
    again: Callable[[Outcome], bool],
    limits: Limits,
    clock: Clock,
) -> Outcome:
    """The outcome of the last attempt. `run` is given the seconds that are left for it.

    `again` is told of every failure behind which another attempt would come, and may forbid it (a budget).
    """
    deadline = clock.monotonic() + seconds
    first = run(seconds)
    if not _may_pass(first) or not tool.repeatable:
        return first
    made = [first]  # what tenacity takes for its own first attempt

    def enough(state: tenacity.RetryCallState) -> bool:
        late = clock.monotonic() + state.upcoming_sleep >= deadline
        return state.attempt_number >= limits.attempts or late or not again(_outcome(state))

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_result(_may_pass),
        stop=enough,
        wait=tenacity.wait_random_exponential(multiplier=limits.retry_seconds, max=limits.call_seconds),
        sleep=clock.sleep,
        retry_error_callback=_outcome,
    )
    return retrying(lambda: made.pop() if made else run(max(0.0, deadline - clock.monotonic())))


def _may_pass(outcome: Outcome) -> bool:
    """Whether another attempt may end otherwise; one that answered after all, too late, needs none."""
    return outcome.code in _RETRYABLE and outcome.late is None


def _outcome(state: tenacity.RetryCallState) -> Outcome:
    assert state.outcome is not None, "asked only behind an attempt"
    found: Outcome = state.outcome.result()
    return found
