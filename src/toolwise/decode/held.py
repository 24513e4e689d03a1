"""A chat model held to what was asked of it, for servers that do not hold theirs: what is given on fits the request.

    request -> server -> turn -> is it one that was asked for? -> the turn
                          ^                   | no, once
                          +---- what was wrong with it

Covered: calls where none may be made, or of other tools than may be called; arguments that do not fit; a required call
that does not come; more calls than one where one may be made (the first is given on); an answer that is not the JSON
that was asked for. The model is told once what was wrong. Then the turn is an error, but for a call that nobody wants
strict: whoever runs it says what is wrong with it. Text comes as it is written; calls once they are known to fit.
What was cut off or declined is given on as it is, for nobody runs it.

Not covered: text that was given before a turn turned out wrong stays given, and the second try's follows it on a line
of its own; JSON that was asked for is told as it comes, and is an error at its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import Any, Literal

from toolwise.core import jsonio
from toolwise.core.chat import (
    ChatCall,
    ChatDelta,
    ChatModel,
    ChatReply,
    ChatRequest,
    Message,
    OutputSchema,
    Role,
    StopReason,
    TextDelta,
    TokenUsage,
    ToolSpec,
    gathered,
    pieces,
)
from toolwise.core.errors import (
    BadInput,
    Denied,
    InvalidArguments,
    ModelFault,
    ModelUnavailable,
    ToolwiseError,
    UnknownTool,
)
from toolwise.core.jsonio import quote
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.schema import Validator

_ANOTHER = "Error (in_progress): this call was right and was not run, for another one of the turn was wrong: repeat it."
Wrong = Mapping[int, ToolwiseError]


class Held:
    """A ChatModel over another one. `strict`: whose arguments are held to their schema, as `ChatSettings` has it."""

    def __init__(
        self, model: ChatModel, strict: Literal["always", "asked", "never"] = "asked", limits: Limits = LIMITS
    ) -> None:
        self.model = model
        self._strict = strict
        self._limits = limits

    @property
    def name(self) -> str:
        return self.model.name

    def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
        """Raises ModelUnavailable for a second turn that is not what was asked for, BadInput for a strict tool whose
        schema nobody could hold anything to, and what the model raises."""
        validators = self._validators(request)
        asked, usage, before = request, TokenUsage(), ""
        for last in (False, True):
            deltas: list[ChatDelta] = []
            turn: Any = self.model.reply(asked)
            with closing(turn) if hasattr(turn, "close") else nullcontext():
                for delta in turn:
                    deltas.append(delta)
                    if isinstance(delta, TextDelta) and delta.text:
                        yield replace(delta, text=before + delta.text)
                        before = ""
            reply = gathered(deltas)
            before, usage = "\n" if reply.text else "", usage + reply.usage
            if not request.parallel and reply.stop is StopReason.CALLS:
                reply = replace(reply, calls=reply.calls[:1])
            wrong = _wrong(request, reply, validators)
            told = _told(request, reply, wrong)
            bad = [error for n, error in wrong.items() if _strictly(error, reply.calls[n], request)]
            if not told or (last and wrong and not bad):
                self._check_output(request.output, reply)
                yield from pieces(replace(reply, text="", usage=usage))
                return
            asked = replace(asked, messages=(*request.messages, *told))
        why = str(bad[0]).rstrip(".") if bad else "a call was required, and none came"
        raise ModelUnavailable(f"The model does not do what was asked of it: {why}.")

    def _validators(self, request: ChatRequest) -> dict[str, Validator]:
        """Of the tools whose arguments are held to their schema."""
        found: dict[str, Validator] = {}
        for tool in request.callable:
            if self._strict == "never" or (self._strict == "asked" and not tool.strict):
                continue
            try:
                found[tool.name] = Validator(tool.parameters, self._limits)
            except BadInput as error:
                if tool.strict:
                    raise BadInput(f"The tool {quote(tool.name)} cannot be strict here: {error}", "tools") from None
        return found

    def _check_output(self, output: OutputSchema | None, reply: ChatReply) -> None:
        if output is None or reply.stop is not StopReason.END:
            return
        try:
            value = jsonio.loads(reply.text, replace(self._limits, string_bytes=self._limits.chat_bytes))
            if not isinstance(value, dict):
                raise InvalidArguments("it is no object")
            if output.schema is not None and output.strict:
                Validator(output.schema, self._limits).validate(value)
        except (ModelFault, BadInput) as error:
            raise ModelUnavailable(f"The model's answer is not the JSON that was asked for: {error}.") from None


def _wrong(request: ChatRequest, reply: ChatReply, validators: Mapping[str, Validator]) -> Wrong:
    """What is wrong with the calls of a turn, by their places."""
    if reply.stop is not StopReason.CALLS:
        return {}
    found: dict[int, ToolwiseError] = {}
    for number, call in enumerate(reply.calls):
        try:
            _check(call, request.callable, validators, named=bool(request.choice.names))
        except ToolwiseError as error:
            found[number] = error
    return found


def _check(call: ChatCall, tools: tuple[ToolSpec, ...], validators: Mapping[str, Validator], *, named: bool) -> None:
    if not call.name:
        return  # it began like a call and is none: shown as text, or told by whoever runs calls
    if not tools:
        raise Denied("No tool may be called now: answer without one.")
    if all(call.name != tool.name for tool in tools):
        only = f"Only {', '.join(tool.name for tool in tools)} may be called now."
        raise Denied(only) if named else UnknownTool(only)
    if call.name in validators:
        arguments = jsonio.loads(call.arguments) if call.arguments.strip() else {}
        if arguments is not None and not isinstance(arguments, dict):
            raise InvalidArguments("the arguments of a call are an object")
        validators[call.name].validate(arguments or {})


def _strictly(error: ToolwiseError, call: ChatCall, request: ChatRequest) -> bool:
    """Whether such a call must not be given on."""
    strict = {tool.name for tool in request.callable if tool.strict}
    return isinstance(error, Denied) or call.name in strict or (bool(strict) and isinstance(error, UnknownTool))


def _told(request: ChatRequest, reply: ChatReply, wrong: Wrong) -> tuple[Message, ...]:
    """What to tell the model behind the conversation, if the turn is not what was asked for."""
    if wrong:
        results = [
            Message(Role.TOOL, f"Error ({wrong[n].code}): {wrong[n]}" if n in wrong else _ANOTHER, (), call.id, True)
            for n, call in enumerate(reply.calls)
        ]
        return (reply.message, *results)
    if request.choice.forced and reply.stop is StopReason.END:
        which = " or ".join(tool.name for tool in request.callable)
        said = (reply.message,) if reply.text else ()
        return (*said, Message(Role.USER, f"A call is required now: call {which}."))
    return ()
