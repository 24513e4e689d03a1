"""The vocabulary: frozen values that every floor shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal

_EMPTY: Mapping[str, Any] = MappingProxyType({})


class Effect(StrEnum):
    """What a tool may do to the world. `pure` depends on its arguments alone; `read` looks; `write` changes."""

    PURE = "pure"
    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Tool:
    """Something that can be called.

    `parameters` is a JSON Schema of an object. `bounded` is the author's word that `run` ends by itself in bounded
    time and memory for every input that fits the schema; then it runs in this process, otherwise in a child that is
    killed at its deadline. `context_parameter` names the parameter of `run`, if any, that receives a `ToolContext`
    from the gate and is not part of the schema.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    effect: Effect
    run: Callable[..., Any]
    bounded: bool = False
    context_parameter: str | None = None


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as a model wrote it: neither parsed nor trusted. The gate's first step reads it.

    `inline` text is what stands between the open marker and the arrow, `Calculator(18 / 24)`; `json` text is an
    object with exactly `name` and `arguments`. `complete` is False when the text ended before the call was closed.
    """

    id: str
    text: str
    form: Literal["inline", "json"] = "inline"
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Call:
    """One request to run one tool with arguments."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Principal:
    """The end user on whose behalf a call runs. Comes from the session, never from arguments."""

    id: str


@dataclass(frozen=True, slots=True)
class CallContext:
    """Where a call comes from: who asks, in which run, and on which day it takes place.

    `today` is an ISO date that may be partial (`2023-01-30`, `2023-01`, `2023`), the document's own while teaching
    (`unknown` where it has none); None means the day on which the call runs.
    """

    principal: Principal
    run_id: str
    today: str | None = None


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What the gate tells a tool that asks for it."""

    principal: Principal
    today: str
    seconds: float


class Integrity(StrEnum):
    """Whether the text of a result may be believed to come from the operator."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"


@dataclass(frozen=True, slots=True)
class Result:
    """The one terminal outcome of a call.

    `code` is `ok` or the code of an error; `text` is what the model may read, and says so in words when it is an
    error. `total_bytes` counts what the tool produced and `sha256` is the digest of what was kept, so that a cut can
    be seen (`truncated`).
    """

    call_id: str
    code: str
    text: str
    seconds: float = 0.0
    truncated: bool = False
    total_bytes: int = 0
    sha256: str = ""
    integrity: Integrity = Integrity.UNTRUSTED

    @property
    def ok(self) -> bool:
        return self.code == "ok"


@dataclass(frozen=True, slots=True)
class Document:
    """One plain text with an id. `date` is ISO and may be partial."""

    id: str
    text: str
    date: str | None = None
    url: str | None = None
    language: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[Call, ...] = ()
    call_id: str | None = None
