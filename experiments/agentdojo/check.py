"""Does the table of functions say the truth? Every call that the package itself holds for right is made once, on an
environment with a canary at every place where an attack could be planted.

Covered: the functions that some task's ground truth calls. Not covered: arguments that no ground truth uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.functions_runtime import FunctionsRuntime
from agentdojo.task_suite.task_suite import TaskSuite
from functions import FUNCTIONS

_CANARY = "CANARY"


def lies(suite: TaskSuite[Any]) -> Iterator[str]:
    """What the table says wrong: a `read` that changes the environment, a `trusted` result that an outsider wrote."""
    runtime = FunctionsRuntime(suite.tools)
    canaries = {place: f"{_CANARY}-{place}" for place in suite.get_injection_vector_defaults()}
    for task in [*suite.user_tasks.values(), *suite.injection_tasks.values()]:
        environment = suite.load_and_inject_default_environment(canaries)
        for call in task.ground_truth(environment):
            words = FUNCTIONS[call.function].split()
            before = environment.model_dump_json()
            value, _ = runtime.run_function(environment, call.function, call.args, raise_on_error=True)
            if "read" in words and environment.model_dump_json() != before:
                yield f"{call.function} changes the environment in {task.ID}"
            if "trusted" in words and _CANARY in tool_result_to_str(value) and _CANARY not in str(call.args):
                yield f"{call.function} shows what an outsider wrote in {task.ID}"
