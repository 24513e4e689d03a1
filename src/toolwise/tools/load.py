"""Tools from a Python file of the user: whatever `Tool` stands in it under a public name.

Not covered: what a Python file does. To import it is to run it, with all that this process may do; only files that the
user chose are given to this module, never one that a model named.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from toolwise.core import jsonio
from toolwise.core.errors import BadInput
from toolwise.core.types import Tool


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
