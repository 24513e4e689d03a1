"""Settings files: TOML in, plain values out."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS, Limits


def read_toml(file: Path, limits: Limits = LIMITS) -> dict[str, Any]:
    """The tables of a file. Raises BadInput naming the file and, where it is not TOML, the line."""
    try:
        with file.open("rb") as stream:
            data = stream.read(limits.settings_bytes + 1)
    except OSError as error:
        raise BadInput(f"Cannot read the settings file {str(file)!r}: {error.strerror or error}.") from error
    if len(data) > limits.settings_bytes:
        raise BadInput(f"{str(file)!r} has more than {limits.settings_bytes} bytes; is it a settings file?")
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadInput(f"{str(file)!r} is not TOML: it is not UTF-8 at byte {error.start}.") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:  # the parser recurses into lists in lists
        raise BadInput(f"{str(file)!r} is not TOML: {error}.") from error
