"""Settings files: TOML in, plain values out; and a text as TOML writes it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from toolwise.core.errors import BadInput
from toolwise.core.jsonio import check_text, printable
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


def quoted(text: str) -> str:
    """A string of TOML on one line, what nobody could see in it written as an escape. Raises BadInput."""
    check_text(text, BadInput)
    return f'"{"".join(map(_written, text))}"'


def _written(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if printable(character) == character:
        return character
    code = ord(character)
    return _SHORT.get(character) or (f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}")


_SHORT = {"\n": "\\n", "\t": "\\t"}
