"""The sets of questions that the paper asks, and a few more: `TASKS` by name, `named` for several of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from toolwise.core.errors import BadInput
from toolwise.evals.tasks import date_understanding, dateset, lama, questions, reading, word_problems
from toolwise.evals.tasks.base import Example, Loaded, Source, Table, Task, Verdict
from toolwise.evals.tasks.source import data_source, sample

__all__ = [
    "FAMILIES",
    "TASKS",
    "Example",
    "Loaded",
    "Source",
    "Table",
    "Task",
    "Verdict",
    "data_source",
    "named",
    "sample",
]

#: Their modules, which say how each is asked.
FAMILIES = (lama, word_problems, questions, reading, dateset, date_understanding)

TASKS: Mapping[str, Task] = MappingProxyType({task.name: task for family in FAMILIES for task in family.TASKS})


def named(names: Sequence[str]) -> list[Task]:
    """The tasks of these names, each once; `lama`, `mlqa` and `xquad` stand for all that begin so.

    Raises BadInput for a name that no task has.
    """
    found: dict[str, Task] = {}
    for name in names:
        tasks = [task for task in TASKS.values() if task.name == name or task.name.startswith(f"{name}-")]
        if not tasks or (name not in TASKS and name not in ("lama", "mlqa", "xquad")):
            raise BadInput(f"There is no task {name!r}; use {', '.join(TASKS)}, or lama, mlqa, xquad for all of them.")
        found |= {task.name: task for task in tasks}
    return list(found.values())
