"""All that a run of an agent is, between two of its steps: a value that is kept as JSON and goes on anywhere.

Covered: reading is strict. A state of another version or of somebody else, a field that is missing, unknown or of
another type is refused by name. What waits in it is bound at the gate: a call that was changed in the file meanwhile
needs a new approval, and one that ran under the same id is a conflict.

Not covered: a file that somebody else may write; what the conversation in it says is then theirs.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from toolwise.core import jsonio
from toolwise.core.chat import ChatCall, Message, Role, StopReason, TokenUsage, ToolChoice
from toolwise.core.errors import BadInput, Interrupted, ToolwiseError
from toolwise.core.jsonio import quote
from toolwise.core.limits import LIMITS, Limits

VERSION = 1
_FREE, _NONE = ToolChoice(), TokenUsage()
_INTERRUPTED = (
    f"Error ({Interrupted.code}): nobody waited for this call's result. It may have had its effect: look before you "
    "make it again."
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a call of the turn in work. `code` is empty until it has its result; `text` is what the model
    reads of it; `approval` is the question that a person has to answer first."""

    code: str = ""
    text: str = ""
    approval: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """What was done about the question that is being answered. `seen` counts calls with their results, by digest;
    `told` are the things that a model is told once only."""

    turns: int = 0
    tokens: int = 0
    seen: tuple[tuple[str, int], ...] = ()
    told: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunState:
    """A conversation, and where it stands.

    `turn` counts the model's turns in the whole of it. Where `pending` holds anything, the last message is the model's,
    and there is one outcome for each of its calls; `stop` says how that turn ended. `nonce` stands in the marks
    around untrusted text (`gate.labels.Boundary`).
    """

    id: str
    principal: str
    messages: tuple[Message, ...] = ()
    turn: int = 0
    choice: ToolChoice = _FREE
    pending: tuple[Outcome, ...] = ()
    stop: StopReason = StopReason.END
    usage: TokenUsage = _NONE
    nonce: str = ""
    progress: Progress = Progress()

    @classmethod
    def begin(cls, principal: str, messages: Sequence[Message] = (), *, id: str = "") -> Self:
        """A new run. `messages` is what was said before."""
        return cls(id or secrets.token_hex(12), principal, tuple(messages), nonce=secrets.token_hex(8))

    def asked(self, text: str, choice: ToolChoice = _FREE) -> Self:
        """The run with a question of the user's. Raises BadInput while calls of the question before wait."""
        if self.pending:
            raise BadInput("Calls of this run have no result yet: go on with it, or interrupt it first.")
        messages = (*self.messages, Message(Role.USER, text))
        return replace(self, messages=messages, choice=choice, progress=Progress(), stop=StopReason.END)

    @property
    def waiting(self) -> tuple[tuple[ChatCall, str], ...]:
        """The calls that a person has to confirm, each with the id of the approval."""
        calls = self.messages[-1].calls if self.pending else ()
        return tuple((call, one.approval) for call, one in zip(calls, self.pending, strict=True) if one.approval)

    @property
    def text(self) -> str:
        """What the model said last."""
        said = [message.text for message in self.messages if message.role is Role.ASSISTANT]
        return said[-1] if said else ""

    def interrupted(self) -> Self:
        """The run with a result for every call: those that nobody waited for say so."""
        pending = tuple(one if one.code else Outcome(Interrupted.code, _INTERRUPTED) for one in self.pending)
        return replace(self, pending=pending).settled()

    def settled(self) -> Self:
        """The run with the results of its last turn among the messages, once every call has one."""
        if not self.pending:
            return self
        results = [
            Message(Role.TOOL, one.text, call_id=call.id, is_error=one.code != "ok")
            for call, one in zip(self.messages[-1].calls, self.pending, strict=True)
        ]
        return replace(self, messages=(*self.messages, *results), pending=())

    def to_json(self) -> str:
        return jsonio.dumps({"version": VERSION, **asdict(self)})

    @classmethod
    def from_json(cls, text: str | bytes, principal: str, limits: Limits = LIMITS) -> Self:
        """Raises BadInput that names what is wrong."""
        if len(text) > limits.json_size:
            raise BadInput(f"A run's state has at most {limits.json_size} bytes.")
        try:
            body = jsonio.loads(text, replace(limits, string_bytes=limits.json_size))
        except ToolwiseError as error:
            raise BadInput(f"This is no run's state: {error}.") from None
        version = body.pop("version", None) if isinstance(body, dict) else None
        if version != VERSION or isinstance(version, bool):
            raise BadInput(f"A run's state of version {VERSION} is read here, and this is none.")
        state: Self = _read(cls, body, "state")
        if state.principal != principal:
            raise BadInput(f"The run belongs to {quote(state.principal)}: only they can go on with it.")
        if state.pending and len(state.pending) != len(state.messages[-1].calls if state.messages else ()):
            raise BadInput("state.pending: there is one for each call of the last message.")
        return state


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(kind: Any, value: Any, place: str) -> Any:
    """A value of this type, made of JSON of exactly its shape."""
    if is_dataclass(kind):
        return _read_fields(kind, value, place)
    if get_origin(kind) is tuple:
        items = get_args(kind)
        if not isinstance(value, list) or (items[-1] is not ... and len(value) != len(items)):
            raise BadInput(f"{place}: a list was expected.")
        kinds = [items[0]] * len(value) if items[-1] is ... else items
        return tuple(_read(one, item, f"{place}[{n}]") for n, (one, item) in enumerate(zip(kinds, value, strict=True)))
    words = get_args(kind) if get_origin(kind) is Literal else tuple(kind) if issubclass(kind, StrEnum) else None
    if words is not None:
        if not isinstance(value, str) or value not in words:
            raise BadInput(f"{place}: {' or '.join(words)} was expected.")
        return value if get_origin(kind) is Literal else kind(value)
    if type(value) is not kind or (kind is int and value < 0):
        raise BadInput(f"{place}: another kind of value was expected ({kind.__name__}).")
    return value


def _read_fields(kind: Any, value: Any, place: str) -> Any:
    if not isinstance(value, dict):
        raise BadInput(f"{place}: an object was expected.")
    names = [field.name for field in fields(kind)]
    for name in value:
        if name not in names:
            raise BadInput(f"{place}.{jsonio.printable(name, 40)}: no such field is known here.")
    for name in names:
        if name not in value:
            raise BadInput(f"{place}.{name}: the field is missing.")
    return kind(**{name: _read(_hints(kind)[name], value[name], f"{place}.{name}") for name in names})
