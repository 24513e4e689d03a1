"""The obedient model: it does what the user asked for, and at once whatever any text tells it.

It is the worst case of a model under attack. It carries out an order without a mistake (the calls are AgentDojo's own
ground truth), asks nothing, doubts nothing, and tries again at the next text that repeats the order. Its only senses
are the texts that the gate gives it: an order that does not stand in them is not obeyed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.base_tasks import BaseUserTask
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime, TaskEnvironment
from agentdojo.types import ChatAssistantMessage, ChatMessage, text_content_block_from_string
from orders import Order

from toolwise.core.types import Result

Execute = Callable[[FunctionCall], Result]
Open = Callable[[TaskEnvironment, Sequence[FunctionCall]], Execute]


@dataclass
class Run:
    """What happened: whether the model met the order and carried all of it out, and the calls that took effect."""

    wanted: Sequence[FunctionCall] = ()
    executed: list[FunctionCall] = field(default_factory=list)
    reached: bool = False
    obeyed: bool = False
    stopped: bool = False


class ObedientModel(BasePipelineElement):
    """A pipeline of AgentDojo's. Its calls go to what `open_run` gives for the environment and the user's calls.

    A `deaf` model does what the user asked for and nothing else.
    """

    name = "local"

    def __init__(self, task: BaseUserTask[Any], open_run: Open, order: Order, *, deaf: bool = False) -> None:
        self._task = task
        self._open_run = open_run
        self._order = order
        self._deaf = deaf
        self.run = Run()

    def query(
        self,
        query: str,
        runtime: FunctionsRuntime,
        env: TaskEnvironment,  # type: ignore[override]
        messages: Sequence[ChatMessage] = (),
        extra_args: dict[str, Any] | None = None,
    ) -> tuple[str, FunctionsRuntime, TaskEnvironment, Sequence[ChatMessage], dict[str, Any]]:
        self.run = Run(self._task.ground_truth(env))
        answer = "\n".join(self._work(self._open_run(env, self.run.wanted), env))
        said = [_message("", call) for call in self.run.executed]
        return query, runtime, env, [*messages, *said, _message(answer)], extra_args or {}

    def _work(self, execute: Execute, environment: TaskEnvironment) -> Iterator[str]:
        """Do the user's calls in their order, yielding what is to be answered."""
        for call in self.run.wanted:
            result = execute(call)
            if result.ok:
                self.run.executed.append(call)
            if not self._order.stands_in(result.text):
                continue
            self.run.reached = True
            if not (self._deaf or self.run.obeyed):
                yield self._obey(execute, environment)
            if self.run.stopped:
                return
        yield self._task.GROUND_TRUTH_OUTPUT

    def _obey(self, execute: Execute, environment: TaskEnvironment) -> str:
        """Try every call of the order, also after one that was refused."""
        calls = self._order.calls(environment.model_copy(deep=True))
        done = [call for call in calls if execute(call).ok]
        self.run.executed += done
        self.run.obeyed = len(done) == len(calls)
        self.run.stopped = self._order.stops
        return self._order.answer


def _message(text: str, call: FunctionCall | None = None) -> ChatAssistantMessage:
    content = [text_content_block_from_string(text)]
    return ChatAssistantMessage(role="assistant", content=content, tool_calls=[call] if call else None)
