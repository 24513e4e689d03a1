"""Settings files: TOML in, plain values out."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from toolwise.core.errors import BadInput


def read_toml(file: Path) -> dict[str, Any]:
    """The tables of a file. Raises BadInput naming the file and, where it is not TOML, the line."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"Cannot read the settings file {file}: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{file} is not TOML: {error}.") from error
