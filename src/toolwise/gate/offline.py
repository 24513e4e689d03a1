"""The gate as teaching uses it: `pure` and `read` tools for anybody, as many calls as the corpus asks for.

The state is in memory: no call can have an effect, and the run's candidates say of each what it was and gave.
"""

from __future__ import annotations

from toolwise.core.clock import Clock, SystemClock
from toolwise.gate.budget import Budgets, Cap
from toolwise.gate.gate import Gate
from toolwise.gate.isolate import Runs
from toolwise.gate.policy import OFFLINE, CedarPolicy
from toolwise.gate.state import open_state
from toolwise.tools.registry import Registry

_CLOCK = SystemClock()


def offline_gate(
    registry: Registry, clock: Clock = _CLOCK, *, runner: Runs | None = None, budgets: Budgets | None = None
) -> Gate:
    """A gate under the policy that ships as `offline.cedar`; any number of calls, unless `budgets` says less."""
    policy, counted = CedarPolicy.from_text(OFFLINE), Budgets(Cap()) if budgets is None else budgets
    return Gate(registry, policy, open_state(":memory:"), budgets=counted, clock=clock, runner=runner)
