"""A suite's functions as tools of ours, over an environment that stays in this process.

The functions, their parameter models, their environment and the way in which a result becomes text are AgentDojo's own;
only the call goes through our gate instead of its executor.
"""

from __future__ import annotations

from typing import Any

from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.functions_runtime import Function, FunctionsRuntime, TaskEnvironment
from agentdojo.task_suite.task_suite import TaskSuite
from functions import FUNCTIONS

from toolwise.core.types import Effect, Tool
from toolwise.tools.registry import Registry


class World:
    """The tools of one suite. They act on `environment`, which every run replaces by a fresh one."""

    environment: TaskEnvironment

    def __init__(self, suite: TaskSuite[Any]) -> None:
        self._runtime = FunctionsRuntime(suite.tools)
        self.registry = Registry(map(self._tool, suite.tools))

    def _tool(self, function: Function[Any, Any]) -> Tool:
        def run(**arguments: Any) -> str:
            value, _ = self._runtime.run_function(self.environment, function.name, arguments, raise_on_error=True)
            return tool_result_to_str(value)

        effect, *labels = FUNCTIONS[function.name].split()
        schema = function.parameters.model_json_schema()
        return Tool(
            name=function.name,
            description=function.description,
            parameters=schema | {"additionalProperties": False},
            effect=Effect(effect),
            run=run,
            bounded=True,
            **dict.fromkeys(labels, True),
        )
