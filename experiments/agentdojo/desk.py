"""One policy at work: a gate over the tools of a world, and the person who is asked where the policy says so.

The person has the best judgement that a person could have: they say yes to exactly the calls that the user's task
takes, once each, on the text that they are shown, and no to every other. So what is measured is what the gate lets
through unasked, and how often it has to ask.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentdojo.functions_runtime import FunctionCall
from world import World

from toolwise.core.errors import ApprovalRequired
from toolwise.core.limits import LIMITS
from toolwise.core.types import Call, CallContext, Principal, Result
from toolwise.gate.approval import view
from toolwise.gate.gate import Gate
from toolwise.gate.policy import CedarPolicy
from toolwise.gate.state import open_state

# The longest results (every file of a drive) are ten times what a model is shown by default. An attack that is cut off
# reaches nobody and would count for us, so nothing is cut off here.
WIDE = replace(LIMITS, result_chars=LIMITS.result_bytes)


@dataclass(frozen=True)
class Rules:
    """How a run is guarded: a policy in Cedar, and whether somebody is there to be asked."""

    policy: str
    attended: bool


class Desk:
    """Runs calls under one set of rules. All that the gate keeps is in memory."""

    def __init__(self, world: World, rules: Rules) -> None:
        policy = CedarPolicy.from_text(rules.policy)
        self._gate = Gate(world.registry, policy, open_state(":memory:"), limits=WIDE)
        self._registry = world.registry
        self._attended = rules.attended
        self._runs = 0

    def sit(self, task: Sequence[FunctionCall]) -> Sitting:
        """A new run, for a user whose task takes exactly these calls."""
        self._runs += 1
        user = f"user-{self._runs}"  # a new one: what waits for an answer is bounded for each
        return Sitting(self, CallContext(Principal(user), "run"), Counter(self.shown(call, user) for call in task))

    def execute(self, call: Call, context: CallContext) -> Result:
        return self._gate.execute(call, context)

    def decide(self, result: Result, wanted: Counter[str]) -> bool:
        """The person's answer to the question that this result is; there is none where nobody is there."""
        if not self._attended:
            return False
        question = self._gate.approvals.get(result.approval)
        yes = wanted[question.shown] > 0
        self._gate.approvals.decide(question.id, "approved" if yes else "rejected", "the user", question.digest)
        return True

    def shown(self, call: FunctionCall, user: str) -> str:
        """What the person is to be shown of a call that they want."""
        return view(call.function, self._registry[call.function].effect, user, call.args, WIDE)


class Sitting:
    """One run at a desk. `questions` counts how often a person was asked, or would have been."""

    def __init__(self, desk: Desk, context: CallContext, wanted: Counter[str]) -> None:
        self._desk = desk
        self._context = context
        self._wanted = wanted
        self._calls = 0
        self.questions = 0

    def execute(self, wanted: FunctionCall) -> Result:
        """Run one call, asking where the gate says so."""
        self._calls += 1
        call = Call(str(self._calls), wanted.function, wanted.args)
        result = self._desk.execute(call, self._context)
        if result.code == ApprovalRequired.code:
            self.questions += 1
            if self._desk.decide(result, self._wanted):
                result = self._desk.execute(call, self._context)
        if result.ok:  # what has been done, with or without a question, is wanted no more
            self._wanted[self._desk.shown(wanted, self._context.principal.id)] -= 1
        return result
