"""What is exported: the rows of C*, the tools that their calls are for, and what the run was made with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from toolwise.core.errors import BadInput, ModelFault
from toolwise.core.types import Effect, Tool
from toolwise.notation.inline import read_arguments, read_body
from toolwise.teach.records import Augmented
from toolwise.teach.store import Store
from toolwise.teach.weave import unweave


@dataclass(frozen=True, slots=True)
class Run:
    """`tools` are definitions: `name`, `description`, `effect`, and the JSON Schema `parameters`.

    `rows` may be an iterator, read once. `fingerprint` and `settings` are those of the run's folder.
    """

    rows: Iterable[Augmented]
    tools: Sequence[Mapping[str, Any]]
    fingerprint: str
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WovenCall:
    """A call of a row: `text[start:end]` is all of it, and in the plain text it stands before the character `at`."""

    at: int
    start: int
    end: int
    tool: str
    arguments: dict[str, Any]
    result: str | None


def finished_run(folder: Path) -> Run:
    """The run in a folder. Raises BadInput for one that is not finished, Corrupt for one that is damaged."""
    store = Store.load(folder)
    tools = store.settings.get("tools")
    if not isinstance(tools, Mapping):
        raise BadInput(
            f"The run in {str(folder)!r} does not keep what its tools are; annotate again, to another folder."
        )
    return Run(store.read("augmented", Augmented), list(tools.values()), store.fingerprint, store.settings)


def callable_by_name(tools: Iterable[Mapping[str, Any]]) -> dict[str, Tool]:
    """Tools of their definitions, for reading arguments. None of them can be run."""
    return {
        each["name"]: Tool(each["name"], each["description"], each["parameters"], Effect(each["effect"]), _not_here)
        for each in tools
    }


def calls_of(row: Augmented, tools: Mapping[str, Tool]) -> list[WovenCall]:
    """The calls of a row in order, with their arguments as values.

    Raises BadInput for a row whose text and spans do not fit each other, and for a call that is for none of the tools.
    """
    calls = []
    for at, found in unweave(row):
        name, raw = read_body(found.body)
        if name not in tools:
            raise BadInput(f"Passage {row.passage!r} calls {name!r}, which is not among the run's tools.")
        try:
            arguments = read_arguments(raw, tools[name])
        except ModelFault as error:
            raise BadInput(f"A call of passage {row.passage!r} does not fit its tool {name!r}: {error}.") from error
        calls.append(WovenCall(at, found.start, found.end, name, arguments, found.result))
    return calls


def _not_here(**_: Any) -> NoReturn:
    raise BadInput("Only the definition of this tool is known here.")
