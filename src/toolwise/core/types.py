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

    The rest is the author's word too, and each default is the careful one:

    seconds     the tool's own deadline; None means `limits.call_seconds`. No bounded tool can be given one
    idempotent  to run twice is to run once; such a call may be tried again after a failure that may pass
    keyed       `run` hands `ToolContext.key` on to a system that runs one key once; then it may be tried again too
    cost        of one call, in whatever unit the budget counts
    trusted     results come from the operator (a table of the house), not from whoever wrote a page or a mail
    private     results hold private data
    public      what the tool is given leaves the house: a sink
    resource    tools of one resource exclude each other as readers and writers do; default: each tool is its own
    examples    texts with calls in them, as a model should write them: for teaching a model to use the tool
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    effect: Effect
    run: Callable[..., Any]
    bounded: bool = False
    context_parameter: str | None = None
    seconds: float | None = None
    idempotent: bool = False
    keyed: bool = False
    cost: float = 0.0
    trusted: bool = False
    private: bool = False
    public: bool = False
    resource: str = ""
    examples: tuple[str, ...] = ()

    @property
    def repeatable(self) -> bool:
        """Whether a call of which nobody knows the outcome may be started again."""
        return self.effect is not Effect.WRITE or self.idempotent or self.keyed


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as a model wrote it: neither parsed nor trusted. The gate's first step reads it.

    `inline` text is what stands between the open marker and the arrow, `Calculator(18 / 24)`; `json` text is an
    object with exactly `name` and `arguments`; `arguments` text is the object of the arguments alone, and the `name`
    stands beside it, as chat APIs have it. `complete` is False when the text ended before the call was closed.
    """

    id: str
    text: str
    form: Literal["inline", "json", "arguments"] = "inline"
    complete: bool = True
    name: str = ""


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


class Integrity(StrEnum):
    """Whether a text may be believed to come from the operator or the user."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"


class Confidentiality(StrEnum):
    """Whether a text may be shown to anybody."""

    PUBLIC = "public"
    PRIVATE = "private"


@dataclass(frozen=True, slots=True)
class Labels:
    """What is known of a text, and of all that was written under its influence."""

    integrity: Integrity = Integrity.TRUSTED
    confidentiality: Confidentiality = Confidentiality.PUBLIC

    def __or__(self, other: Labels) -> Labels:
        """The labels of both together: one untrusted part makes the whole untrusted, one private part private."""
        if self == other:
            return self
        untrusted = Integrity.UNTRUSTED in (self.integrity, other.integrity)
        private = Confidentiality.PRIVATE in (self.confidentiality, other.confidentiality)
        return Labels(
            Integrity.UNTRUSTED if untrusted else Integrity.TRUSTED,
            Confidentiality.PRIVATE if private else Confidentiality.PUBLIC,
        )


@dataclass(frozen=True, slots=True)
class CallContext:
    """Where a call comes from: who asks, in which run, on which day, and what the model had read.

    `labels` says what the caller put into the context (a prompt that holds a private file); what the gate itself gave
    to this run it knows.

    `today` is an ISO date that may be partial (`2023-01-30`, `2023-01`, `2023`), the document's own while teaching
    (`unknown` where it has none); None means the day on which the call runs.
    """

    principal: Principal
    run_id: str
    today: str | None = None
    labels: Labels = Labels()

    @property
    def run_key(self) -> str:
        """Principal and run as one text, which no other two have: the runs of two principals never meet."""
        return f"{len(self.principal.id)}:{self.principal.id} {self.run_id}"


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What the gate tells a tool that asks for it.

    `key` is the same for every attempt of one call and for no other call; a `keyed` tool hands it on.
    """

    principal: Principal
    today: str
    seconds: float
    key: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """The one terminal outcome of a call.

    `code` is `ok` or the code of an error; `text` is what the model may read, and says so in words when it is an
    error. `total_bytes` counts what the tool produced and `sha256` is the digest of what was kept, so that a cut can
    be seen (`truncated`). `approval` is the id under which a person decides, where one must.
    """

    call_id: str
    code: str
    text: str
    seconds: float = 0.0
    truncated: bool = False
    total_bytes: int = 0
    sha256: str = ""
    labels: Labels = Labels(Integrity.UNTRUSTED)
    approval: str = ""

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
