"""A deterministic chat model for tests, docs and benchmarks: the conversation's last words say what it does.

Each line of the last user's message is an order; what is no order is said back.

    say Hello.                  says it
    call add {"a": 1, "b": 2}   calls a tool; several such lines are calls of one turn
    broken add {"a": 1          writes a call that never ends, and is cut off there
    garbled add(1, 2            writes something that began like a call and is none
    cut                         is cut off after what it said
    refuse                      declines
    fail                        fails after what it said
    long 100                    says a hundred words, each a piece of its own
    pace 0.01                   waits so many seconds before each of its pieces

Once the results of its calls are there it says what they were, in their order. Where a call is forced it calls the
first tool that may be called, with the smallest arguments that fit, unless an order says more; where calls are not
allowed it makes none. Of several calls it makes the first where one a turn is allowed. Where JSON is wanted it writes
the smallest value that fits. A word is a token.

Not covered: sampling; it takes temperature and seed, and is the same whatever they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolwise.core import jsonio
from toolwise.core.chat import (
    CallDelta,
    ChatDelta,
    ChatRequest,
    Message,
    ReplyEnded,
    Role,
    StopReason,
    TextDelta,
    TokenUsage,
    ToolSpec,
)
from toolwise.core.clock import Clock, SystemClock
from toolwise.core.errors import ModelUnavailable

_CLOCK = SystemClock()
_DIGITS = 9  # of a number of words
_SLOWEST = 10.0  # seconds before a piece, in which nobody can end the reply
_MOST = 64  # items of a list and characters of a string that a schema may want


@dataclass(slots=True)
class _Plan:
    """What one turn will be. A call is a name and its arguments; `broken` and `garbled` ones come last."""

    texts: list[Iterable[str]] = field(default_factory=list)  # each as its words
    calls: list[tuple[str, str]] = field(default_factory=list)
    broken: tuple[str, str] | None = None
    stop: StopReason = StopReason.END
    pace: float = 0.0
    fails: bool = False


class ScriptedChat:
    """A ChatModel that does as it is told."""

    def __init__(self, name: str = "scripted", clock: Clock = _CLOCK) -> None:
        self.name = name
        self._clock = clock

    def prompt_tokens(self, request: ChatRequest) -> int:
        return sum(len(message.text.split()) for message in request.messages)

    def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
        plan = _planned(request)
        prompt = self.prompt_tokens(request)
        most, used = request.max_tokens or 1_000_000, 0
        for piece in _pieces(plan):
            if used >= most:
                plan.stop, plan.broken, plan.calls = StopReason.LENGTH, None, []
                break
            if plan.pace:
                self._clock.sleep(plan.pace)
            used += 1
            yield TextDelta(piece)
        if plan.fails:
            raise ModelUnavailable("The model was told to fail.")
        calls = [*plan.calls, *([plan.broken] if plan.broken else [])]
        for index, (name, arguments) in enumerate(calls):
            yield CallDelta(index, id=_id(request, index), name=name)
            half = len(arguments) // 2
            for part in (arguments[:half], arguments[half:]):
                used += 1
                if part:
                    yield CallDelta(index, part)
        stop = StopReason.CALLS if plan.calls and plan.stop is StopReason.END else plan.stop
        broken = (len(calls) - 1,) if plan.broken else ()
        yield ReplyEnded(stop, TokenUsage(prompt, used), broken)


def _planned(request: ChatRequest) -> _Plan:
    last = request.messages[-1] if request.messages else Message(Role.USER)
    plan = _Plan()
    if last.role is Role.TOOL:
        plan.texts.append(_told(request.messages).split(" "))
    else:
        for line in last.text.splitlines() or [""]:
            _order(plan, line.strip())
    if request.output is not None:
        plan.texts = [jsonio.dumps(smallest(request.output.schema or {"type": "object"})).split(" ")]
    callable_ = request.callable
    if not callable_:
        plan.calls = []
    if request.choice.forced and not plan.calls and plan.broken is None and callable_ and plan.stop is StopReason.END:
        plan.calls = [(callable_[0].name, jsonio.dumps(smallest(callable_[0].parameters)))]
    if request.choice.names:
        plan.calls = [_within(call, callable_) for call in plan.calls]
    if not request.parallel:
        plan.calls = plan.calls[:1]
    return plan


def _order(plan: _Plan, line: str) -> None:
    """Do what one line says."""
    word, _, rest = line.partition(" ")
    match word:
        case "say":
            plan.texts.append(rest.split(" "))
        case "call" | "broken":
            name, _, arguments = rest.partition(" ")
            if word == "call":
                plan.calls.append((name, arguments.strip() or "{}"))
            else:
                plan.broken, plan.stop = (name, arguments.strip()), StopReason.LENGTH
        case "garbled":
            plan.broken = ("", rest)
        case "cut":
            plan.stop = StopReason.LENGTH
        case "refuse":
            plan.stop = StopReason.REFUSED
        case "fail":
            plan.fails = True
        case "long" if rest.isdecimal() and len(rest) <= _DIGITS:
            plan.texts.append(f"word{number}" for number in range(int(rest)))  # made one by one: a billion take no room
        case "pace" if rest.replace(".", "", 1).isdecimal():
            plan.pace = min(float(rest), _SLOWEST)
        case _:
            plan.texts.append(f"You said: {line}".split(" "))


def _pieces(plan: _Plan) -> Iterator[str]:
    """The words of the texts, each with the space or the line's end before it."""
    for number, words in enumerate(plan.texts):
        for place, word in enumerate(words):
            yield (" " if place else "\n" if number else "") + word


