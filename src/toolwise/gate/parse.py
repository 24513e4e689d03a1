"""What a model wrote becomes a name and arguments: strictly, whole, and in one way only.

Covered: calls that were never closed; JSON that repeats a key, nests too deeply or holds more than a name and
arguments; running text that the notation does not know. Nothing is repaired, with these exceptions, each of which has
one meaning and is told to the audit log:

- no arguments at all, blanks or `null` are the object without any
- a control token behind a name, and what follows it, is no part of the name (no tool's name can hold one)
- an object or a list that was written as a text, where the schema refuses the text and accepts what it says

Not covered: whether the tool exists and the arguments fit it, which the registry says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from toolwise.core import jsonio
from toolwise.core.errors import InvalidArguments, MalformedCall, ToolwiseError, TruncatedCall
from toolwise.core.jsonio import quote
from toolwise.core.limits import Limits
from toolwise.core.schema import Validator
from toolwise.core.types import Call, Tool, WrittenCall
from toolwise.notation import inline
from toolwise.notation.wire.turn import cut_off

Arguments = Mapping[str, Any]

_CONTROL = re.compile(r"(?:<[|｜][\w▁]+[|｜]>|</s>).*", re.DOTALL)


class Parsed(NamedTuple):
    """A name, and a function that gives the arguments once the tool is known.

    `told` is what the audit log is to know of the reading. `by_model` says whether a model wrote the arguments as JSON.
    """

    name: str
    read: Callable[[Tool], Arguments]
    told: str = ""
    by_model: bool = False


def parse(call: Call | WrittenCall, notation: inline.Notation, limits: Limits) -> Parsed:
    """What the call says. This and `read` raise MalformedCall, TruncatedCall and InvalidArguments."""
    if isinstance(call, Call):
        given = call.arguments
        return Parsed(call.name, lambda tool: given)
    if call.form == "arguments" and not call.name:
        raise MalformedCall("This began like a call and is none: write it again, as a name and an object of arguments.")
    most = limits.call_chars if call.form == "inline" else limits.argument_bytes
    if not call.complete or len(call.text) > most:
        raise TruncatedCall(f"The call was not closed within {most} characters: write it shorter and close it.")
    if call.form == "inline":
        name, raw = inline.read_body(call.text, notation)
        return Parsed(name, lambda tool: inline.read_arguments(raw, tool, notation))
    if call.form == "arguments":
        if cut_off(call.text):
            raise TruncatedCall("The arguments end before they are closed: write them again, with less in them.")
        name = _CONTROL.sub("", call.name)
        told = "" if name == call.name else "a control token behind the name was left out"
        return Parsed(name, lambda tool: _object(call.text, limits), told, by_model=True)
    match jsonio.loads(call.text, limits):
        case {"name": str(name), "arguments": dict(arguments), **rest} if not rest:
            return Parsed(name, lambda tool: arguments, by_model=True)
    raise MalformedCall('A call is an object with exactly "name" (a string) and "arguments" (an object).')


def fitted(parsed: Parsed, tool: Tool, validator: Validator, limits: Limits) -> tuple[dict[str, Any], str]:
    """The arguments as they fit the tool, and what the audit log is to know of it.

    Raises what `read` and the validator raise.
    """
    arguments = parsed.read(tool)
    try:
        return validator.validate(arguments), parsed.told
    except InvalidArguments:
        decoded, places = _decoded(arguments, validator, limits) if parsed.by_model else (arguments, ())
        if not places:
            raise
        try:
            checked = validator.validate(decoded)
        except InvalidArguments:
            checked = None
        if checked is None:
            raise
    read = f"read from a text: {', '.join(map(quote, places))}"
    return checked, "; ".join(filter(None, (parsed.told, read)))


def _object(text: str, limits: Limits) -> Arguments:
    if not text.strip():
        return {}
    match jsonio.loads(text, limits):
        case None:
            return {}
        case dict(arguments):
            return arguments
    raise MalformedCall("The arguments of a call are an object.")


def _decoded(arguments: Arguments, validator: Validator, limits: Limits) -> tuple[Arguments, tuple[str, ...]]:
    """A copy in which the texts that do not fit are the objects and lists that they say, and the places of these."""
    copy = jsonio.plain(arguments, InvalidArguments, limits.argument_bytes, limits)
    places: list[str] = []
    for path in dict.fromkeys(validator.refused_texts(arguments)):
        *above, last = path or ("",)
        inside: Any = copy
        for step in above:
            inside = inside[step]
        try:
            value = jsonio.loads(inside[last], limits)
        except (ToolwiseError, LookupError):
            continue
        if isinstance(value, dict | list):
            inside[last] = value
            places.append(".".join(map(str, path)))
    return copy, tuple(places)
