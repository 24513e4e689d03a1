"""A chat model held to what was asked of it: what is given on fits the request, whether masks see to that or not.

    request -> model -> turn -> is it one that was asked for? -> the turn
                          ^                   | no, once
                          +---- what was wrong with it

Of another server's model nothing is taken on trust. Covered: calls where none may be made, or of other tools than may
be called; arguments that do not fit; a required call that does not come; more calls than one where one may be made (the
first is given on); an answer that is not the JSON that was asked for. A local model's masks see to all of that, but for
what they leave open (`unmasked`): calls of the tools whose schemas lost something, and an answer whose schema did, are
looked at here, and where nothing was lost every piece goes straight on.

The model is told once what was wrong. Then the turn is an error, but for a call that nobody wants strict: whoever runs
it says what is wrong with it. Text comes as it is written; calls once they are known to fit. What was cut off or
declined is given on as it is, for nobody runs it.

Not covered: text that was given before a turn turned out wrong stays given, and the second try's follows it on a line
of its own; JSON that another server was asked for is told as it comes, and is an error at its end. A turn of which a
call was given on before another one turned out wrong is not tried again.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal

from toolwise.core import jsonio
from toolwise.core.chat import (
    CallDelta,
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
from toolwise.decode.unmasked import downgrades
from toolwise.notation.grammar.grammar import Downgrade

_ANOTHER = "Error (in_progress): this call was right and was not run, for another one of the turn was wrong: repeat it."
Wrong = Mapping[int, ToolwiseError]


@dataclass(frozen=True, slots=True)
class _Watch:
    """What is looked at before it is given on: calls of these tools, or (None) all of them; the answer's text."""

    validators: Mapping[str, Validator]
    calls: frozenset[str] | None
    text: bool


class Held:
    """A ChatModel over another one. `strict`: whose arguments are held to their schema, as `ChatSettings` has it; a
    model that masks knows that by itself."""

    def __init__(
        self, model: ChatModel, strict: Literal["always", "asked", "never"] = "asked", limits: Limits = LIMITS
    ) -> None:
        self.model = model
        self._strict = strict
        self._limits = limits

    @property
    def name(self) -> str:
        return self.model.name

    def __getattr__(self, name: str) -> Any:
        """Whatever else the model can do, such as to count the tokens of a request."""
        return getattr(self.model, name)

    def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
        """Raises ModelUnavailable for a second turn that is not what was asked for, BadInput for a strict tool whose
        schema nobody could hold anything to, and what the model raises."""
        lost = downgrades(self.model, request)
        if lost is not None and not lost:
            yield from self.model.reply(request)
            return
        watch = self._watch(request, lost)
        asked, usage, wrote = request, TokenUsage(), False
        for last in (False, True):
            reply, given = yield from self._turn(asked, watch, wrote=wrote)
            wrote, usage = bool(reply.text), usage + reply.usage
            if not request.parallel and reply.stop is StopReason.CALLS:
                reply = replace(reply, calls=reply.calls[:1])
            wrong = _wrong(request, reply, watch.validators)
            unfit = self._unfit(request.output, reply)
            bad = [str(error) for n, error in wrong.items() if _strictly(error, reply.calls[n], request)]
            told = _told(request, reply, wrong, unfit if watch.text else "")
            if unfit and not (watch.text and not last):
                raise ModelUnavailable(f"The model's answer is not the JSON that was asked for: {unfit}.")
            if not told or (wrong and not bad and (last or given)):
                yield from _rest(replace(reply, text=reply.text if watch.text else "", usage=usage), given)
                return
            if given:
                break
            asked = replace(asked, messages=(*request.messages, *told))
        why = bad[0].rstrip(".") if bad else "a call was required, and none came"
        raise ModelUnavailable(f"The model does not do what was asked of it: {why}.")

    def _turn(
        self, request: ChatRequest, watch: _Watch, *, wrote: bool
    ) -> Generator[ChatDelta, None, tuple[ChatReply, int]]:
        """The whole turn, and how many calls of it were given on as they came: those before the first watched one."""
        deltas: list[ChatDelta] = []
        given: set[int] = set()
        holds = watch.calls is None
        turn: Any = self.model.reply(request)
        with closing(turn) if hasattr(turn, "close") else nullcontext():
            for delta in turn:
                deltas.append(delta)
                if isinstance(delta, TextDelta) and delta.text and not watch.text:
                    yield replace(delta, text="\n" + delta.text if wrote else delta.text)
                    wrote = False
                elif isinstance(delta, CallDelta):
                    holds = holds or (delta.index not in given and delta.name in (watch.calls or ()))
                    if not holds or delta.index in given:
                        given.add(delta.index)
                        yield delta
        return gathered(deltas), len(given)

    def _watch(self, request: ChatRequest, lost: Sequence[Downgrade] | None) -> _Watch:
        """Raises BadInput for a strict tool that nothing can be held to."""
        names = None if lost is None else frozenset(one.tool for one in lost if one.tool)
        text = request.output is not None and request.output.strict and any(not one.tool for one in lost or ())
        found: dict[str, Validator] = {}
        for tool in request.callable:
            if not (self._asks(tool) if names is None else tool.name in names):
                continue
            try:
                found[tool.name] = Validator(tool.parameters, self._limits)
            except BadInput as error:
                if tool.strict:
                    raise BadInput(f"The tool {quote(tool.name)} cannot be strict here: {error}", "tools") from None
        return _Watch(found, names, text)

    def _asks(self, tool: ToolSpec) -> bool:
        return self._strict == "always" or (self._strict == "asked" and tool.strict)

    def _unfit(self, output: OutputSchema | None, reply: ChatReply) -> str:
        """Why the answer is not the JSON that was asked for, if it is to be JSON and is not that."""
        if output is None or reply.stop is not StopReason.END:
            return ""
        try:
            value = jsonio.loads(reply.text, replace(self._limits, string_bytes=self._limits.chat_bytes))
            if not isinstance(value, dict):
                raise InvalidArguments("it is no object")
            if output.schema is not None and output.strict:
                Validator(output.schema, self._limits).validate(value)
        except (ModelFault, BadInput) as error:
            return str(error).rstrip(".")
        return ""


def _rest(reply: ChatReply, given: int) -> Iterator[ChatDelta]:
    """The pieces of a turn but for the calls that were given on."""
    return (one for one in pieces(reply) if not isinstance(one, CallDelta) or one.index >= given)


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


def _told(request: ChatRequest, reply: ChatReply, wrong: Wrong, unfit: str) -> tuple[Message, ...]:
    """What to tell the model behind the conversation, if the turn is not what was asked for."""
    if wrong:
        results = [
            Message(Role.TOOL, f"Error ({wrong[n].code}): {wrong[n]}" if n in wrong else _ANOTHER, (), call.id, True)
            for n, call in enumerate(reply.calls)
        ]
        return (reply.message, *results)
    if unfit:
        return (reply.message, Message(Role.USER, f"This is not the JSON that was asked for: {unfit}. Write it anew."))
    if request.choice.forced and reply.stop is StopReason.END:
        which = " or ".join(tool.name for tool in request.callable)
        said = (reply.message,) if reply.text else ()
        return (*said, Message(Role.USER, f"A call is required now: call {which}."))
    return ()
