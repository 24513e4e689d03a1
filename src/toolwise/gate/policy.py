"""May this principal run this tool with these arguments?

Covers: deny by default (no policy, an empty or unreadable one, an error while deciding: all denied); Cedar policies,
where `forbid` wins over `permit` and the deciding policy is named. One decision costs about 20 microseconds, since
policies and tools are parsed once; therefore nothing is cached.

A Cedar policy sees

    principal   User::"<principal id>"
    action      Action::"call"; where nothing decides about it, Action::"ask": permitted after a person confirmed
    resource    Tool::"<name>" with the attributes `name` and `effect` ("pure", "read" or "write")
    context     `arguments`, a record

Cedar knows strings, 64-bit integers, booleans, lists and records. Any other value (1.5, null, 2**80) is shown as the
string of its JSON, so that a policy which compares it as a number fails, and a policy that fails denies.

Not covered: what the arguments mean (a URL's host, a path's root): that is the tool's `unsafe_target`, or a policy's
equality test, never a prefix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Protocol

import cedarpy

from toolwise.core import jsonio
from toolwise.core.types import Effect, Principal, Tool

OFFLINE = resources.files("toolwise.gate").joinpath("offline.cedar").read_text("utf-8")

_INT64 = range(-(2**63), 2**63)
_EXACT = 2**53  # below it every float that is whole is exactly the integer that it looks like


@dataclass(frozen=True, slots=True)
class Decision:
    """`ask` means: a person must confirm first. `policy` names what decided, for the audit."""

    verdict: Literal["allow", "deny", "ask"]
    policy: str


class Policy(Protocol):
    """Whoever decides. An exception counts as a denial."""

    def decide(self, principal: Principal, tool: Tool, arguments: Mapping[str, Any]) -> Decision:
        """The decision about one call; `arguments` fit the tool's schema and must not be changed."""


class DenyAll:
    """The policy of a gate that was given none."""

    def decide(self, principal: Principal, tool: Tool, arguments: Mapping[str, Any]) -> Decision:
        return Decision("deny", "no policy was given")


class CedarPolicy:
    """Cedar policies (https://docs.cedarpolicy.com). `problem` says why they cannot be used; then all is denied."""

    def __init__(self, policies: cedarpy.PolicySet | None, problem: str = "") -> None:
        self._policies = policies
        self.problem = problem

    @classmethod
    def from_text(cls, text: str) -> CedarPolicy:
        """Policies from Cedar text; text that is empty or does not parse gives a policy that denies everything."""
        if not text.strip():
            return cls(None, "the policy is empty")
        try:
            return cls(cedarpy.PolicySet.from_str(text))
        except Exception as error:  # noqa: BLE001  whatever the parser raises, the answer is to deny
            return cls(None, f"the policy does not parse: {error}")

    @classmethod
    def from_file(cls, path: str | Path) -> CedarPolicy:
        """Policies from a UTF-8 file; a file that is missing or unreadable gives a policy that denies everything."""
        try:
            return cls.from_text(Path(path).read_text("utf-8"))
        except (OSError, ValueError) as error:
            return cls(None, f"the policy file cannot be read: {type(error).__name__}")

    def decide(self, principal: Principal, tool: Tool, arguments: Mapping[str, Any]) -> Decision:
        if self._policies is None:
            return Decision("deny", self.problem)
        context = {"arguments": _shown(arguments)}
        call = self._ask_cedar("call", principal, tool, context)
        if call.allowed or call.diagnostics.errors or call.diagnostics.reasons:
            return _decision(call, "allow")
        return _decision(self._ask_cedar("ask", principal, tool, context), "ask")

    def _ask_cedar(
        self, action: str, principal: Principal, tool: Tool, context: Mapping[str, Any]
    ) -> cedarpy.AuthzResult:
        request = {
            "principal": {"type": "User", "id": principal.id},
            "action": {"type": "Action", "id": action},
            "resource": {"type": "Tool", "id": tool.name},
            "context": context,
        }
        assert self._policies is not None
        return cedarpy.is_authorized(request, self._policies, _entity(tool.name, tool.effect))


def _decision(answer: cedarpy.AuthzResult, permitted: Literal["allow", "ask"]) -> Decision:
    """A permit counts only if every policy could be evaluated: one that failed may have been a `forbid`."""
    found = answer.diagnostics
    if found.errors:
        return Decision("deny", f"a policy could not be evaluated: {found.errors[0]}")
    names = ", ".join(found.id_annotations_by_reason.get(key, key) for key in found.reasons)
    if answer.allowed:
        return Decision(permitted, names)
    return Decision("deny", names or "no policy permits it")


@lru_cache(maxsize=1024)
def _entity(name: str, effect: Effect) -> cedarpy.Entities:
    attributes = {"name": name, "effect": effect.value}
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
