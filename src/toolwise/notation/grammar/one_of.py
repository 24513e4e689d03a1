"""Whether the branches of a `oneOf` exclude each other, so that `anyOf` says the same.

Covered: branches of different types, of different constants, and objects that must have one property of different
constants (a discriminator), or of which one has no room for what the other requires. Everything else is undecided,
which counts as no.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

from toolwise.core import jsonio

Target = Callable[[Any], Any]


def exclusive(branches: list[Any], target: Target) -> bool:
    """`target` follows a `$ref`."""
    told = [target(branch) for branch in branches]
    return all(_apart(a, b, target) for a, b in combinations(told, 2))


def _apart(a: Any, b: Any, target: Target) -> bool:
    if a is False or b is False:
        return True
    if not isinstance(a, dict) or not isinstance(b, dict):
        return False
    if not _kinds(a) & _kinds(b):
        return True
    ours, theirs = _constants(a), _constants(b)
    if ours is not None and theirs is not None and not ours & theirs:
        return True
    if _kinds(a) & _kinds(b) != {"object"}:
        return False
    if _forbids(a, b) or _forbids(b, a):
        return True
    needed = set(a.get("required", ())) & set(b.get("required", ()))
    for name in needed:
        first, second = (target(node.get("properties", {}).get(name)) for node in (a, b))
        if isinstance(first, dict) and isinstance(second, dict):
            ours, theirs = _constants(first), _constants(second)
            if ours is not None and theirs is not None and not ours & theirs:
                return True
            if not _kinds(first) & _kinds(second):
                return True
    return False


def _forbids(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Whether `a` has no room for a name that `b` requires."""
    shut = a.get("additionalProperties") is False and "patternProperties" not in a
    return shut and not set(b.get("required", ())) <= set(a.get("properties", ()))


_ALL = frozenset({"null", "boolean", "number", "string", "array", "object"})


def _kinds(node: dict[str, Any]) -> frozenset[str]:
    """The types that a value may have, as far as `type` says; integers are numbers."""
    said = node.get("type")
    if said is None:
        return _ALL
    kinds = said if isinstance(said, list) else [said]
    return frozenset("number" if kind == "integer" else str(kind) for kind in kinds)


def _constants(node: dict[str, Any]) -> frozenset[str] | None:
    """The values that are allowed, as JSON; None where nothing lists them. 1 and 1.0 are one value."""
    values = [node["const"]] if "const" in node else node.get("enum")
    if not isinstance(values, list):
        return None
    return frozenset(jsonio.dumps(_number(value)) for value in values)


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value
