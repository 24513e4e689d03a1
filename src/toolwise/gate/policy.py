"""May this principal run this tool with these arguments?

Covers: deny by default (no policy, an empty or unreadable one, an error while deciding: all denied); Cedar policies,
where `forbid` wins over `permit` and the deciding policy is named. Policies and tools are parsed once; of a call's
context a policy is given only what some rule of it reads, and where no rule reads arguments, a decision is kept: it
cannot be another one for the same user, tool and labels.

A Cedar policy sees

    principal   User::"<principal id>"
    action      Action::"call"; where nothing decides about it, Action::"ask": permitted after a person confirmed
    resource    Tool::"<name>" with the attributes `name`, `effect` ("pure", "read" or "write"), and `public`: whether
                what it is given leaves the house
    context     `arguments`, a record; `hosts`, a record with the host of every argument that is an address, parsed and
                in lower case; and what the model had read before it asked: `integrity` ("trusted" or "untrusted") and
                `confidentiality` ("public" or "private")

An argument that a rule names and the call leaves out makes the rule fail, and a rule that fails denies. So does a host
that is asked for where no plain address stands (a user name before the host, a port that is none, no scheme, a dot at
the end of the host, `%2e` for a dot): policies read an address as `safe_fetch` does (`tools.confined.targets`).

Cedar knows strings, 64-bit integers, booleans, lists and records. Any other value (1.5, null, 2**80) is shown as the
string of its JSON, so that a policy which compares it as a number fails, and denies.

Not covered: what the arguments mean (which file a path is, where a name resolves to): that is the tool's
`unsafe_target`, or a policy's equality test, never a prefix. `like "https://good.example*"` also lets
`https://good.example.evil.net` pass: compare `context.hosts`. And a `forbid` that first asks `context.hosts has url` is
passed by whatever is no plain address: permit the hosts that are good.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Protocol

import cedarpy

from toolwise.core import jsonio
from toolwise.core.errors import ToolwiseError, UnsafeTarget
from toolwise.core.limits import LIMITS
from toolwise.core.types import Effect, Labels, Principal, Tool
from toolwise.tools.confined.targets import Target

OFFLINE = resources.files("toolwise.gate").joinpath("offline.cedar").read_text("utf-8")
DEFAULT = resources.files("toolwise.gate").joinpath("default.cedar").read_text("utf-8")
FLOW = resources.files("toolwise.gate").joinpath("flow.cedar").read_text("utf-8")

_CONTEXT = frozenset({"arguments", "hosts", "integrity", "confidentiality"})
_OF_LABELS = frozenset({"integrity", "confidentiality"})
_MOST_KNOWN = 1_024  # decisions that are kept
_POLICY = replace(LIMITS, json_depth=200, string_bytes=LIMITS.json_size)

_INT64 = range(-(2**63), 2**63)
_EXACT = 2**53  # below it every float that is whole is exactly the integer that it looks like


@dataclass(frozen=True, slots=True)
class Decision:
    """`ask` means: a person must confirm first. `policy` names what decided, for the audit."""

    verdict: Literal["allow", "deny", "ask"]
    policy: str


class Policy(Protocol):
    """Whoever decides. An exception counts as a denial."""

    @property
    def version(self) -> str:
        """Changes with the rules: a confirmation that was given under others does not count."""

    def decide(self, principal: Principal, tool: Tool, arguments: Mapping[str, Any], labels: Labels) -> Decision:
        """The decision about one call; `arguments` fit the tool's schema and must not be changed.

        `labels` are those of all that the model had read when it asked.
        """


class DenyAll:
    """The policy of a gate that was given none."""

    version = ""

    def decide(self, principal: Principal, tool: Tool, arguments: Mapping[str, Any], labels: Labels) -> Decision:
        return Decision("deny", "no policy was given")


class CedarPolicy:
    """Cedar policies (https://docs.cedarpolicy.com). `problem` says why they cannot be used; then all is denied."""

    def __init__(
        self,
        policies: cedarpy.PolicySet | None,
        problem: str = "",
        version: str = "",
        reads: AbstractSet[str] = _CONTEXT,
    ) -> None:
        self._policies = policies
        self._reads = reads
        self._known: dict[tuple[Any, ...], Decision] = {}
        self.problem = problem
        self.version = version

    @classmethod
    def from_text(cls, text: str) -> CedarPolicy:
        """Policies from Cedar text; text that is empty or does not parse gives a policy that denies everything."""
        if not text.strip():
            return cls(None, "the policy is empty")
        try:
            policies, version = cedarpy.PolicySet.from_str(text), hashlib.sha256(text.encode()).hexdigest()
            return cls(policies, version=version, reads=_read_of_context(text))
        except Exception as error:  # noqa: BLE001  whatever the parser raises, the answer is to deny
            return cls(None, f"the policy does not parse: {error}")

    @classmethod
    def from_file(cls, path: str | Path) -> CedarPolicy:
        """Policies from a UTF-8 file; a file that is missing or unreadable gives a policy that denies everything."""
        try:
            return cls.from_text(Path(path).read_text("utf-8"))
        except (OSError, ValueError) as error:
            return cls(None, f"the policy file cannot be read: {type(error).__name__}")

    def decide(self, principal: Principal, tool: Tool, arguments: Mapping[str, Any], labels: Labels) -> Decision:
        if self._policies is None:
            return Decision("deny", self.problem)
        if not self._reads <= _OF_LABELS:
            return self._decide(principal, tool, seen(arguments, labels, self._reads))
        key = (principal, tool.name, tool.effect, tool.public, labels)
        decision = self._known.get(key)
        if decision is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            decision = self._known[key] = self._decide(principal, tool, seen(arguments, labels, self._reads))
        return decision

    def _decide(self, principal: Principal, tool: Tool, context: Mapping[str, Any]) -> Decision:
        assert self._policies is not None
        call = authorized(self._policies, "call", principal, tool, context)
        if call.allowed or call.diagnostics.errors or call.diagnostics.reasons:
            return _decision(call, "allow")
        return _decision(authorized(self._policies, "ask", principal, tool, context), "ask")


def seen(arguments: Mapping[str, Any], labels: Labels, wanted: AbstractSet[str] = _CONTEXT) -> dict[str, Any]:
    """The `context` of a request: what a policy sees of a call, or as much of it as is wanted."""
    context: dict[str, Any] = {}
    if "arguments" in wanted:
        context["arguments"] = _shown(arguments)
    if "hosts" in wanted:
        named = {name: host_of(value) for name, value in arguments.items() if name[:2] != "__"}
        context["hosts"] = {name: host for name, host in named.items() if host}
    if "integrity" in wanted:
        context["integrity"] = labels.integrity.value
    if "confidentiality" in wanted:
        context["confidentiality"] = labels.confidentiality.value
    return context


def authorized(
    policies: cedarpy.PolicySet,
    action: Literal["call", "ask"],
    principal: Principal,
    tool: Tool,
    context: Mapping[str, Any],
) -> cedarpy.AuthzResult:
    """Cedar's own answer to one request."""
    request = {
        "principal": {"type": "User", "id": principal.id},
        "action": {"type": "Action", "id": action},
        "resource": {"type": "Tool", "id": tool.name},
        "context": context,
    }
    return cedarpy.is_authorized(request, policies, _entity(tool.name, tool.effect, tool.public))


def _decision(answer: cedarpy.AuthzResult, permitted: Literal["allow", "ask"]) -> Decision:
    """A permit counts only if every policy could be evaluated: one that failed may have been a `forbid`."""
    found = answer.diagnostics
    if found.errors:
        return Decision("deny", f"a policy could not be evaluated: {found.errors[0]}")
    names = ", ".join(found.id_annotations_by_reason.get(key, key) for key in found.reasons)
    if answer.allowed:
        return Decision(permitted, names)
    return Decision("deny", names or "no policy permits it")


def _read_of_context(text: str) -> frozenset[str]:
    """The parts of `context` that some rule reads, or asks for; all of them where a rule reads it as a whole."""
    read: set[str] = set()
    try:
        parts: list[Any] = [jsonio.loads(cedarpy.policies_to_json_str(text), _POLICY)]
    except ToolwiseError:  # longer or deeper than what is looked through
        return _CONTEXT
    while parts:
        match parts.pop():
            case {".": {"left": {"Var": "context"}, "attr": str(name)}}:
                read.add(name)
            case {"has": {"left": {"Var": "context"}, "attr": str(name)}}:
                read.add(name)
            case {"Var": "context"}:
                return _CONTEXT
            case dict() as part:
                parts.extend(part.values())
            case list() as part:
                parts.extend(part)
    return frozenset(read)


def host_of(value: Any) -> str:
    """The host of a text that is an absolute web address and nothing else; "" for anything another reader could take
    for another host (`%2e` for a dot, `0x7f.1`, a user name, a backslash)."""
    try:
        return Target.read(value).host if isinstance(value, str) else ""
    except UnsafeTarget:
        return ""


@lru_cache(maxsize=1024)
def _entity(name: str, effect: Effect, public: bool) -> cedarpy.Entities:
    attributes = {"name": name, "effect": effect.value, "public": public}
    entity = {"uid": {"type": "Tool", "id": name}, "attrs": attributes, "parents": []}
    return cedarpy.Entities.from_json_str(jsonio.dumps([entity]))


def _shown(value: Any) -> Any:
    """The JSON value as Cedar can hold it. Cedar reads `__entity` and `__extn` keys as commands: shown as text."""
    match value:
        case bool() | str():
            return value
        case int() if value in _INT64:
            return value
        case float() if value.is_integer() and abs(value) < _EXACT:
            return int(value)
        case list() | tuple():
            return [_shown(item) for item in value]
        case Mapping() if not any(key.startswith("__") for key in value):
            return {key: _shown(item) for key, item in value.items()}
    return jsonio.dumps(value)
