"""What the tools of MCP servers are called here: `server__tool`, and back.

The name is made of the configured server's name and the tool's own, of nothing else: not of the order in which servers
answered, and not of what else they have. It fits every API that takes names (letters, digits, `_` and `-`). What does
not fit stands as its number in hexadecimal, `calendar.update` as `calendar__2e__update`; so does an underscore beside
another one, so that no two names become one. A name that would be too long ends in a digest of the whole, `__x` and 16
digits: it cannot be read back from its letters alone.
"""

from __future__ import annotations

import hashlib
import re

from toolwise.core.errors import BadInput
from toolwise.core.jsonio import quote

#: No underscores, so that the first two in a row end it.
SERVER = re.compile(r"[A-Za-z](?:[A-Za-z0-9-]{0,22}[A-Za-z0-9])?")
_ODD = re.compile(r"[^A-Za-z0-9_-]|_(?=_|[^A-Za-z0-9_-])|(?<=_)_|(?<=[^A-Za-z0-9_-])_")
_ESCAPE = re.compile(r"__([0-9a-f]{2,6})__")
_MARK, _DIGITS = "__x", 16


def full_name(server: str, tool: str, name_chars: int) -> str:
    """The name of a server's tool. Raises BadInput for a name that is none."""
    if not SERVER.fullmatch(server):
        raise BadInput(f"The server's name {quote(server)} is none: up to 24 letters, digits and -, a letter first.")
    if not tool or len(tool) > 16 * name_chars or not tool.isprintable():
        raise BadInput(f"the name {quote(tool)} is none: give it some characters that print")
    name = f"{server}__{_ODD.sub(_escaped, tool)}"
    if len(name) <= name_chars and not _cut(name):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
    return name[: name_chars - len(_MARK) - _DIGITS].rstrip("_") + _MARK + digest


def parts(name: str) -> tuple[str, str] | None:
    """Server and tool of a name that was not cut."""
    server, marks, tool = name.partition("__")
    if not (marks and SERVER.fullmatch(server)) or _cut(name):
        return None
    found = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), tool)
    return (server, found) if found and name == full_name(server, found, len(name)) else None


def _escaped(odd: re.Match[str]) -> str:
    return f"__{ord(odd[0]):02x}__"


def _cut(name: str) -> bool:
    return re.search(rf"{_MARK}[0-9a-f]{{{_DIGITS}}}$", name) is not None
