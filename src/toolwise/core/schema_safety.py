"""Whether a schema from elsewhere (an MCP server, a file) may be compiled.

Covered: references that would be fetched, cycles, references that multiply, size, depth, patterns that explode in
engines that backtrack, schemas that accept nothing on purpose.

Not covered: `if`/`allOf` combinations that no value fits; keywords that no validator knows are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, NoReturn
from urllib.parse import unquote

from toolwise.core import jsonio
from toolwise.core.errors import BadInput
from toolwise.core.limits import Limits

_DIALECTS = re.compile(r"https?://json-schema\.org/(draft/2020-12|draft/2019-09|draft-07|draft-06)/schema#?")
# Keywords whose value maps names to schemas, and keywords whose value is data.
NAMES = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
DATA = frozenset({"default", "const", "enum", "examples"})
_MOVES = frozenset({"$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef"})  # change what a $ref means

# (a+)+ says what a+ says, and takes exponential time wherever the schema is read by an engine that backtracks.
_NESTED_REPETITION = re.compile(r"\((?:\?:)?(?:\\.|\[[^\]]{1,99}\]|[^\\()\[\]])[*+]\??\)[*+{]")


def checked_schema(parameters: Mapping[str, Any], limits: Limits) -> tuple[dict[str, Any], int]:
    """A plain copy of a tool's schema, and the number of its objects and lists once every `$ref` is written out.

    Raises BadInput where it is too large, cannot be used safely, or is no schema of an object.
    """
    schema = _bounded(parameters, limits)
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise BadInput('schema: the parameters of a tool are of type "object"')
    dialect = schema.get("$schema")
    if dialect is not None and not (isinstance(dialect, str) and _DIALECTS.fullmatch(dialect)):
        raise BadInput("schema: use JSON Schema 2020-12, 2019-09, draft 7 or draft 6")
    for part in _subschemas(schema):
        _check_part(part, root=part is schema)
    return schema, _count_parts(schema, limits)


def refuse_to_fetch(uri: str) -> NoReturn:
    """The retriever of every validator."""
    raise ValueError("nothing is fetched")


def _bounded(parameters: Mapping[str, Any], limits: Limits) -> Any:
    try:
        bounds = replace(limits, json_depth=limits.schema_depth)
        schema = jsonio.plain(parameters, BadInput, limits.schema_bytes, bounds)
    except BadInput as error:
        raise BadInput(f"schema: {error}") from None
    if len(jsonio.dumps(schema).encode()) > limits.schema_bytes:
        raise BadInput(f"schema: too large: keep it under {limits.schema_bytes} bytes")
    return schema


def _check_part(part: dict[str, Any], root: bool) -> None:
    moves = _MOVES.intersection(part) - ({"$id"} if root else set())
    if moves:
        raise BadInput(f"schema: {min(moves)} is not supported; use $ref with #/...")
    if part.get("not") in ({}, True):
        raise BadInput('schema: a "not" that forbids everything accepts nothing')
    named = part.get("patternProperties")
    patterns = [part.get("pattern"), *(named if isinstance(named, dict) else ())]
    if any(isinstance(pattern, str) and _NESTED_REPETITION.search(pattern) for pattern in patterns):
        raise BadInput("schema: a pattern repeats a repetition, as in (a+)+; write it once")


def _subschemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    stack: list[tuple[Any, bool]] = [(schema, False)]
    while stack:
        part, names = stack.pop()
        if isinstance(part, list):
            stack.extend((item, False) for item in part)
        elif isinstance(part, dict):
            if not names:
                yield part
            stack.extend((v, k in NAMES and not names) for k, v in part.items() if names or k not in DATA)


def _count_parts(schema: dict[str, Any], limits: Limits) -> int:
    too_many = BadInput(f"schema: use at most {limits.schema_parts} parts, every $ref written out")
    parts = [part for part in jsonio.walk(schema) if isinstance(part, dict | list)]
    if len(parts) > limits.schema_parts:
        raise too_many
    inside = {id(part): [id(item) for item in _parts_of(part, schema)] for part in parts}
    counts: dict[int, int] = {}
    try:
        for part in TopologicalSorter(inside).static_order():
            counts[part] = 1 + sum(counts[item] for item in inside[part])
    except CycleError:
        raise BadInput("schema: a $ref leads back to itself; write the levels out") from None
    if counts[id(schema)] > limits.schema_parts:
        raise too_many
    return counts[id(schema)]


def _parts_of(part: dict[str, Any] | list[Any], schema: dict[str, Any]) -> Iterator[Any]:
    values = part.values() if isinstance(part, dict) else part
    yield from (item for item in values if isinstance(item, dict | list))
    reference = part.get("$ref") if isinstance(part, dict) else None
    if isinstance(reference, str):
        target = referred(schema, reference)
        if isinstance(target, dict | list):
            yield target


def referred(schema: Mapping[str, Any], reference: str) -> Any:
    """What a `$ref` of `#/...` points at (RFC 6901). Raises BadInput for one that points at nothing, or elsewhere."""
    if reference != "#" and not reference.startswith("#/"):
        raise BadInput("schema: a $ref must begin with #/; nothing is fetched")
    node: Any = schema
    for step in unquote(reference[2:]).split("/") if reference != "#" else ():
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list | tuple) and re.fullmatch(r"[0-9]{1,6}", step) and int(step) < len(node):
            node = node[int(step)]
        elif isinstance(node, Mapping) and step in node:
            node = node[step]
        else:
            raise BadInput("schema: a $ref points at nothing")
    return node
