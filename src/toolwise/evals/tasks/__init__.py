"""The sets of questions that the paper asks, and a few more: `TASKS` by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from toolwise.evals.tasks.base import Task

TASKS: Mapping[str, Task] = MappingProxyType({})
