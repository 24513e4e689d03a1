"""Parameters of an operation: what the description says of one, and how its value is written into a request.

    place    style                    values
    path     simple                   a scalar; a list as `a,b`
    query    form                     a scalar; a list as `n=a&n=b` (explode), else `n=a,b`
             spaceDelimited, pipeDelimited (not exploded)    a list as `n=a%20b`, `n=a%7Cb`
             deepObject               an object of scalars, as `n[a]=1&n[b]=2`
    header   simple                   a scalar; a list as `a,b`
    any      content: application/json                       any value, as JSON

Null and an empty list are said by leaving the parameter out, where it may be left out.

Covered: a value arrives as it was, or is refused. Everything but letters, digits and `-._~` is percent-encoded. What a
server may take apart where it stands inside an item (the comma of `a,b`) is refused, since many decode before they
split. A path value stays inside its segment however often somebody on the way decodes it: no empty one, no `.` or `..`,
no control character, and no slash or backslash unless the operator says that the server keeps `%2F` apart. A header's
value is one line of ASCII.

Refused when tools are made: cookies, the styles `label` and `matrix`, objects written as several parameters
(`form`), other contents than JSON, and headers that say how a request is carried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote as percent_encoded
from urllib.parse import unquote

from toolwise.core import jsonio
from toolwise.core.errors import BadInput, InvalidArguments
from toolwise.core.jsonio import quote
from toolwise.core.limits import Limits
from toolwise.tools.confined.fetch import checked_headers
from toolwise.tools.openapi.document import Description
from toolwise.tools.openapi.schemas import Schema, checked_name, json_schema, shown_line

_JSON_TYPE = re.compile(r"application/(?:[a-z0-9.+_-]{1,80}\+)?json", re.IGNORECASE)
_PLACES = {"path": "simple", "query": "form", "header": "simple"}  # with the style that each has by itself
_DELIMITERS = {"simple": ",", "form": ",", "spaceDelimited": " ", "pipeDelimited": "|"}
_STYLES = {
    *(("path", "simple"), ("header", "simple"), ("query", "form"), ("query", "spaceDelimited")),
    *(("query", "pipeDelimited"), ("query", "deepObject")),
}
# The specification's own: these headers are what the body and the operator say they are
_IGNORED = frozenset({"accept", "content-type", "authorization"})
_EXPLODED = {"spaceDelimited": False, "pipeDelimited": False, "deepObject": True}  # the other way has no meaning
_EXACT = 2**53
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Parameter:
    """`style` is one of OpenAPI's, or `json` for a value that is written as JSON."""

    name: str
    place: str
    style: str
    explode: bool
    required: bool
    schema: Schema


def read_parameter(raw: Any, description: Description, limits: Limits) -> Parameter | None:
    """A Parameter Object; None for a header that is to be ignored. Raises BadInput naming the parameter."""
    raw = description.followed(raw)
    if not isinstance(raw, Mapping) or not isinstance(raw.get("name"), str):
        raise BadInput("a parameter has no name")
    name, place = raw["name"], str(raw.get("in"))
    if place == "header" and name.lower() in _IGNORED:
        return None
    try:
        if place not in _PLACES:
            raise BadInput(f"it stands in {quote(place)}: only path, query and header can be sent")
        checked_name(name, limits)
        if place == "header":
            checked_headers({name: "x"})
        return _parameter(name, place, raw, description, limits)
    except BadInput as error:
        raise BadInput(f"parameter {quote(name)}: {str(error).rstrip('.')}") from None


def _parameter(name: str, place: str, raw: Mapping[str, Any], description: Description, limits: Limits) -> Parameter:
    style = str(raw.get("style", _PLACES[place]))
    content = raw.get("content")
    if isinstance(content, Mapping):
        if len(content) != 1 or not is_json(*content):
            raise BadInput(f"its content is {quote(', '.join(content))}: only JSON can be sent")
        style, described = "json", description.followed(next(iter(content.values())))
    else:
        described = raw
        if (place, style) not in _STYLES:
            raise BadInput(f"the style {quote(style)} in {place} is not supported")
    if not isinstance(described, Mapping) or "schema" not in described:
        raise BadInput("it has no schema")
    schema = json_schema(described["schema"], description, limits)
    if text := shown_line(raw.get("description"), limits.openapi_text_chars):
        schema = schema | {"description": text}
    explode = raw.get("explode", _EXPLODED.get(style, style == "form"))
    if explode is not _EXPLODED.get(style, explode):
        raise BadInput(f"explode has another meaning than {style} can have")
    _check_kind(style, schema)
    required = place == "path" or raw.get("required") is True
    return Parameter(name, place, style, explode is True, required, schema)


def _check_kind(style: str, schema: Schema) -> None:
    """Whether the style can write what the schema says in plain words; for the rest, the value is looked at."""
    kinds = _kinds(schema)
    if style == "json" or not kinds:
        return
    if style == "deepObject":
        inner = [_kinds(part) for part in schema.get("properties", {}).values() if isinstance(part, dict)]
        if kinds != {"object"} or any(each & {"object", "array"} for each in inner):
            raise BadInput("deepObject can write an object of scalars only")
        return
    items = schema.get("items")
    if "object" in kinds or (isinstance(items, dict) and _kinds(items) & {"object", "array"}):
        raise BadInput(f"the style {style} can write scalars and lists of scalars only")


