"""May this principal run this tool with these arguments?

Covers: deny by default (no policy, an empty or unreadable one, an error while deciding: all denied); Cedar policies,
where `forbid` wins over `permit` and the deciding policy is named. One decision costs about 20 microseconds, since
policies and tools are parsed once; therefore nothing is cached.

A Cedar policy sees

    principal   User::"<principal id>"
    action      Action::"call"; where nothing decides about it, Action::"ask": permitted after a person confirmed
    resource    Tool::"<name>" with the attributes `name`, `effect` ("pure", "read" or "write"), and `public`: whether
                what it is given leaves the house
    context     `arguments`, a record; `hosts`, a record with the host of every argument that is an address, parsed and
                in lower case; and what the model had read before it asked: `integrity` ("trusted" or "untrusted") and
                `confidentiality` ("public" or "private")

An argument that a rule names and the call leaves out makes the rule fail, and a rule that fails denies. So does a host
that is asked for where no plain address stands (a user name before the host, a port that is none, no scheme).

Cedar knows strings, 64-bit integers, booleans, lists and records. Any other value (1.5, null, 2**80) is shown as the
string of its JSON, so that a policy which compares it as a number fails, and denies.

Not covered: what the arguments mean (which file a path is, where a name resolves to): that is the tool's
`unsafe_target`, or a policy's equality test, never a prefix. `like "https://good.example*"` also lets
`https://good.example.evil.net` pass: compare `context.hosts`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

import cedarpy

from toolwise.core import jsonio
from toolwise.core.types import Effect, Labels, Principal, Tool

OFFLINE = resources.files("toolwise.gate").joinpath("offline.cedar").read_text("utf-8")
DEFAULT = resources.files("toolwise.gate").joinpath("default.cedar").read_text("utf-8")

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

    def __init__(self, policies: cedarpy.PolicySet | None, problem: str = "", version: str = "") -> None:
        self._policies = policies
        self.problem = problem
        self.version = version

    @classmethod
    def from_text(cls, text: str) -> CedarPolicy:
        """Policies from Cedar text; text that is empty or does not parse gives a policy that denies everything."""
        if not text.strip():
            return cls(None, "the policy is empty")
        try:
            return cls(cedarpy.PolicySet.from_str(text), version=hashlib.sha256(text.encode()).hexdigest())
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
        context = seen(arguments, labels)
        call = authorized(self._policies, "call", principal, tool, context)
        if call.allowed or call.diagnostics.errors or call.diagnostics.reasons:
            return _decision(call, "allow")
        return _decision(authorized(self._policies, "ask", principal, tool, context), "ask")


def seen(arguments: Mapping[str, Any], labels: Labels) -> dict[str, Any]:
    """The `context` of a request: what a policy sees of a call."""
    return {
        "arguments": _shown(arguments),
        "hosts": {name: host for name, value in arguments.items() if name[:2] != "__" and (host := host_of(value))},
        "integrity": labels.integrity.value,
        "confidentiality": labels.confidentiality.value,
    }


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


def host_of(value: Any) -> str:
    """The host of a text that is an absolute web address and nothing else; "" for anything another reader could take
    for another host (https://url.spec.whatwg.org and RFC 3986 differ on backslashes, spaces and user names)."""
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or set(value) & set(" \\@"):
        return ""
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or port == 0 or not value.startswith(f"{parts.scheme}://"):
        return ""
    return (parts.hostname or "").rstrip(".")


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
