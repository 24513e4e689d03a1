"""How the state machines are run: few examples with a fixed seed, or as many and whichever the environment says.

A third of them on a server, where each step is a round trip.
"""

import os
from typing import Any

from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from toolwise.gate.state import PostgresState

EXAMPLES = int(os.environ.get("TOOLWISE_EXAMPLES", "30"))
STEPS = 40
SEED = int(os.environ.get("TOOLWISE_SEED", "3"))


def run(machine: type[RuleBasedStateMachine], **given: Any) -> None:
    """Run the machine, each example with these attributes."""
    on_a_server = any(isinstance(each, PostgresState) or "://" in str(each) for each in given.values())
    examples = EXAMPLES // 3 if on_a_server else EXAMPLES
    print(f"TOOLWISE_SEED={SEED} TOOLWISE_EXAMPLES={examples}")
    chosen = settings(
        max_examples=examples,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    factory = seed(SEED)(type(machine.__name__, (machine,), given))
    run_state_machine_as_test(factory, settings=chosen, _min_steps=STEPS)  # left alone, it mostly stops after a few
