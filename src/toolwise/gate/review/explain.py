"""Why a policy decides a call as it does: what it sees of the call, and what each of its statements says alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import cedarpy

from toolwise.core.errors import BadInput, InvalidArguments
from toolwise.core.jsonio import printable
from toolwise.core.limits import LIMITS
from toolwise.core.types import Confidentiality, Effect, Integrity, Labels, Principal, Tool
from toolwise.gate.policy import CedarPolicy, Decision, authorized, seen
from toolwise.gate.review.source import Statement, statements
from toolwise.tools.registry import Registry

_NAMES = {"principal": str, "tool": str, "arguments": dict, "effect": str, "public": bool, "labels": dict}
_ACTIONS: tuple[Literal["call", "ask"], ...] = ("call", "ask")
Applies = Literal["yes", "no", "fails"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A call as a policy is asked about it. `remarks` say what was assumed, and what else the gate would say."""

    principal: Principal
    tool: Tool
    arguments: Mapping[str, Any]
    labels: Labels
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Spoken:
    """What one statement says of the call, by action; `why` is Cedar's reason where it fails."""

    name: str
    effect: str
    call: Applies
    ask: Applies
    why: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The decision, what the policy saw, and what each statement says."""

    decision: Decision
    seen: Mapping[str, Any]
    statements: tuple[Spoken, ...]


def read_call(told: Any, registry: Registry | None = None) -> Asked:
    """The call that a JSON object describes: `principal`, `tool`, `arguments`, and if need be `labels`, `effect`,
    `public`.

    Effect and `public` are those of the tool where `registry` has it, otherwise what the object says, otherwise those
    of a tool without any declaration. Raises BadInput.
    """
    if not isinstance(told, dict) or not {"principal", "tool"} <= told.keys() <= _NAMES.keys():
        raise BadInput(f"A call is an object with principal and tool, and what applies of {', '.join(sorted(_NAMES))}.")
    given: dict[str, Any] = {"arguments": {}, "labels": {}, "effect": "write", "public": False} | told
    if any(not isinstance(given[name], kind) for name, kind in _NAMES.items()):
        raise BadInput(
            "A call's principal, tool and effect are texts, arguments and labels objects, public is true or false."
        )
    name: str = given["tool"]
    try:
        effect, labels = Effect(given["effect"]), _labels(given["labels"])
    except ValueError:
        raise BadInput('effect is pure, read or write, and labels are such as {"integrity": "untrusted"}.') from None
    tool = declared(name, effect, public=given["public"])
    remarks: tuple[str, ...] = ()
    if registry is not None and name in registry:
        tool = registry[name]
        remarks = _refused(registry, name, given["arguments"])
    elif "effect" not in told:
        remarks = (f"No definition of {printable(name, 80)} was given: it counts as a write.",)
    return Asked(Principal(given["principal"]), tool, given["arguments"], labels, remarks)


def declared(name: str, effect: Effect, *, public: bool = False) -> Tool:
    """A tool of which nothing else is known, for a policy to look at."""
    return Tool(name, "", {"type": "object"}, effect, _never, public=public)


def _never() -> None:
    raise AssertionError("a tool that only a policy looks at was run")


def _labels(told: Mapping[str, str]) -> Labels:
    """Raises ValueError."""
    if not told.keys() <= {"integrity", "confidentiality"}:
        raise ValueError("other labels")
    return Labels(
        Integrity(told.get("integrity", Integrity.TRUSTED)),
        Confidentiality(told.get("confidentiality", Confidentiality.PUBLIC)),
    )


def _refused(registry: Registry, name: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    try:
        registry.validator(name).validate(arguments)
    except InvalidArguments as error:
        return (f"The gate refuses these arguments before it asks the policy: {error}.",)
    return ()


def explain(text: str, asked: Asked) -> Explanation:
    """What the policy decides about the call, and why."""
    context = seen(asked.arguments, asked.labels)
    policy = CedarPolicy.from_text(text)
    decision = policy.decide(asked.principal, asked.tool, asked.arguments, asked.labels)
    usable = [] if policy.problem else statements(text)
    return Explanation(decision, context, tuple(_spoken(one, asked, context) for one in usable))


def _spoken(one: Statement, asked: Asked, context: Mapping[str, Any]) -> Spoken:
    policies = cedarpy.PolicySet.from_str(one.text)
    found = {
        action: authorized(policies, action, asked.principal, asked.tool, context).diagnostics for action in _ACTIONS
    }
    said: dict[str, Applies] = {
        action: "fails" if told.errors else "yes" if told.reasons else "no" for action, told in found.items()
    }
    errors = [error.partition(": ")[2] for told in found.values() for error in told.errors]
    return Spoken(one.name, one.effect, said["call"], said["ask"], printable("".join(errors[:1]), LIMITS.message_chars))
