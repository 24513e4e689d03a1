"""What can be called: `@tool` makes a tool of a typed function, `Registry` holds the tools of one run.

Covered: two tools never share a name, a name is never guessed (what resolves is byte for byte what was registered),
no schema is accepted that cannot be validated safely, and a change of what was approved changes a hash.

Not covered: whether a tool does what it says. Its effect is its author's word, and the gate acts on it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from functools import wraps
from inspect import iscoroutinefunction
from types import MappingProxyType
from typing import Any, overload

from toolwise.core import jsonio
from toolwise.core.errors import BadInput, UnknownTool
from toolwise.core.jsonio import quote
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.schema import Signature, Validator, signature
from toolwise.core.types import Effect, Tool

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    effect: Effect = Effect.WRITE,
    bounded: bool = False,
    seconds: float | None = None,
    idempotent: bool = False,
    keyed: bool = False,
    cost: float = 0.0,
    trusted: bool = False,
    private: bool = False,
    public: bool = False,
    resource: str = "",
    examples: Iterable[str] = (),
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    effect: Effect = Effect.WRITE,
    bounded: bool = False,
    examples: Iterable[str] = (),
    **declared: Any,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a typed function: `@tool`, or `@tool(effect=Effect.READ, bounded=True)`.

    What else can be declared (`seconds`, `idempotent`, `keyed`, `cost`, `trusted`, `private`, `public`, `resource`,
    `examples`) is explained at `Tool`.

    Name, description and schema are the function's own. Without a word on its effect a tool counts as `write`: the
    gate then asks for leave, writes its intent down first and never repeats it blindly. The mistake of calling a
    reader a writer costs a question; the other one costs what the writer does. Raises BadInput.
    """

    def make(function: Callable[..., Any]) -> Tool:
        described = signature(function)
        own = name if name is not None else function.__name__
        _check_name(own, LIMITS)
        return Tool(
            name=own,
            description=described.description,
            parameters=described.parameters,
            effect=effect,
            run=_runner(function, described),
            bounded=bounded,
            context_parameter=described.context_parameter,
            examples=tuple(examples),
            **declared,
        )

    return make if function is None else make(function)


class Registry(Mapping[str, Tool]):
    """The tools of one run, by name; never changes.

    Raises BadInput when two tools have one name, when a name is no name, when a schema cannot be used safely, when a
    deadline is given that nobody could enforce, and a cost that no budget could count.
    """

    def __init__(self, tools: Iterable[Tool], limits: Limits = LIMITS) -> None:
        by_name: dict[str, Tool] = {}
        validators: dict[str, Validator] = {}
        for each in tools:
            _check_name(each.name, limits)
            _check_deadline(each)
            _check_cost(each)
            if each.name in by_name:
                raise BadInput(f"two tools are named {quote(each.name)}: give one of them another name")
            try:
                validators[each.name] = Validator(each.parameters, limits)
            except BadInput as error:
                raise BadInput(f"tool {quote(each.name)}: {error}") from None
            by_name[each.name] = each
        self._tools: Mapping[str, Tool] = MappingProxyType(by_name)
        self._validators = validators
        self._hashes = {name: definition_hash(each) for name, each in by_name.items()}
        self._fingerprint = jsonio.fingerprint(
            {name: jsonio.fingerprint(_words(each)) for name, each in by_name.items()}
        )

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    @property
    def names(self) -> tuple[str, ...]:
        """In the order in which the tools were given."""
        return tuple(self._tools)

    @property
    def fingerprint(self) -> str:
        """Changes with what a model is told of any tool, and with its effect; not with the order."""
        return self._fingerprint

    def hash_of(self, name: str) -> str:
        """The `definition_hash` of a tool of this registry."""
        return self._hashes[name]

    def resolve(self, name: str) -> Tool:
        """The tool with exactly this name. Raises UnknownTool, which names the nearest ones as text only."""
        found = self._tools.get(name)
        if found is None:
            near = _nearest(name, self._tools)
            hint = f"; the nearest are {', '.join(map(quote, near))}" if near else "; use one that is listed"
            raise UnknownTool(f"no tool is named {quote(name)}{hint}")
        return found

    def validator(self, name: str) -> Validator:
        """The compiled schema of a tool. Raises UnknownTool."""
        return self._validators[self.resolve(name).name]


def definition(tool: Tool) -> dict[str, Any]:
    """What a person approves: name, description, all that is declared of the tool, parameters."""
    declared = {name: getattr(tool, name) for name in _DECLARED}
    return _plain({"name": tool.name, "description": tool.description, **declared, "parameters": tool.parameters})


# All but the function, how it is called, and what only teaching shows: a new declaration is pinned from its first day.
_DECLARED = [
    field.name
    for field in fields(Tool)
    if field.name not in ("name", "description", "parameters", "run", "context_parameter", "examples")
]


def _words(tool: Tool) -> dict[str, Any]:
    described = {"name": tool.name, "description": tool.description}
    return _plain(described | {"effect": tool.effect, "parameters": tool.parameters})


def _plain(told: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = jsonio.plain(told, BadInput, LIMITS.json_size)
    return plain


def definition_hash(tool: Tool) -> str:
    """The fingerprint of the definition."""
    return jsonio.fingerprint(definition(tool))


def _runner(function: Callable[..., Any], described: Signature) -> Callable[..., Any]:
    """The function behind the tool, with JSON arguments turned into the types that it is annotated with."""
    context = described.context_parameter

    def bound(arguments: dict[str, Any]) -> dict[str, Any]:
        extra = {context: arguments.pop(context)} if context is not None and context in arguments else {}
        return described.bind(arguments) | extra

    if iscoroutinefunction(function):

        @wraps(function)
        async def run_async(**arguments: Any) -> Any:
            return await function(**bound(arguments))

        return run_async

    @wraps(function)
    def run(**arguments: Any) -> Any:
        return function(**bound(arguments))

    return run


def _check_name(name: str, limits: Limits) -> None:
    if len(name) > limits.name_chars or not _NAME.fullmatch(name):
        raise BadInput(
            f"tool name {quote(name)}: use at most {limits.name_chars} letters, digits, _ . and -, a letter or _ first"
        )


def _check_deadline(tool: Tool) -> None:
    if tool.seconds is None:
        return
    if not 0 < tool.seconds < math.inf:
        raise BadInput(f"tool {quote(tool.name)}: give a deadline in seconds")
    if tool.bounded and not iscoroutinefunction(tool.run):
        raise BadInput(
            f"tool {quote(tool.name)}: what runs in this process cannot be ended; leave out bounded or seconds"
        )


def _check_cost(tool: Tool) -> None:
    if not 0 <= tool.cost < math.inf:
        raise BadInput(f"tool {quote(tool.name)}: give its cost as a number that is not negative")


def _nearest(name: str, names: Iterable[str]) -> list[str]:
    """At most three names within a third of the name's length, at least two edits; look-alikes folded."""
    folded = unicodedata.normalize("NFKC", name[: LIMITS.name_chars]).casefold()[: LIMITS.name_chars]
    most = max(2, len(folded) // 3)
    close = [other for other in names if abs(len(other) - len(folded)) <= most]
    ranked = sorted((_edits(folded, other.casefold()), other) for other in close)
    return [other for edits, other in ranked[:3] if edits <= most]


def _edits(a: str, b: str) -> int:
    """Levenshtein distance."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]
