"""Tools for models without a way of their own to call them: ReAct, told and read as plain text (Yao et al. 2023).

    Thought: I have to add.
    Action: add
    Action Input: {"a": 1, "b": 2}
    Observation: 3                      <- the runtime's; sampling stops before it
    Final Answer: It is 3.

`ReActChat` is a ChatModel over any other one, which is never told of tools otherwise; so the same loop runs both.

Covered: only what the model writes is read, and strictly: one action a turn, a name on its line, the arguments behind
`Action Input:`. What begins as an action and is none is a call without a name, which loops give back. A model that
writes its own observation is stopped there, whether its server knows stop strings or not. A thought before an action is
the turn's text; one before the final answer is not a part of it and is left out.

Not covered: several calls in a turn; streaming of a call's arguments, which are told whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import Any, Literal

from toolwise.core import jsonio
from toolwise.core.chat import (
    CallDelta,
    ChatCall,
    ChatDelta,
    ChatModel,
    ChatRequest,
    Message,
    ReplyEnded,
    Role,
    StopReason,
    TextDelta,
    ToolChoice,
)
from toolwise.core.errors import BadInput
from toolwise.notation.matcher import Matcher

_THOUGHT, _ACTION, _ANSWER, _RESULT = "\nThought:", "\nAction:", "\nFinal Answer:", "\nObservation:"
_CALL = re.compile(r"[ \t]*(?P<name>[^\s]+)[ \t]*\n[ \t]*Action Input:(?P<arguments>.*)", re.DOTALL)
_RULES = """To use one of them, write exactly these lines, and nothing behind them:
Thought: what has to be done
Action: the name of the tool
Action Input: its arguments, as one JSON object
Its result is then given to you as an Observation. Once you know the answer, write:
Final Answer: the answer"""

State = Literal["text", "thought", "action", "answer", "over"]


class ReActChat:
    """A ChatModel that has `model` call tools in plain text. Raises BadInput where tools and a JSON answer are asked
    for together."""

    def __init__(self, model: ChatModel) -> None:
        self.model = model

    @property
    def name(self) -> str:
        return self.model.name

    def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
        if request.output is not None and request.tools:
            raise BadInput("A model that calls tools in plain text cannot be held to a JSON answer as well.")
        if not request.tools and not any(message.calls for message in request.messages):
            yield from self.model.reply(request)
            return
        asked = replace(
            request,
            messages=told(request),
            tools=(),
            choice=ToolChoice(),
            parallel=True,
            stop=(*request.stop, _RESULT),
        )
        reader, ended = ReActReader(f"call_{len(request.messages)}"), ReplyEnded(StopReason.END)
        turn: Any = self.model.reply(asked)
        with closing(turn) if hasattr(turn, "close") else nullcontext():
            for delta in turn:
                if isinstance(delta, TextDelta):
                    yield from reader.push(delta.text)
                elif isinstance(delta, ReplyEnded):
                    ended = delta
                if reader.over:
                    break
        yield from reader.flush()
        yield replace(ended, **reader.end(ended.stop, stops=bool(request.stop)))


class ReActReader:
    """What a model writes -> the pieces of its turn, however it is cut. `id` is that of the call, if there is one."""

    def __init__(self, id: str) -> None:
        self._id = id
        self._state: State = "text"
        self._matcher = Matcher([_THOUGHT, _ACTION, _ANSWER, _RESULT])
        self._begun = False
        self._held = ""  # a thought or an action
        self._joint: str | None = ""  # what stands before the next first word, whose own spaces do not count
        self._spaces = ""  # behind the last word
        self._said = False
        self._calls = 0

    @property
    def over(self) -> bool:
        """Whether nothing that follows is read."""
        return self._state == "over"

    def push(self, text: str) -> list[ChatDelta]:
        if text and not self._begun:  # a label may stand at the very beginning
            self._begun, text = True, f"\n{text}"
        found: list[ChatDelta] = []
        while text and not self.over:
            fed = self._matcher.feed(text)
            found += self._take(fed.text)
            text = fed.rest
            if fed.marker is not None:
                found += self._label(fed.marker)
        return found

    def flush(self) -> list[ChatDelta]:
        if self.over:
            return []
        fed = self._matcher.flush()
        found = self._take(fed.text)
        found += self._label(fed.marker) if fed.marker is not None else []
        return [*found, *self._label(_RESULT)]

    def end(self, stop: StopReason, *, stops: bool) -> dict[str, Any]:
        """How the turn ended, where the model's ended so; `stops`: whether somebody asked for stop strings."""
        if self._calls and stop is StopReason.LENGTH:
            return {"stop": stop, "broken": (0,)}
        if stop in (StopReason.LENGTH, StopReason.REFUSED):
            return {"stop": stop}
        if self._calls:
            return {"stop": StopReason.CALLS}
        return {"stop": StopReason.STOP if stop is StopReason.STOP and stops else StopReason.END}

    def _take(self, text: str) -> list[ChatDelta]:
        """Text of the state; what stands for itself is given, its spaces only between words."""
        if self._state in ("thought", "action"):
            self._held += text
            return []
        words = text.rstrip()
        if self._joint is not None:
            given, self._spaces = self._joint + words.lstrip(), ""
        else:
            given = self._spaces + words
        if not words:
            self._spaces += text if self._joint is None else ""
            return []
        self._joint, self._spaces, self._said = None, text[len(words) :], True
        return [TextDelta(given)]

    def _label(self, marker: str) -> list[ChatDelta]:
        """What a label ends, and what begins with it."""
        if self._state == "action" and marker != _RESULT:  # a second action, or a thought behind one
            self._held += marker
            return []
        if self._state == "answer" and marker != _RESULT:
            return self._take(marker)
        found: list[ChatDelta] = []
        if self._state == "action":
            found.append(self._call())
        elif self._state == "thought" and marker != _ANSWER:
            thought = self._held.strip()
            if marker == _THOUGHT:
                self._held += "\n"
                return []
            self._state = "text"
            self._join()
            found += self._take(thought)
        self._held = ""
        self._state = {_THOUGHT: "thought", _ACTION: "action", _ANSWER: "answer", _RESULT: "over"}[marker]  # type: ignore[assignment]
        if self._state == "answer":
            self._join()
        return found

    def _join(self) -> None:
        """What comes next stands on a line of its own."""
        self._joint = "\n" if self._said else ""

    def _call(self) -> CallDelta:
        self._calls += 1
        found = _CALL.fullmatch(self._held.rstrip())
        if found is None:
            return CallDelta(0, f"Action:{self._held}".rstrip(), self._id, "")
        return CallDelta(0, found["arguments"].strip(), self._id, found["name"])


