"""Toolwise teaches an open language model when and how to call tools, and runs those calls safely.

These are the names that most programs need; each is loaded when it is first used, so that whoever only runs calls
imports no torch. Everything else stands in the package's modules.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolwise.core.errors import ToolwiseError
    from toolwise.core.types import (
        Call,
        CallContext,
        Document,
        Effect,
        Labels,
        Principal,
        Result,
        Tool,
        ToolContext,
        WrittenCall,
    )
    from toolwise.decode.engine import CallEnded, CallStarted, DecodeSettings, Stop, Text, generate
    from toolwise.documents.read import read_documents
    from toolwise.gate.budget import Budgets, Cap
    from toolwise.gate.definitions import Definitions
    from toolwise.gate.gate import Gate
    from toolwise.gate.offline import offline_gate
    from toolwise.gate.policy import CedarPolicy
    from toolwise.gate.rates import Rates
    from toolwise.gate.state import open_state
    from toolwise.gate.turn import execute_all
    from toolwise.models.base import LanguageModel
    from toolwise.models.hub import pull
    from toolwise.models.load import load_model
    from toolwise.models.scripted import ScriptedModel
    from toolwise.models.toolbox import toolbox
    from toolwise.notation.markers import Notation
    from toolwise.teach.annotate import annotate, annotate_rounds, load_augmented
    from toolwise.teach.config import Settings, load_settings
    from toolwise.teach.export.formats import export
    from toolwise.teach.export.run import finished_run
    from toolwise.teach.report.summary import summarise
    from toolwise.teach.train import TrainSettings, train
    from toolwise.tools.builtin import builtin_registry
    from toolwise.tools.confined.fetch import safe_fetch
    from toolwise.tools.confined.paths import ConfinedFolder
    from toolwise.tools.confined.query import safe_query
    from toolwise.tools.index.build import build_index
    from toolwise.tools.index.index import Index
    from toolwise.tools.mcp.tools import mcp_tools
    from toolwise.tools.openapi.tools import openapi_tools
    from toolwise.tools.registry import Registry, tool

__version__ = "0.1.0"

_HOMES = {
    "core.errors": ("ToolwiseError",),
    "core.types": (
        *("Call", "CallContext", "Document", "Effect", "Labels", "Principal", "Result", "Tool", "ToolContext"),
        "WrittenCall",
    ),
    "decode.engine": ("CallEnded", "CallStarted", "DecodeSettings", "Stop", "Text", "generate"),
    "documents.read": ("read_documents",),
    "gate.budget": ("Budgets", "Cap"),
    "gate.definitions": ("Definitions",),
    "gate.gate": ("Gate",),
    "gate.offline": ("offline_gate",),
    "gate.policy": ("CedarPolicy",),
    "gate.rates": ("Rates",),
    "gate.state": ("open_state",),
    "gate.turn": ("execute_all",),
    "models.base": ("LanguageModel",),
    "models.hub": ("pull",),
    "models.load": ("load_model",),
    "models.scripted": ("ScriptedModel",),
    "models.toolbox": ("toolbox",),
    "notation.markers": ("Notation",),
    "teach.annotate": ("annotate", "annotate_rounds", "load_augmented"),
    "teach.config": ("Settings", "load_settings"),
    "teach.export.formats": ("export",),
    "teach.export.run": ("finished_run",),
    "teach.report.summary": ("summarise",),
    "teach.train": ("TrainSettings", "train"),
    "tools.builtin": ("builtin_registry",),
    "tools.confined.fetch": ("safe_fetch",),
    "tools.confined.paths": ("ConfinedFolder",),
    "tools.confined.query": ("safe_query",),
    "tools.index.build": ("build_index",),
    "tools.index.index": ("Index",),
    "tools.mcp.tools": ("mcp_tools",),
    "tools.openapi.tools": ("openapi_tools",),
    "tools.registry": ("Registry", "tool"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Budgets",
    "Call",
    "CallContext",
    "CallEnded",
    "CallStarted",
    "Cap",
    "CedarPolicy",
    "ConfinedFolder",
    "DecodeSettings",
    "Definitions",
    "Document",
    "Effect",
    "Gate",
    "Index",
    "Labels",
    "LanguageModel",
    "Notation",
    "Principal",
    "Rates",
    "Registry",
    "Result",
    "ScriptedModel",
    "Settings",
    "Stop",
    "Text",
    "Tool",
    "ToolContext",
    "ToolwiseError",
    "TrainSettings",
    "WrittenCall",
    "__version__",
    "annotate",
    "annotate_rounds",
    "build_index",
    "builtin_registry",
    "execute_all",
    "export",
    "finished_run",
    "generate",
    "load_augmented",
    "load_model",
    "load_settings",
    "mcp_tools",
    "offline_gate",
    "open_state",
    "openapi_tools",
    "pull",
    "read_documents",
    "safe_fetch",
    "safe_query",
    "summarise",
    "tool",
    "toolbox",
    "train",
]


def __getattr__(name: str) -> Any:
    """A public name, from the module that holds it. Raises ModelUnavailable where packages for it are missing."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    except ModuleNotFoundError as error:
        errors = import_module(f"{__name__}.core.errors")
        raise errors.ModelUnavailable(
            f"toolwise.{name} needs more packages ({error.name}): pip install 'toolwise[teach]'."
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
