"""One class a framework: how it runs one call of one typed function, up to the message that the model would read.

Each is made with a typed function and gives `call(id, arguments)`, where the arguments are the JSON text that a model
wrote; `entry` says which public entry points that is. No model, no network, tracing off, all else as it comes.
`seconds` is a deadline, for those that have one. Not covered: the frameworks' loops around a call, which do more
(events, histories, hooks).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar, Protocol

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

import agents
import smolagents
from agents.tool import invoke_function_tool
from agents.tool_context import ToolContext
from agno.models.message import Message
from agno.tools.function import Function as AgnoFunction
from agno.utils.functions import get_function_call
from langchain_core.messages import AIMessage
from langchain_core.output_parsers.openai_tools import parse_tool_call
from langchain_core.tools import tool as langchain_tool
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime
from openai.types.responses import ResponseFunctionToolCall
from pydantic_ai import FunctionToolset, RunContext, RunUsage
from pydantic_ai.exceptions import ToolRetryError
from pydantic_ai.messages import ToolCallPart, ToolReturnPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.tool_manager import ToolManager
from smolagents.memory import ActionStep
from smolagents.models import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
    parse_json_if_needed,
)
from smolagents.monitoring import Timing

from toolwise import CallContext, CedarPolicy, Effect, Gate, Principal, Registry, tool
from toolwise.core.limits import LIMITS
from toolwise.core.types import WrittenCall
from toolwise.gate.budget import Budgets, Cap
from toolwise.gate.state import open_state

Function = Callable[..., Any]


class ToolPath(Protocol):
    """One framework's way of running a call of the function that it was made with."""

    name: ClassVar[str]
    entry: ClassVar[str]
    has_deadline: ClassVar[bool]

    async def call(self, id: str, arguments: str) -> str:
        """The text of the result's message; what the framework raises is raised."""

    def close(self) -> None:
        """Let go of files and processes."""


class Toolwise:
    name = "toolwise"
    entry = "Gate.execute(WrittenCall), a bounded function"
    bounded = True
    has_deadline = False  # of a bounded function its author says that it ends by itself

    def __init__(self, function: Function, folder: Path, seconds: float = LIMITS.call_seconds) -> None:
        self.function = function.__name__
        made = tool(effect=Effect.PURE, bounded=self.bounded)(function)
        policy = CedarPolicy.from_text('permit (principal == User::"ann", action == Action::"call", resource);')
        self.state = open_state(folder / f"{type(self).__name__}-{os.urandom(4).hex()}.db")
        self.gate = Gate(
            Registry([made]),
            policy,
            self.state,
            budgets=Budgets(run=Cap(calls=10**9)),
            limits=replace(LIMITS, call_seconds=seconds),
        )
        self.context = CallContext(Principal("ann"), "run")

    async def call(self, id: str, arguments: str) -> str:
        text = f'{{"name": "{self.function}", "arguments": {arguments}}}'
        return self.gate.execute(WrittenCall(id, text, "json"), self.context).text

    def close(self) -> None:
        self.gate.close()
        self.state.close()


class ToolwiseIsolated(Toolwise):
    name = "toolwise, isolated"
    entry = "Gate.execute(WrittenCall), any function, in a process of its own"
    bounded = False
    has_deadline = True


class Framework:
    has_deadline = False

    def close(self) -> None:
        pass


class PydanticAI(Framework):
    name = "pydantic-ai"
    has_deadline = True
    entry = "ToolManager.handle_call(ToolCallPart), ToolReturnPart"

    def __init__(self, function: Function, folder: Path, seconds: float | None = None) -> None:
        self.function = function.__name__
        self.toolset = FunctionToolset[None]([function], timeout=seconds)
        self.manager: ToolManager[None] | None = None

    async def call(self, id: str, arguments: str) -> str:
        if self.manager is None:  # an agent makes one for every step of a run
            context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
            self.manager = await ToolManager(self.toolset, default_max_retries=10**9).for_run_step(context)
        try:
            value = await self.manager.handle_call(ToolCallPart(self.function, arguments, id))
        except ToolRetryError as error:
            return error.tool_retry.model_response()
        return ToolReturnPart(self.function, value, id).model_response_str()


class PydanticAIAsync(PydanticAI):
    name = "pydantic-ai, async function"

    def __init__(self, function: Function, folder: Path, seconds: float | None = None) -> None:
        super().__init__(as_coroutine(function), folder, seconds)


