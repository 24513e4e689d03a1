"""What is wrong with a policy, and what in it lets more through than it seems to.

Each finding has a code, a place, and one sentence that says what to do. `error`: the policy, or a part of it, has no
effect or names what does not exist. `warning`: it says less than its author may believe. `note`: it denies more.

Not covered: whether the policy is the right one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

import cedarpy
from cedarpy import pst

from toolwise.core.errors import UnknownTool
from toolwise.core.jsonio import first_line, printable, quote
from toolwise.core.limits import LIMITS
from toolwise.core.types import Effect, Labels, Principal, Tool
from toolwise.gate.policy import authorized, seen
from toolwise.gate.review.explain import declared
from toolwise.gate.review.schema import faults
from toolwise.gate.review.source import Statement, culprit, place, problem, statements
from toolwise.tools.registry import Registry

_ADDRESS = frozenset("/\\:@.")  # what a path or an address has between its parts


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong; `policy` is its `@id`, or Cedar's name for it."""

    level: Literal["error", "warning", "note"]
    code: str
    message: str
    policy: str = ""
    line: int = 1
    column: int = 1


Said = tuple[Literal["error", "warning", "note"], str, str]


def lint(text: str, registry: Registry | None = None) -> list[Finding]:
    """What is wrong with a policy, in the order of its text; with the tools that it is for, more can be found."""
    found = statements(text)
    if not found:
        return [Finding("error", "empty", "There is no policy in it, so everything is denied: permit something.")]
    named: dict[str, int] = {}
    findings: list[Finding] = []
    for statement in found:
        line, column = place(text, statement.start)
        if said := problem(statement.text):
            line, column = place(text, statement.start + culprit(statement.text))
            told = f"{printable(said, LIMITS.message_chars)}: nothing is allowed before it is mended."
            findings.append(Finding("error", "syntax", told, "", line, column))
            continue
        findings += [
            Finding(level, code, message, statement.name, line, column)
            for level, code, message in [*_naming(statement, named, line), *_statement(statement, registry)]
        ]
    return findings


def _naming(statement: Statement, named: dict[str, int], line: int) -> Iterator[Said]:
    if not statement.annotated:
        yield "warning", "no_id", 'It has no name, and the audit log will call it by its position: write @id("...").'
    elif statement.annotated in named:
        yield "warning", "same_id", f"The statement in line {named[statement.annotated]} has the same @id: rename one."
    named.setdefault(statement.annotated, line)


def _statement(statement: Statement, registry: Registry | None) -> Iterator[Said]:
    try:
        tree = cedarpy.policies_to_pst(statement.text)
    except ValueError as error:
        yield "warning", "too_deep", f"It cannot be looked into ({first_line(error)}): write it in several statements."
        return
    for template in tree.templates.values():
        yield "error", "template", "It has a slot that nothing fills, so it never applies: name whom it is about."
        yield from _patterns(template)
    for policy in tree.static_policies.values():
        yield from _names(statement, policy, registry)
        yield from _patterns(policy)
        yield from _open(statement, policy, registry)


def _names(statement: Statement, policy: pst.Template, registry: Registry | None) -> Iterator[Said]:
    """Names and types that do not exist: Cedar's validator, and what it does not look at."""
    tools = _subjects(policy, registry)
    found = faults(statement.text, tools)
    for said in found.wrong:
        yield (
            "error",
            "unknown",
            f"{said[0].upper()}{printable(said[1:], LIMITS.message_chars)}: mend the name or the type.",
        )
    for name in found.optional:
        told = f"A call may leave {printable(name, 80)} out; then the statement fails, and that denies the call."
        yield "note", "optional", told
    for name, other in found.elsewhere.items():
        told = f"{other} has no {printable(name, 80)}: unless a condition before it keeps that tool out, the statement"
        yield "note", "elsewhere", f"{told} fails there, and that denies the call."
    if registry is None:
        return
    for entity in sorted(pst.entity_uids(policy), key=str):
        if str(entity.type) == "Tool":
            try:
                registry.resolve(entity.id)
            except UnknownTool as error:
                yield "error", "unknown", f"{str(error)[0].upper()}{str(error)[1:]}: this never applies."
    known = {name for tool in tools for name in tool.parameters.get("properties", {})}
    for name in sorted(_asked_for(policy) - known):
        yield "error", "unknown", f"No tool that it is about has an argument {quote(name)}: `has` is always false."


def _subjects(policy: pst.Template, registry: Registry | None) -> list[Tool]:
    """The tools that a statement is about."""
    named = _named(policy.resource)
    return [tool for tool in (registry or {}).values() if named in (None, tool.name)]


def _named(scope: pst.PrincipalOrResourceConstraint) -> str | None:
    """The one whom a statement is about, if it is only one."""
    return scope.entity.id if isinstance(scope, pst.ScopeEq) and isinstance(scope.entity, pst.EntityUid) else None


def _patterns(policy: pst.Template) -> Iterator[Said]:
    for node in _walk(policy.clauses):
        if isinstance(node, pst.Like) and _is_argument(_path(node.base)):
            literal = "".join(part.value if isinstance(part, pst.Char) else "*" for part in node.pattern)
            if "*" in literal and set(literal) & _ADDRESS:
                yield (
                    "warning",
                    "part_of_an_address",
                    f"The pattern {quote(literal)} leaves a part of a path or an address open, and any other place can "
                    "be written so: compare the whole value, or context.hosts.",
                )


def _open(statement: Statement, policy: pst.Template, registry: Registry | None) -> Iterator[Said]:
    """A permission to change the world that asks nothing about the call: tried with one of which nothing is known."""
    if policy.effect != "permit" or any(isinstance(node, pst.Var) and node.name == "context" for node in _walk(policy)):
        return
    principal = Principal(_named(policy.principal) or "somebody")
    tools = (
        [declared(_named(policy.resource) or "tools", Effect.WRITE)]
        if registry is None
        else [tool for tool in registry.values() if tool.effect is Effect.WRITE]
    )
    one = cedarpy.PolicySet.from_str(statement.text)
    free = [tool.name for tool in tools if authorized(one, "call", principal, tool, seen({}, Labels())).allowed]
    if free:
        which = ", ".join(free[:3]) + (" and others" if free[3:] else "")
        yield (
            "warning",
            "open",
            f"It permits {which} to change the world whatever the arguments, and whatever the model has read: add a "
            'condition, or permit Action::"ask".',
        )


def _asked_for(policy: pst.Template) -> set[str]:
    """The arguments that the policy asks for with `has`."""
    paths = [(_path(node.base), *node.attrs) for node in _walk(policy.clauses) if isinstance(node, pst.HasAttr)]
    return {path[1] for base, *attrs in paths if base is not None for path in [(*base, *attrs)] if _is_argument(path)}


def _is_argument(path: tuple[str, ...] | None) -> bool:
    return path is not None and len(path) > 1 and path[0] == "arguments"


def _path(expression: Any) -> tuple[str, ...] | None:
    """The names of the attributes that an expression reads one by one from the context."""
    path: tuple[str, ...] = ()
    while isinstance(expression, pst.GetAttr):
        path, expression = (expression.attr, *path), expression.base
    return path if expression == pst.Var("context") else None


def _walk(node: Any) -> Iterator[Any]:
    """Every node at and below `node`."""
    stack = [node]
    while stack:
        item = stack.pop()
        yield item
        if isinstance(item, dict):
            stack += item.values()
        elif isinstance(item, tuple):
            stack += item
        elif is_dataclass(item):
            stack += [getattr(item, field.name) for field in fields(item)]
