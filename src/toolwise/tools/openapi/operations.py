"""The operations of a description: of each one its name, its arguments, and where each argument is sent.

The arguments of a tool are one object. Parameters and the properties of a JSON body stand in it side by side under
their own names; where two places use one name, the place is put before it: `path_id` and `body_id`. A body whose schema
is no plain object with properties of its own (a list, `oneOf`, `allOf`, a map, an optional one with required parts) is
one argument, `body`. Unknown arguments are forbidden.

Never an argument: what the operator sends (`auth`), the headers that the specification ignores, and `Idempotency-Key`,
which the gate fills in.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolwise.core.errors import BadInput
from toolwise.core.jsonio import quote
from toolwise.core.limits import Limits
from toolwise.core.schema import Validator
from toolwise.tools.confined.fetch import METHODS, checked_headers
from toolwise.tools.openapi.document import Description
from toolwise.tools.openapi.parameters import Parameter, is_json, leaves_its_place, read_parameter
from toolwise.tools.openapi.schemas import Schema, json_schema, shown_line

_KEY = "idempotency-key"
_METHODS = (*map(str.lower, METHODS), "trace")
_READING = frozenset({"get", "head"})
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.-]+")
_LITERAL = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%/-]*")
#: A body with one of these is more than its properties.
_MORE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "patternProperties", "propertyNames"}) | {
    *("dependentSchemas", "dependentRequired", "minProperties", "maxProperties", "unevaluatedProperties", "enum"),
    *("const", "writeOnly"),
}
PLACES = ("path", "query", "header", "body")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an operation stands in the document; nothing of it was looked at but its name."""

    name: str
    method: str  # in lower case
    path: str
    item: Mapping[str, Any]
    raw: Mapping[str, Any]

    @property
    def title(self) -> str:
        return f"{self.method.upper()} {self.path}"


@dataclass(frozen=True, slots=True)
class Body:
    """A JSON body. `properties` names its parts by argument; empty: the argument `body` is all of it."""

    media_type: str
    required: bool
    properties: Mapping[str, str] = field(default_factory=dict)
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """All that is needed to make a tool, and a request of its arguments. `parameters` are by argument."""

    method: str
    path: str
    description: str
    schema: Schema
    parameters: Mapping[str, Parameter]
    body: Body | None
    keyed: bool


def endpoints(description: Description, name_chars: int) -> Iterator[Endpoint]:
    """Every operation of the document, in its order, with names of so many characters. Raises BadInput."""
    paths = description.root.get("paths", {})
    if not isinstance(paths, Mapping):
        raise BadInput("The description's paths are no object.")
    for path, item in paths.items():
        try:
            item = description.followed(item)
        except BadInput as error:
            raise BadInput(f"The path {quote(path)} cannot be read: {error}.") from None
        for method in _METHODS:
            raw = item.get(method) if isinstance(item, Mapping) and not path.startswith("x-") else None
            if isinstance(raw, Mapping):
                yield Endpoint(_name(raw.get("operationId"), method, path, name_chars), method, path, item, raw)


def read_operation(
    endpoint: Endpoint, description: Description, sent: Collection[str], own_servers: bool, limits: Limits
) -> Operation:
    """What an operation is. `sent` names what the operator adds to every request: headers in lower case, and query
    parameters with `?` before their name. Raises BadInput that says why it can be no tool."""
    if endpoint.method == "trace":
        raise BadInput("TRACE sends back what it is sent, secrets too")
    if not own_servers and any("servers" in part for part in (endpoint.item, endpoint.raw)):
        raise BadInput("it has servers of its own: give base_url")
    parameters = [each for each in _parameters(endpoint, description, limits) if _identity(each) not in sent]
    keyed = [each for each in parameters if _identity(each) == _KEY]
    parameters = [each for each in parameters if each not in keyed]
    _check_path(endpoint.path, parameters, limits)
    body, whole = _body(endpoint, description, limits)
    return _assembled(endpoint, parameters, body, whole, bool(keyed), limits)


def _name(operation_id: Any, method: str, path: str, chars: int) -> str:
    """A legal name: of the operation's own, else of method and path; what is too long keeps its start and a digest."""
    place = f"{method} {path}"
    own = operation_id if isinstance(operation_id, str) else ""
    name = _ILLEGAL.sub("_", own).strip("_") or _ILLEGAL.sub("_", place).strip("_")
    if not re.match("[A-Za-z_]", name):
        name = f"_{name}"
    if len(name) > chars:
        digest = hashlib.sha256((own or place).encode()).hexdigest()[:8]
        name = f"{name[: chars - len(digest) - 1]}_{digest}"
    return name


def _identity(parameter: Parameter) -> str:
    """What no two parameters of an operation share, and how `sent` names one."""
    match parameter.place:
        case "header":
            return parameter.name.lower()
        case "query":
            return f"?{parameter.name}"
    return f"/{parameter.name}"