class LangChain(Framework):
    name = "langchain-core"
    entry = "parse_tool_call, BaseTool.invoke(ToolCall)"

    def __init__(self, function: Function, folder: Path, seconds: float | None = None) -> None:
        self.function = function.__name__
        self.tool = langchain_tool(function)

    async def call(self, id: str, arguments: str) -> str:
        parsed = parse_tool_call({"id": id, "function": {"name": self.function, "arguments": arguments}})
        return str(self.tool.invoke({**parsed, "type": "tool_call"}).content)


class LangGraph(LangChain):
    name = "langgraph"
    entry = "parse_tool_call, AIMessage, ToolNode.invoke"

    def __init__(self, function: Function, folder: Path, seconds: float | None = None) -> None:
        super().__init__(function, folder)
        self.node = ToolNode([self.tool])
        self.config = {"configurable": {"__pregel_runtime": Runtime()}}  # what a graph gives its nodes

    async def call(self, id: str, arguments: str) -> str:
        parsed = parse_tool_call({"id": id, "function": {"name": self.function, "arguments": arguments}})
        given = {"messages": [AIMessage("", tool_calls=[parsed])]}
        return str(self.node.invoke(given, self.config)["messages"][-1].content)


class OpenAIAgents(Framework):
    name = "openai-agents"
    has_deadline = True
    entry = "invoke_function_tool(FunctionTool), ItemHelpers.tool_call_output_item"

    def __init__(self, function: Function, folder: Path, seconds: float | None = None) -> None:
        self.function = function.__name__
        self.tool = agents.function_tool(function, timeout=seconds)

    async def call(self, id: str, arguments: str) -> str:
        made = ResponseFunctionToolCall(arguments=arguments, call_id=id, name=self.function, type="function_call")
        context = ToolContext(None, tool_name=made.name, tool_call_id=id, tool_arguments=arguments, tool_call=made)
        output = await invoke_function_tool(function_tool=self.tool, context=context, arguments=arguments)
        return str(agents.ItemHelpers.tool_call_output_item(made, output)["output"])


class OpenAIAgentsAsync(OpenAIAgents):
    name = "openai-agents, async function"

    def __init__(self, function: Function, folder: Path, seconds: float | None = None) -> None:
        super().__init__(as_coroutine(function), folder, seconds)


class Smolagents(Framework):
    name = "smolagents"
    entry = "parse_json_if_needed, ToolCallingAgent.process_tool_calls"

    def __init__(self, function: Function, folder: Path, seconds: float | None = None) -> None:
        self.function = function.__name__
        made = smolagents.tool(function)
        self.agent = smolagents.ToolCallingAgent([made], smolagents.Model(), verbosity_level=smolagents.LogLevel.OFF)

    async def call(self, id: str, arguments: str) -> str:
        written = ChatMessageToolCallFunction(parse_json_if_needed(arguments), self.function)
        message = ChatMessage(MessageRole.ASSISTANT, tool_calls=[ChatMessageToolCall(written, id, "function")])
        *_, output = self.agent.process_tool_calls(message, ActionStep(1, Timing(0.0)))
        return str(output.observation)


class Agno(Framework):
    name = "agno"
    entry = "get_function_call, FunctionCall.execute, Message"

    def __init__(self, function: Function, folder: Path, seconds: float | None = None) -> None:
        self.function = function.__name__
        made = AgnoFunction.from_callable(function)
        made.process_entrypoint()
        self.functions = {self.function: made}

    async def call(self, id: str, arguments: str) -> str:
        call = get_function_call(self.function, arguments, id, self.functions)
        done = call.execute()
        text = str(call.result) if done.status == "success" else call.error
        return str(Message(role="tool", content=text, tool_call_id=id, tool_name=self.function).content)


def as_coroutine(function: Function) -> Function:
    """The same function as a coroutine function: some frameworks hand every other function to a thread."""

    @wraps(function)
    async def run(*given: Any, **named: Any) -> Any:
        return function(*given, **named)

    return run


PATHS = (
    *(Toolwise, ToolwiseIsolated, PydanticAI, PydanticAIAsync, LangChain, LangGraph),
    *(OpenAIAgents, OpenAIAgentsAsync, Smolagents, Agno),
)
