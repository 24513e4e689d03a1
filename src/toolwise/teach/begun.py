"""What a run was begun with, read back from its folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from toolwise.core.errors import BadInput
from toolwise.teach.config import Settings
from toolwise.teach.keep import prices
from toolwise.teach.store import Store


def settings_of(store: Store) -> Settings:
    """Its settings. Raises BadInput for a folder of another kind."""
    try:
        return Settings.model_validate(store.settings["settings"])
    except (KeyError, ValidationError) as error:
        raise BadInput(
            f"{str(store.folder)!r} is not the folder of an annotation run; give the one it wrote."
        ) from error


def prices_of(store: Store, settings: Settings) -> dict[str, float]:
    """What a call of each tool had to gain beyond its threshold."""
    tools: Mapping[str, Mapping[str, Any]] = store.settings.get("tools", {})
    return prices(settings, {name: float(tools.get(name, {}).get("cost", 0.0)) for name in settings.tools})