def _parameters(endpoint: Endpoint, description: Description, limits: Limits) -> list[Parameter]:
    """Those of the path, replaced by those of the operation where both name one."""
    found: dict[str, Parameter] = {}
    for part in (endpoint.item, endpoint.raw):
        listed = part.get("parameters", [])
        if not isinstance(listed, list) or len(listed) > limits.properties:
            raise BadInput(f"its parameters are no list of at most {limits.properties}")
        read = [parameter for raw in listed if (parameter := read_parameter(raw, description, limits))]
        own = {_identity(each): each for each in read}
        if len(own) < len(read):
            twice = Counter(map(_identity, read)).most_common(1)[0][0]
            raise BadInput(f"the parameter {quote(twice.lstrip('?/'))} stands there twice")
        found |= own
    return list(found.values())


def _check_path(path: str, parameters: list[Parameter], limits: Limits) -> None:
    literals, names = re.split(r"\{[^{}]*\}", path), re.findall(r"\{([^{}]*)\}", path)
    plain = path.startswith("/") and len(path) <= limits.url_chars and all(map(_LITERAL.fullmatch, literals))
    if not plain or leaves_its_place(path, limits):
        raise BadInput("its path is no plain one: percent-encoded ASCII, no query, no . or ..")
    declared = [each.name for each in parameters if each.place == "path"]
    if sorted(names) != sorted(declared):
        odd = sorted(set(names) ^ set(declared)) or sorted(names)
        raise BadInput(f"its path and its parameters do not agree about {quote(odd[0])}")


def _body(endpoint: Endpoint, description: Description, limits: Limits) -> tuple[Body | None, Schema]:
    """The body and the schema of all of it."""
    raw = description.followed(endpoint.raw.get("requestBody"))
    if raw is None or (endpoint.method in _READING and description.old):  # 3.0 says that it is ignored
        return None, {}
    if endpoint.method in _READING:
        raise BadInput(f"{endpoint.method.upper()} takes no body")
    content = raw.get("content") if isinstance(raw, Mapping) else None
    if not isinstance(content, Mapping):
        raise BadInput("its body has no content")
    media_type = next(filter(is_json, content), None)
    if media_type is None and content.keys() & {"*/*", "application/*"}:
        media_type = next(name for name in content if name in ("*/*", "application/*"))
    if media_type is None:
        raise BadInput(f"its body is {quote(', '.join(content))}: only JSON can be sent")
    media = description.followed(content[media_type])
    schema = json_schema(media.get("schema", True) if isinstance(media, Mapping) else True, description, limits)
    said = checked_headers({"content-type": media_type if is_json(media_type) else "application/json"})
    if text := shown_line(raw.get("description"), limits.openapi_text_chars):
        schema = {"description": text} | schema
    return Body(said["content-type"], raw.get("required") is True), schema


def _is_flat(body: Body, schema: Schema) -> bool:
    """Whether the body's properties can stand beside the parameters without changing what is allowed."""
    open_to_more = isinstance(schema.get("additionalProperties"), dict)
    plain = schema.get("type") == "object" and bool(schema.get("properties")) and not _MORE & schema.keys()
    named = set(schema.get("required", ())) <= set(schema.get("properties", ()))
    return plain and named and not open_to_more and (body.required or not schema.get("required"))


def _assembled(
    endpoint: Endpoint, parameters: list[Parameter], body: Body | None, whole: Schema, keyed: bool, limits: Limits
) -> Operation:
    parts = [(each.place, each.name, each.schema, each.required) for each in parameters]
    flat = body is not None and _is_flat(body, whole)
    if body is not None:
        needed = set(whole.get("required", ())) if flat else {"body"} if body.required else set()
        inner = whole["properties"] if flat else {"body": whole}
        parts += [("body", name, part, name in needed) for name, part in inner.items()]
    parts.sort(key=lambda part: PLACES.index(part[0]))
    common = Counter(name for _, name, _, _ in parts)
    names = {(place, name): f"{place}_{name}" if common[name] > 1 else name for place, name, _, _ in parts}
    twice = [name for name, count in Counter(names.values()).items() if count > 1]
    if twice:
        raise BadInput(f"two of its arguments would be named {quote(twice[0])}")
    if body is not None:
        own = {argument: name for (place, name), argument in names.items() if place == "body"}
        body = Body(body.media_type, body.required, own if flat else {}, "" if flat else next(iter(own)))
    arguments = {
        "type": "object",
        "properties": {names[place, name]: part for place, name, part, _ in parts},
        "required": [names[place, name] for place, name, _, required in parts if required],
        "additionalProperties": False,
    }
    Validator(arguments, limits)
    return Operation(
        method=endpoint.method.upper(),
        path=endpoint.path,
        description=_told(endpoint.raw, limits),
        schema=arguments,
        parameters={names[each.place, each.name]: each for each in parameters},
        body=body,
        keyed=keyed,
    )


def _told(raw: Mapping[str, Any], limits: Limits) -> str:
    summary, more = (shown_line(raw.get(key), limits.openapi_text_chars) for key in ("summary", "description"))
    if not summary or more.startswith(summary.rstrip(".")):
        return more or summary
    return shown_line(f"{summary.rstrip('.')}. {more}" if more else summary, limits.openapi_text_chars)
