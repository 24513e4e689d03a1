"""Small JSON files that vouch for themselves: readable by people, and refused when a single bit changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolwise.core import jsonio
from toolwise.core.durable import storage
from toolwise.core.errors import BadInput, Corrupt, ToolwiseError
from toolwise.core.limits import LIMITS

_SEAL = "sha256"


def seal(value: Mapping[str, Any]) -> bytes:
    """The file for an object: its JSON and, in one more field, the digest of the rest. Raises BadInput for no JSON."""
    plain = jsonio.plain(value, BadInput, LIMITS.json_size)
    return (jsonio.pretty({**plain, _SEAL: jsonio.fingerprint(plain)}) + "\n").encode()


def read_sealed(path: Path) -> dict[str, Any]:
    """The object that `seal` was given. Raises Corrupt when the file is not what `seal` made."""
    with storage(path):
        data = path.read_bytes()
    try:
        value = jsonio.loads(data, replace(LIMITS, string_bytes=LIMITS.json_size))
        seal_found = value.pop(_SEAL, None) if isinstance(value, dict) else None
        # The whole text is compared, so that a change which parses to the same value is found too.
        if seal_found is not None and seal(value) == data:
            return dict(value)
    except ToolwiseError:
        pass
    raise Corrupt(f"{str(path)!r} is damaged; restore it, or choose another folder and run again")
