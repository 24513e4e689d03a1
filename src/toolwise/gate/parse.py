"""What a model wrote becomes a name and arguments: strictly, whole, and in one way only.

Covered: calls that were never closed; JSON that repeats a key, nests too deeply or holds more than a name and
arguments; running text that the notation does not know. Nothing is repaired, and no text is coerced into a type. Not
covered: whether the tool exists and the arguments fit it, which the registry says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolwise.core import jsonio
from toolwise.core.errors import MalformedCall, TruncatedCall
from toolwise.core.limits import Limits
from toolwise.core.types import Call, Tool, WrittenCall
from toolwise.notation import inline

Arguments = Mapping[str, Any]


def parse(
    call: Call | WrittenCall, notation: inline.Notation, limits: Limits
) -> tuple[str, Callable[[Tool], Arguments]]:
    """The name, and a function that gives the arguments once the tool is known.

    Both raise MalformedCall, TruncatedCall and InvalidArguments.
    """
    if isinstance(call, Call):
        given = call.arguments
        return call.name, lambda tool: given
    most = limits.call_chars if call.form == "inline" else limits.argument_bytes
    if not call.complete or len(call.text) > most:
        raise TruncatedCall(f"The call was not closed within {most} characters: write it shorter and close it.")
    if call.form == "inline":
        name, raw = inline.read_body(call.text, notation)
        return name, lambda tool: inline.read_arguments(raw, tool, notation)
    match jsonio.loads(call.text, limits):
        case {"name": str(name), "arguments": dict(arguments), **rest} if not rest:
            return name, lambda tool: arguments
    raise MalformedCall('A call is an object with exactly "name" (a string) and "arguments" (an object).')
