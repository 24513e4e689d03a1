"""Tools as a Cedar schema, so that Cedar's own validator finds names and types in a policy that do not exist.

Every tool has arguments of its own, and Cedar knows one record for a whole action: so there is a schema for each tool,
and a policy about several tools is wrong only where it is wrong for every one of them.

Cedar's types are fewer than JSON Schema's. A number counts as whole; what can be of several types is left out, and
nothing is said about it. Not covered: an argument that the policy asks for behind `has` (`lint` looks for those).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import cedarpy

from toolwise.core.schema_safety import referred
from toolwise.core.types import Tool

_TEXT: dict[str, Any] = {"type": "String"}
_SIMPLE = {"string": "String", "integer": "Long", "number": "Long", "boolean": "Boolean"}
_ABOUT = re.compile(r"^for policy `[^`]*`, | for Action::\"\w+\"| in context")
_ATTRIBUTE = re.compile(r"attribute `((?:arguments|hosts)[^`]*)`")
_NOWHERE = "unable to find an applicable action given the policy scope constraints"
_MAY_BE_MISSING = "unable to guarantee safety of access to optional"


@dataclass(frozen=True, slots=True)
class Faults:
    """What the validator says against one statement.

    `wrong` holds for all the tools. `optional` are arguments that a call may leave out, `elsewhere` those that only
    some of the tools have, with the first tool that has not.
    """

    wrong: list[str]
    optional: list[str]
    elsewhere: dict[str, str]


def faults(policy: str, tools: Iterable[Tool]) -> Faults:
    """What is wrong with one statement about these tools; without tools, nothing is said about arguments."""
    by_tool = {tool.name: _faults(policy, tool) for tool in tools}
    bare = {said for said in _faults(policy, None) if not _ATTRIBUTE.search(said)} if not by_tool else set()
    common = sorted(set.intersection(*by_tool.values()) if by_tool else bare)
    wrong = [said for said in common if _MAY_BE_MISSING not in said]
    elsewhere = {
        name: tool
        for tool in reversed(by_tool)
        for name in _arguments(said for said in by_tool[tool] if _MAY_BE_MISSING not in said and said not in common)
    }
    return Faults(
        wrong=[said for said in wrong if said != _NOWHERE] or wrong,  # it follows from any other
        optional=_arguments(said for said in common if _MAY_BE_MISSING in said),
        elsewhere=elsewhere,
    )


def _arguments(said: Iterable[str]) -> list[str]:
    """The arguments that are named; a host that is missing is meant to deny."""
    named = (found[1] for text in said if (found := _ATTRIBUTE.search(text)))
    return sorted(name.removeprefix("arguments.") for name in named if name.startswith("arguments"))


def _faults(policy: str, tool: Tool | None) -> set[str]:
    arguments, untyped = _record(tool.parameters, tool.parameters, "arguments") if tool else ({"type": "Record"}, [])
    arguments.setdefault("attributes", {})
    found = cedarpy.validate_policies(policy, _schema(arguments))
    said = {_ABOUT.sub("", error.error) for error in found.errors}
    return {text for text in said if not ((name := _ATTRIBUTE.search(text)) and _within(name[1], untyped))}


def _within(name: str, paths: Iterable[str]) -> bool:
    return any(name == path or name.startswith((f"{path}.", f"{path}[")) for path in paths)


def _schema(arguments: Mapping[str, Any]) -> dict[str, Any]:
    hosts = {
        name: _TEXT | {"required": False} for name, kind in arguments["attributes"].items() if kind["type"] == "String"
    }
    attributes = {
        "arguments": arguments,
        "hosts": {"type": "Record", "attributes": hosts},
        "integrity": _TEXT,
        "confidentiality": _TEXT,
    }
    of_a_tool = {"name": _TEXT, "effect": _TEXT, "public": {"type": "Boolean"}}
    applies = {
        "principalTypes": ["User"],
        "resourceTypes": ["Tool"],
        "context": {"type": "Record", "attributes": attributes},
    }
    entities = {"User": {}, "Tool": {"shape": {"type": "Record", "attributes": of_a_tool}}}
    return {"": {"entityTypes": entities, "actions": {"call": {"appliesTo": applies}, "ask": {"appliesTo": applies}}}}


def _record(schema: Mapping[str, Any], root: Mapping[str, Any], path: str) -> tuple[dict[str, Any], list[str]]:
    """A Cedar record, and the paths below it that have no type in it."""
    attributes, untyped = {}, []
    required = schema.get("required", ())
    for name, part in schema.get("properties", {}).items():
        inner = f"{path}.{name}" if name.isidentifier() else f'{path}["{name}"]'
        kind, more = _type(part, root, inner)
        untyped += more
        if kind is None:
            untyped.append(inner)
        else:
            attributes[name] = kind | {"required": name in required}
    return {"type": "Record", "attributes": attributes}, untyped


def _type(schema: Any, root: Mapping[str, Any], path: str) -> tuple[dict[str, Any] | None, list[str]]:
    if not isinstance(schema, Mapping):
        return None, []
    if isinstance(schema.get("$ref"), str):
        return _type(referred(root, schema["$ref"]), root, path)
    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        return _record(schema, root, path)
    if kind == "array" and "items" in schema:
        element, untyped = _type(schema["items"], root, path)
        return element and {"type": "Set", "element": element}, untyped
    if isinstance(kind, str) and kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}, []
    return None, []
