"""The arguments of a call <-> text: `Calculator(18 / 24)`, or `Weather(city="Oslo", days=2)`.

A tool whose schema requires exactly one argument, a string, takes that string as it stands, spaces included:
`Search(a town on a fjord)`. With more than that, `Search(query="a town on a fjord", page=2)`, and for any other tool,
arguments are `key=JSON` pairs, where a key that is no identifier is written as a JSON string. Where such a tool has
optional arguments too, text that begins like a pair is read as pairs, and nothing at all as no argument.

Raw text is data and is escaped like a result (`markers.escape`). JSON values are not escaped a second time: brackets of
arrays stay bare, since inside the parentheses of a call no marker ends it; only inside JSON *strings* are the start of
a marker and a parenthesis without a partner written as `\\u005b`. So every value is plain JSON to any reader, and what
a model writes from its knowledge of JSON is read as it was meant.

Not covered: whether the arguments fit the tool's schema. That is the gate's question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from toolwise.core.errors import BadInput, InvalidArguments, MalformedCall
from toolwise.core.jsonio import dumps, loads, plain
from toolwise.core.limits import LIMITS
from toolwise.core.schema import raw_argument
from toolwise.notation.markers import NAME, PLAIN, Notation, escape, guard, marker_starts, unescape

# An unterminated string reaches to the end, so that looking for strings stays linear; as JSON it is refused later.
_STRING = r'"(?:[^"\\]|\\.)*+"?'
_TOKENS = re.compile(_STRING + r"|[\[\]{},]", re.DOTALL)
_PAIR = re.compile(rf'[ \t]*(?P<key>{_STRING}|[^\s="]+)[ \t]*=(?P<value>.*)', re.DOTALL)
_PAIR_START = re.compile(rf"[ \t]*(?:{_STRING}|[^\W\d]\w*)[ \t]*=|\Z", re.DOTALL)


class Signature(Protocol):
    """What is needed of a tool: one that could be run, or one that a request only declares."""

    @property
    def name(self) -> str: ...

    @property
    def parameters(self) -> Mapping[str, Any]: ...


def write_body(tool: Signature, arguments: Mapping[str, Any], notation: Notation = PLAIN) -> str:
    """`Calculator(18 / 24)`, or `Weather(city="Oslo", days=2)` for a tool that takes more than one required string.

    Raises BadInput for a name that cannot be written, InvalidArguments for arguments that cannot be (no finite JSON,
    or not the one text that the tool takes).
    """
    if not NAME.fullmatch(tool.name):
        raise BadInput(f"Rename the tool {tool.name!r}; inline names are up to 64 of A-Z, a-z, 0-9, '_', '.' and '-'.")
    raw = _raw(tool, arguments, notation)
    if raw is None:
        values = plain(arguments, InvalidArguments, LIMITS.json_size)
        written = ", ".join(f"{write_key(key)}={dumps(value)}" for key, value in values.items())
        raw = guarded_json(written, notation)
    return f"{tool.name}({raw})"


def _raw(tool: Signature, arguments: Mapping[str, Any], notation: Notation) -> str | None:
    """The one text that the tool takes, as it is written; None where pairs are to be written."""
    parameter = raw_argument(tool.parameters)
    if parameter is None:
        return None
    text = arguments.get(parameter)
    if len(arguments) == 1 and isinstance(text, str):
        written = guard(escape(text, notation), lambda parenthesis: chr(92) + parenthesis)
        if not _has_options(tool) or not _PAIR_START.match(written):
            return written
    elif not _has_options(tool):
        raise InvalidArguments(f"Give {tool.name} exactly one argument, the text {parameter!r}.")
    return None


def _has_options(tool: Signature) -> bool:
    return len(tool.parameters["properties"]) > 1


def read_arguments(raw: str, tool: Signature, notation: Notation = PLAIN) -> dict[str, Any]:
    """The arguments that `raw` says, by the tool's schema; `raw` is what `read_body` found between the parentheses.

    Raises MalformedCall, or InvalidArguments for a JSON string that is too long or cannot be encoded.
    """
    parameter = raw_argument(tool.parameters)
    if parameter is not None and not (_has_options(tool) and _PAIR_START.match(raw)):
        return {parameter: unescape(raw, notation)}
    arguments: dict[str, Any] = {}
    for part in _split(raw) if raw.strip(" \t") else ():
        key, value = _read_pair(part)
        if key in arguments:
            raise MalformedCall(f"Give the argument {key!r} only once.")
        arguments[key] = value
    return arguments


def write_key(key: str) -> str:
    """A key of a pair, unguarded."""
    return key if key.isidentifier() else dumps(key)


def guarded_json(written: str, notation: Notation) -> str:
    """JSON as it stands inside parentheses: strings hold no bare start of a marker, and parentheses pair."""
    starts = re.compile(marker_starts(notation))
    strings = re.sub(_STRING, lambda string: starts.sub(lambda found: _code(found[0]), string[0]), written)
    return guard(strings, _code)


def _code(character: str) -> str:
    """A character as JSON's own escape; one beyond U+FFFF takes two."""
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def _split(raw: str) -> Iterator[str]:
    """The text between the commas that stand outside strings and brackets."""
    depth = start = 0
    for token in _TOKENS.finditer(raw):
        if token[0] == "," and depth == 0:
            yield raw[start : token.start()]
            start = token.end()
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
    yield raw[start:]


def _read_pair(part: str) -> tuple[str, Any]:
    found = _PAIR.fullmatch(part)
    if not found:
        raise MalformedCall("Write the arguments as key=JSON value, separated by commas.")
    key = found["key"]
    if key.startswith('"'):
        key = loads(key)
    elif not key.isidentifier():
        raise MalformedCall("Write a key that is not an identifier as a JSON string.")
    return key, loads(found["value"].strip(" \t"))
