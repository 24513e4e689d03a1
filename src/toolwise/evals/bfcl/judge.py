"""Is an answer right? BFCL's own checker says so of calls; to call or not to call is counted here, by BFCL's rule.

The checker comes from BFCL's package, which wants a hundred megabytes of clients for models that are not asked here. It
needs none of them but for one table, of models for which points in names were replaced; names come back as they were
here, so an empty table stands in its place.

By BFCL's rule a call that cannot be read is no call: right where none was wanted. How often that happened is counted
apart, by `began`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from toolwise.core import jsonio
from toolwise.core.chat import ChatReply, StopReason
from toolwise.core.errors import BadInput, ModelFault
from toolwise.evals.bfcl.data import Example

Calls = Sequence[Mapping[str, Any]]  # one {name: arguments} a call, as the checker wants it

#: (example, calls) -> nothing where they are right, else what is wrong.
Checker = Callable[[Example, Calls], str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`why` is empty where the answer is right."""

    right: bool
    why: str = ""


def judged(example: Example, reply: ChatReply, check: Checker) -> Verdict:
    """Whether the model did what was asked. Only what would be executed counts as a call."""
    calls, unread = decoded(reply)
    if example.answers is None:
        wanted = example.category == "live_relevance"
        right = bool(calls) == wanted
        return Verdict(right, "" if right else unread or ("no call" if wanted else "called"))
    why = unread or (check(example, calls) if calls else "no call")
    return Verdict(not why, why)


def decoded(reply: ChatReply) -> tuple[Calls, str]:
    """The calls of a turn, or why none of it can be run."""
    if not reply.calls:
        return (), ""
    if reply.stop is not StopReason.CALLS:
        return (), f"calls in a turn that ended with {reply.stop.value}"
    made = []
    for call in reply.calls:
        try:
            arguments = jsonio.loads(call.arguments) if call.name and call.complete else None
        except ModelFault:
            arguments = None
        if not isinstance(arguments, dict):
            return (), "a call that cannot be read"
        made.append({call.name: arguments})
    return made, ""


def package(folder: Path | None) -> Path:
    """The folder of BFCL's package: the given one, or where it is installed. Raises BadInput."""
    found = importlib.util.find_spec("bfcl_eval") if folder is None else None
    places = list(found.submodule_search_locations or ()) if found else []
    if folder is None and not places:
        raise BadInput(
            "BFCL's package is missing: pip install --no-deps bfcl-eval==2026.3.23, "
            "or unpack its wheel and name the folder bfcl_eval in it with --data."
        )
    return Path(places[0]) if folder is None else folder


def bfcl_checker(package: Path) -> Checker:
    """The checker of the package in this folder (`.../bfcl_eval`). Raises BadInput where there is none."""
    missing = f"{str(package)!r} has no checker of BFCL's; give the folder bfcl_eval of its package."
    if not (package / "eval_checker").is_dir():
        raise BadInput(missing)
    with _importable(package):
        try:
            checker = importlib.import_module("bfcl_eval.eval_checker.ast_eval.ast_checker")
            languages = importlib.import_module("bfcl_eval.constants.enums").Language
        except ImportError as error:
            raise BadInput(missing) from error

    def check(example: Example, calls: Calls) -> str:
        language = languages(example.language)
        try:
            found = checker.ast_checker(
                list(example.functions), list(calls), example.answers, language, example.category, _MODEL
            )
        except Exception as error:  # noqa: BLE001 - it is not ours, and was written for answers of other models
            return f"the checker failed on this answer: {type(error).__name__}"
        return "" if found["valid"] else jsonio.one_line(f"{found['error_type']}: {_first(found['error'])}")[:500]

    return check


_MODEL = "toolwise"
_TABLE = "bfcl_eval.constants.model_config"


class _AsWritten:
    """The table of models: all of them write a name as it is."""

    def __getitem__(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(underscore_to_dot=False)


@contextmanager
def _importable(package: Path) -> Iterator[None]:
    table: Any = ModuleType(_TABLE)
    table.MODEL_CONFIG_MAPPING = _AsWritten()
    before = sys.modules.get(_TABLE)
    sys.modules[_TABLE] = table
    sys.path.insert(0, str(package.resolve().parent))
    try:
        yield
    finally:
        sys.path.remove(str(package.resolve().parent))
        if before is None:
            del sys.modules[_TABLE]
        else:
            sys.modules[_TABLE] = before


def _first(errors: Any) -> str:
    return str(errors[0]) if isinstance(errors, list) and errors else str(errors)
