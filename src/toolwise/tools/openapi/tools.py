"""`openapi_tools`: every operation of an OpenAPI description as a tool, or the chosen ones.

What the operator says and nobody else: where requests go, what is sent along, which operations there are, and another
effect than the method has (GET and HEAD look, all others change; PUT and DELETE twice is once).

A description is untrusted: it names tools and describes them, so pin its tools (`gate.definitions`). An operation that
cannot be sent exactly as it is described is refused by name, before anything runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from toolwise.core.errors import BadInput
from toolwise.core.jsonio import quote
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Effect, Tool, ToolContext
from toolwise.tools.confined.fetch import safe_fetch
from toolwise.tools.openapi.document import read_description
from toolwise.tools.openapi.exchange import Caller, Fetch
from toolwise.tools.openapi.operations import Endpoint, Operation, endpoints, read_operation
from toolwise.tools.openapi.server import Secrets, Server, secrets_of, server_of

_PREFIX = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_.-]{0,31})?")
_LOOKS = frozenset({"GET", "HEAD"})
_TWICE_IS_ONCE = frozenset({"PUT", "DELETE"})
_SHOWN = 5  # refused operations, or names, that one message lists


def openapi_tools(
    description: str | Path | Mapping[str, Any],
    limits: Limits = LIMITS,
    fetch: Fetch = safe_fetch,
    *,
    base_url: str | None = None,
    operations: str | Iterable[str] | None = None,
    without: str | Iterable[str] = (),
    auth: str | Mapping[str, str] | None = None,
    effects: str | Mapping[str, str] | None = None,
    prefix: str = "",
    private: bool = False,
    public: bool | None = None,
    own_network: bool = False,
    slashes: bool = False,
) -> list[Tool]:
    """The tools of a description of OpenAPI 3.0 or 3.1: a file (`.json`, `.yaml`), or its value.

    base_url     where requests go; else the document's one public https server
    operations   those that become tools, by their names or as `GET /pets`; else all. `without`: all but these
    auth         what is sent along: `Authorization: Bearer $TOKEN`, `?key: $KEY` for the query, with names of variables
                 of the environment; needs `base_url`
    effects      `search=read`: another effect than the method says, `read` or `write`
    prefix       put before the name of every tool, as in `shop.`
    private      results hold private data
    public       what a tool is given leaves the house; else so unless base_url is an address of the own network
    own_network  the name in base_url may lead into the own network, or to an unusual port
    slashes      the server keeps `%2F` apart from `/`, so that path arguments may hold slashes

    Several names or pairs stand in one text with commas between (`auth`: `;`), or in a list or mapping. Raises BadInput
    that names what cannot be used: the document, or operations and why.
    """
    _check_switches(private=private, public=public is not None and public, own_network=own_network, slashes=slashes)
    if not _PREFIX.fullmatch(prefix := str(prefix)):
        raise BadInput(f"The prefix {quote(prefix)} is none: use up to 32 letters, digits, _ . -, a letter first.")
    document = read_description(description, limits)
    server = server_of(document, base_url, own_network, limits)
    secrets = secrets_of(auth, server, given=base_url is not None)
    all_ = list(endpoints(document, limits.name_chars - len(prefix)))
    left_out = _found(without, all_)
    wanted = [each for each in (all_ if operations is None else _found(operations, all_)) if each not in left_out]
    declared = _effects(effects, wanted)
    _check_number(wanted, limits)
    tools: list[Tool] = []
    refused: list[str] = []
    for endpoint in wanted:
        try:
            operation = read_operation(endpoint, document, secrets.names, base_url is not None, limits)
        except BadInput as error:
            refused.append(f"{endpoint.name} ({str(error).rstrip('.')})")
            continue
        effect = declared.get(endpoint.title, Effect.READ if operation.method in _LOOKS else Effect.WRITE)
        caller = _caller(operation, effect, server, secrets, slashes, limits, fetch)
        tools.append(_tool(prefix + endpoint.name, caller, effect, private, server.away if public is None else public))
    if refused:
        more = f" and {len(refused) - _SHOWN} more" if len(refused) > _SHOWN else ""
        raise BadInput(
            f"{len(refused)} of {len(wanted)} operations can be no tools: {', '.join(refused[:_SHOWN])}{more}; "
            "leave them out (without), or choose others (operations)."
        )
    return tools


def _check_switches(**switches: object) -> None:
    for name, value in switches.items():
        if not isinstance(value, bool):  # a command's option may be any text, and "no" would count as a yes
            raise BadInput(f"Say true or false for {name}, not {quote(str(value))}.")


def _caller(
    operation: Operation,
    effect: Effect,
    server: Server,
    secrets: Secrets,
    slashes: bool,
    limits: Limits,
    fetch: Fetch,
) -> Caller:
    writes = effect is Effect.WRITE
    repeatable = not writes or operation.keyed or operation.method in _TWICE_IS_ONCE
    return Caller(operation, server, secrets, writes, repeatable, slashes, limits, fetch)


def _tool(name: str, caller: Caller, effect: Effect, private: bool, public: bool) -> Tool:
    operation, writes = caller.operation, effect is Effect.WRITE
    context = "context"
    while context in operation.schema["properties"]:
        context += "_"

    def run(**arguments: Any) -> str:
        told: ToolContext | None = arguments.pop(context, None) if operation.keyed else None
        return caller(arguments, told.key if told else "")

    where = f"({operation.method} {caller.server.url}{operation.path})"  # a person approves where it goes, too
    return Tool(
        name=name,
        description=f"{operation.description} {where}".lstrip(),
        parameters=operation.schema,
        effect=effect,
        run=run,
        bounded=True,
        context_parameter=context if operation.keyed else None,
        idempotent=writes and operation.method in _TWICE_IS_ONCE,
        keyed=writes and operation.keyed,
        private=private,
        public=public,
    )


def _listed(names: str | Iterable[str]) -> list[str]:
    listed = str(names).split(",") if isinstance(names, str | int | float) else list(names)  # a command's option: 7
    return [name.strip() for name in listed if name.strip()]


def _found(names: str | Iterable[str], all_: list[Endpoint]) -> list[Endpoint]:
    """The operations that are named, in the document's order."""
    asked = _listed(names)
    known = {name for each in all_ for name in (each.name, each.title)}
    for name in asked:
        if name not in known:
            some = ", ".join(each.name for each in all_[:_SHOWN])
            raise BadInput(f"The description has no operation {quote(str(name))}; it begins with {some}.")
    return [each for each in all_ if each.name in asked or each.title in asked]


def _effects(effects: str | Mapping[str, str] | None, wanted: list[Endpoint]) -> dict[str, Effect]:
    """The effect that the operator declares, by method and path."""
    if not isinstance(effects, Mapping):
        effects = {name: effect for name, _, effect in (pair.partition("=") for pair in _listed(effects or ""))}
    declared: dict[str, Effect] = {}
    for name, effect in effects.items():
        if effect not in (Effect.READ, Effect.WRITE):
            raise BadInput(f"The effect of {quote(name)} is either read or write, not {quote(str(effect))}.")
        declared |= {each.title: Effect(effect) for each in _found([name], wanted)}
    return declared


def _check_number(wanted: list[Endpoint], limits: Limits) -> None:
    if not wanted:
        raise BadInput("The description has no operations, or none is left: choose others (operations, without).")
    if len(wanted) > limits.openapi_tools:
        raise BadInput(
            f"The description has {len(wanted)} operations: choose at most {limits.openapi_tools} (operations)."
        )
    name, count = Counter(each.name for each in wanted).most_common(1)[0]
    if count > 1:
        first, second = [each.title for each in wanted if each.name == name][:2]
        raise BadInput(
            f"Two operations are named {quote(name)}: leave out {quote(first)} or {quote(second)} (without)."
        )