def told(request: ChatRequest) -> tuple[Message, ...]:
    """The conversation as plain text, with the tools in its instructions."""
    messages: list[Message] = []
    for message in request.messages:
        match message.role:
            case Role.ASSISTANT:
                _add(messages, Role.ASSISTANT, _turn(message))
            case Role.TOOL:
                _add(messages, Role.USER, f"Observation: {message.text}")
            case role:
                _add(messages, role, message.text)
    rules = _instructions(request)
    if rules and messages and messages[0].role is Role.SYSTEM:
        messages[0] = replace(messages[0], text=f"{messages[0].text}\n\n{rules}")
    elif rules:
        messages.insert(0, Message(Role.SYSTEM, rules))
    return tuple(messages)


def _add(messages: list[Message], role: Role, text: str) -> None:
    """A message more, or more of the last one: many templates want the roles to alternate."""
    if messages and messages[-1].role is role:
        messages[-1] = replace(messages[-1], text=f"{messages[-1].text}\n{text}")
    else:
        messages.append(Message(role, text))


def _turn(message: Message) -> str:
    if not message.calls:
        return f"Final Answer: {message.text}"
    thought = [f"Thought: {message.text}"] if message.text else []
    return "\n".join([*thought, *map(_action, message.calls)])


def _action(call: ChatCall) -> str:
    return f"Action: {call.name}\nAction Input: {call.arguments.strip() or '{}'}" if call.name else call.arguments


def _instructions(request: ChatRequest) -> str:
    """What the model is told of tools; nothing where it may call none."""
    tools, choice = request.callable, request.choice
    if not tools:
        return ""
    lines = [f"{t.name}: {jsonio.one_line(t.description)} Arguments: {jsonio.compact(t.parameters)}" for t in tools]
    now = "\nUse a tool now, before you answer." if choice.forced else ""
    return "You have these tools:\n" + "\n".join(lines) + f"\n\n{_RULES}{now}"
