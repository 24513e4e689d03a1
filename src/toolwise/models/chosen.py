"""What was found best for a model by measuring it, kept in the `toolwise.json` beside its weights.

    {"calling": {"start_threshold": 0.1, "chosen": {"rule": "score", "tasks": ...}}}

It changes no weights, and so no fingerprint: a run says in its own settings how it decodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolwise.core import jsonio
from toolwise.core.durable import replace_file
from toolwise.core.errors import BadInput, ModelUnavailable
from toolwise.models.hub import resolve
from toolwise.models.load import note_of
from toolwise.models.pulled import NOTE

_CALLING = "calling"


def chosen_threshold(name: str) -> float | None:
    """The start threshold that a model's folder carries; None where it carries none. Raises ModelUnavailable."""
    kept = note_of(resolve(name)).get(_CALLING)
    if kept is None:
        return None
    threshold = kept.get("start_threshold") if isinstance(kept, dict) else None
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= 1:
        raise ModelUnavailable(f"{NOTE} of the model {name!r} holds no start_threshold in 0..1; choose it again.")
    return float(threshold)


def keep_threshold(name: str, threshold: float, chosen: Mapping[str, Any]) -> Path:
    """Keep it in the model's folder, with what it was `chosen` on; the file that was written.

    Raises BadInput for a model that is no folder here, StorageUnavailable.
    """
    folder = resolve(name)
    if not isinstance(folder, Path):
        raise BadInput(f"{name!r} is no folder of yours; nothing can be kept in it. Give --start-threshold instead.")
    note = note_of(folder) | {_CALLING: {"start_threshold": threshold, "chosen": dict(chosen)}}
    replace_file(folder / NOTE, (jsonio.pretty(note) + "\n").encode())
    return folder / NOTE
