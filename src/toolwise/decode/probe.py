"""What a model's server honours of what it is asked, found out with a few tiny requests when it is started.

Whatever is found, the loop and the gate hold the model to it afterwards: a probe says what to expect, and what will
cost a second try. `unknown` is an honest answer: a model that never calls shows nothing about its server.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Literal

from toolwise.core import jsonio
from toolwise.core.chat import (
    ChatCall,
    ChatModel,
    ChatReply,
    ChatRequest,
    Message,
    Role,
    StopReason,
    ToolChoice,
    ToolSpec,
    gathered,
)
from toolwise.core.errors import BadInput, ModelFault
from toolwise.core.schema import Validator

Verdict = Literal["yes", "no", "unknown"]

_TOKENS = 96  # of each answer: a call of these tools takes thirty
_PING = ToolSpec("ping", "Says that somebody is there.", {"type": "object", "properties": {}})
_CODE = ToolSpec(
    "set_code",
    "Sets the code.",
    {
        "type": "object",
        "properties": {"code": {"type": "string", "enum": ["zq-7", "zq-9"]}},
        "required": ["code"],
        "additionalProperties": False,
    },
    strict=True,
)
_REQUIRED = ToolChoice("required")


@dataclass(frozen=True, slots=True)
class Honours:
    """Of a server: whether a required call comes, none comes where none may, at most one where one may; whether strict
    arguments fit, and whether a result that is marked as failed is taken."""

    forced: Verdict
    none: Verdict
    one_call: Verdict
    strict: Verdict
    failed_results: Verdict

    def words(self) -> list[str]:
        """One line for each, for whoever starts it."""
        return [f"{_SAID[one.name]}: {_MEANS[getattr(self, one.name)]}" for one in fields(self)]


_SAID = {
    "forced": "a call that is required",
    "none": "no calls where none may be made",
    "one_call": "one call a turn",
    "strict": "arguments held to their schema",
    "failed_results": "results marked as failed",
}
_MEANS = {"yes": "honoured", "no": "not honoured, and held to it here", "unknown": "could not be told"}


def probe(model: ChatModel) -> Honours:
    """Ask at most six tiny questions. Raises what the model raises where it does not answer at all."""
    ping = "Call the tool ping now:\ncall ping {}"
    twice = f"{ping}\ncall ping {{}}"

    def forced() -> Verdict:
        reply = _asked(model, "Say hello.", _PING, choice=_REQUIRED)
        return "yes" if _calls(reply) else "unknown" if reply.stop is StopReason.LENGTH else "no"

    def none() -> Verdict:
        return "no" if _calls(_asked(model, ping, _PING, choice=ToolChoice("none"))) else "yes" if calls else "unknown"

    def one_call() -> Verdict:
        made = _calls(_asked(model, twice, _PING, parallel=False))
        return "no" if made > 1 else "yes" if made and calls > 1 else "unknown"

    def strict() -> Verdict:
        reply = _asked(model, 'call set_code {"code": "hello", "extra": 1}', _CODE, choice=_REQUIRED)
        return _fits(reply.calls[0]) if _calls(reply) else "unknown"

    def failed_results() -> Verdict:
        made = Message(Role.ASSISTANT, "", (ChatCall("call_1", _PING.name, "{}"),))
        failed = Message(Role.TOOL, "Error (tool_failed): nobody is there", call_id="call_1", is_error=True)
        _asked(model, ping, _PING, since=(made, failed))
        return "yes"

    calls = _calls(_asked(model, twice, _PING))  # the server is there; what it says now is compared with below
    return Honours(*(_unless_refused(one) for one in (forced, none, one_call, strict, failed_results)))


def _asked(
    model: ChatModel,
    text: str,
    tool: ToolSpec,
    *,
    choice: ToolChoice = ToolChoice(),  # noqa: B008  frozen
    parallel: bool = True,
    since: tuple[Message, ...] = (),
) -> ChatReply:
    messages = (Message(Role.USER, text), *since)
    request = ChatRequest(messages, model.name, (tool,), choice, parallel, max_tokens=_TOKENS, temperature=0.0)
    return gathered(model.reply(request))


def _calls(reply: ChatReply) -> int:
    return len(reply.calls) if reply.stop is StopReason.CALLS else 0


def _fits(call: ChatCall) -> Verdict:
    try:
        arguments = jsonio.loads(call.arguments)
        Validator(_CODE.parameters).validate(arguments if isinstance(arguments, dict) else {})
    except ModelFault:
        return "no"
    return "yes"


def _unless_refused(ask: Callable[[], Verdict]) -> Verdict:
    """A server that refuses such a request does not honour it."""
    try:
        return ask()
    except BadInput:
        return "no"
