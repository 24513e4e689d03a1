"""The tools that come with the package, by name."""

from __future__ import annotations

from collections.abc import Iterable

from toolwise.core.errors import BadInput
from toolwise.tools.calculator import CALCULATOR
from toolwise.tools.calendar import CALENDAR
from toolwise.tools.registry import Registry

BUILTIN = {tool.name: tool for tool in (CALCULATOR, CALENDAR)}


def builtin_registry(names: Iterable[str] = tuple(BUILTIN)) -> Registry:
    """A registry of the named tools. Raises BadInput for a name that no tool of the package has."""
    wanted = list(names)
    for name in wanted:
        if name not in BUILTIN:
            raise BadInput(f"There is no tool {name!r}; the package brings {', '.join(BUILTIN)}.")
    return Registry([BUILTIN[name] for name in wanted])
