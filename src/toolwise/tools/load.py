"""Tools from a file of the user: whatever `Tool` stands in a Python file under a public name, or what an OpenAPI
description describes.

Not covered: what a Python file does. To import it is to run it, with all that this process may do; only files that the
user chose are given to this module, never one that a model named.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from toolwise.core import jsonio
from toolwise.core.errors import BadInput
from toolwise.core.types import Tool
from toolwise.tools.builtin import builtin_registry
from toolwise.tools.openapi import openapi_tools
from toolwise.tools.registry import Registry

DESCRIPTIONS = (".json", ".yaml", ".yml")
"""How the file of an OpenAPI description ends."""


def load_tools(path: Path) -> list[Tool]:
    """The tools of a Python file, in the order in which they stand there.

    Raises BadInput where the file cannot be imported or holds no tool.
    """
    name = f"toolwise_tools_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if not path.is_file() or spec is None or spec.loader is None:
        raise BadInput(f"There is no Python file {str(path)!r} with tools.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # annotations are looked up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        said = f"{type(error).__name__}: {jsonio.first_line(error)}"
        raise BadInput(f"The tools of {str(path)!r} cannot be loaded ({said}); python {path} shows where.") from error
    public = (value for key, value in vars(module).items() if not key.startswith("_"))
    found = list({id(value): value for value in public if isinstance(value, Tool)}.values())
    if not found:
        raise BadInput(f"{str(path)!r} holds no tool: put @tool from toolwise above a function.")
    return found


def chosen_tools(wanted: Iterable[str], options: Mapping[str, Mapping[str, Any]] | None = None) -> Registry:
    """The registry of what a command was given: files of tools (`mine.py`), OpenAPI descriptions (`api.yaml`,
    `api.json`), and names of tools that the package brings.

    `options` has the keywords of `openapi_tools` by the description's name. Raises BadInput.
    """
    tools: list[Tool] = []
    for each in wanted:
        if each.endswith(".py"):
            tools += load_tools(Path(each))
        elif each.endswith(DESCRIPTIONS):
            tools += openapi_tools(each, **(options or {}).get(each, {}))
        else:
            tools += builtin_registry([each]).values()
    return Registry(tools)