def _kinds(schema: Schema) -> set[str]:
    kinds = schema.get("type", "object" if "properties" in schema else [])
    return {str(kind) for kind in (kinds if isinstance(kinds, list) else [kinds])} - {"null"}


def is_json(media_type: str) -> bool:
    """Whether a media type, with or without its parameters, is JSON."""
    return _JSON_TYPE.fullmatch(media_type.partition(";")[0].strip()) is not None


# --- values ------------------------------------------------------------------------------------------------------


def is_sent(parameter: Parameter, value: Any) -> bool:
    """Whether a value is written at all: null and an empty list are said by leaving them out. Raises InvalidArguments
    where that may not be."""
    if parameter.style == "json" or (value is not None and value != []):
        return True
    if parameter.required:
        raise InvalidArguments(f"argument {quote(parameter.name)}: give a value, neither null nor an empty list")
    return False


def query_parts(parameter: Parameter, value: Any) -> Iterator[str]:
    """The `name=value` of a query, encoded. Raises InvalidArguments for what cannot be written."""
    name = _encoded(parameter.name)
    if parameter.style == "json":
        yield f"{name}={_encoded(jsonio.dumps(value))}"
    elif parameter.style == "deepObject":
        if not isinstance(value, dict):
            raise InvalidArguments(f"argument {quote(parameter.name)}: give an object of scalars")
        for key, item in value.items():
            if "[" in key or "]" in key:
                raise InvalidArguments(f"argument {quote(parameter.name)}: leave brackets out of its names")
            yield f"{_encoded(f'{parameter.name}[{key}]')}={_encoded(_scalar(parameter, item))}"
    elif isinstance(value, list) and parameter.explode:
        yield from (f"{name}={_encoded(_scalar(parameter, item))}" for item in value)
    elif isinstance(value, list):
        delimiter = _DELIMITERS[parameter.style]
        between = "," if delimiter == "," else _encoded(delimiter)
        yield f"{name}={between.join(map(_encoded, _items(parameter, value, delimiter)))}"
    else:
        yield f"{name}={_encoded(_scalar(parameter, value))}"


def header_value(parameter: Parameter, value: Any) -> str:
    """The value of a header. Raises InvalidArguments."""
    if parameter.style == "json":
        text = jsonio.dumps(value)
    else:
        text = ",".join(_items(parameter, value, ",")) if isinstance(value, list) else _scalar(parameter, value)
    try:
        checked_headers({parameter.name: text})
    except BadInput:
        raise InvalidArguments(
            f"argument {quote(parameter.name)}: a header takes one line of ASCII text, without spaces around it"
        ) from None
    return text


def path_value(parameter: Parameter, value: Any, *, slashes: bool, limits: Limits) -> str:
    """What stands in a path for a parameter, encoded. Raises InvalidArguments for what could leave its segment."""
    if parameter.style == "json":
        texts = [jsonio.dumps(value)]
    elif isinstance(value, list):
        texts = _items(parameter, value, ",")
    else:
        texts = [_scalar(parameter, value)]
    decoded = _decoded_for_good(",".join(texts), limits)
    if not decoded or _CONTROL.search(decoded):
        raise InvalidArguments(f"argument {quote(parameter.name)}: give some text without control characters")
    if not slashes and ("/" in decoded or "\\" in decoded):
        raise InvalidArguments(f"argument {quote(parameter.name)}: leave out / and \\, also as %2F: it is one name")
    return ",".join(map(_encoded, texts))


def leaves_its_place(path: str, limits: Limits) -> bool:
    """Whether some reader of this path may take a part of it for `.` or `..`, however often it decodes.

    What follows a `;` belongs to no name for some of them (Java's servers): `..;x` is `..`.
    """
    decoded = _decoded_for_good(path, limits)
    return decoded is None or any(part.partition(";")[0] in (".", "..") for part in re.split(r"[/\\]", decoded))


def _decoded_for_good(text: str, limits: Limits) -> str | None:
    """`text` without percent-encoding, whatever is encoded inside what is encoded; None where there is no end of it."""
    for _ in range(limits.decodings):
        before, text = text, unquote(text)
        if text == before:
            return text
    return None


def _items(parameter: Parameter, value: list[Any], delimiter: str) -> list[str]:
    texts = [_scalar(parameter, item) for item in value]
    if any(delimiter in text for text in texts):
        raise InvalidArguments(f"argument {quote(parameter.name)}: leave {quote(delimiter)} out of its items")
    return texts


def _scalar(parameter: Parameter, value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) < _EXACT:
            return str(int(value))
        case int() | float():
            return jsonio.dumps(value)
    raise InvalidArguments(f"argument {quote(parameter.name)}: give a text, a number, true or false here")


def _encoded(text: str) -> str:
    return percent_encoded(text, safe="")