def _told(messages: tuple[Message, ...]) -> str:
    """The results at the end, in their order."""
    told: list[str] = []
    for message in reversed(messages):
        if message.role is not Role.TOOL:
            break
        told.insert(0, message.text)
    return f"The results: {'; '.join(told)}"


def _within(call: tuple[str, str], allowed: tuple[ToolSpec, ...]) -> tuple[str, str]:
    """The call, or one of the first tool where another one was wanted than may be called."""
    if any(tool.name == call[0] for tool in allowed):
        return call
    return allowed[0].name, jsonio.dumps(smallest(allowed[0].parameters))


def _id(request: ChatRequest, index: int) -> str:
    """Unique within the conversation, and the same for the same one."""
    return f"call_{len(request.messages)}_{index}"


def smallest(schema: Any, root: Mapping[str, Any] | None = None, depth: int = 0) -> Any:
    """A small value that fits the schema, for schemas that say their types and are some; None where nothing is said."""
    if not isinstance(schema, Mapping) or depth > 16:
        return None
    root = schema if root is None else root
    match schema:
        case {"const": value} | {"enum": [value, *_]} | {"default": value}:
            return value
        case {"$ref": str(ref)}:
            target: Any = root
            for part in ref.removeprefix("#").strip("/").split("/"):
                target = target.get(part, {}) if isinstance(target, Mapping) else {}
            return smallest(target, root, depth + 1)
        case {"anyOf": [first, *_]} | {"oneOf": [first, *_]}:
            return smallest(first, root, depth + 1)
        case {"type": [str(kind), *_]} | {"type": str(kind)}:
            return _of_kind(kind, schema, root, depth)
    return None


def _of_kind(kind: str, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    match kind, schema:
        case "object", {"required": [*names], "properties": dict(parts)}:
            return {name: smallest(parts.get(name), root, depth + 1) for name in names if isinstance(name, str)}
        case "object", _:
            return {}
        case "array", {"items": items, "minItems": int(least)}:
            return [smallest(items, root, depth + 1)] * min(least, _MOST)
        case "string", {"minLength": int(least)}:
            return "x" * min(least, _MOST)
        case (("integer" | "number"), {"minimum": int(least) | float(least)}):
            return least
    return {"array": [], "string": "", "integer": 0, "number": 0, "boolean": False}.get(kind)
