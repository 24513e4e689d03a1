"""An OpenAPI description, read as what it is: a text from elsewhere, which may mean harm.

Covered: size and depth before anything is looked at, keys that stand twice, other versions. A `$ref` leads to a place
in the same document or nowhere: nothing is ever fetched, no file opened.

Not covered: whether the document fits OpenAPI's own schema. What is used of it is checked where it is used, and what is
not used (responses, examples, callbacks, links) is never looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toolwise.core import jsonio
from toolwise.core.errors import BadInput, ModelFault
from toolwise.core.jsonio import quote
from toolwise.core.limits import Limits
from toolwise.core.schema_safety import referred
from toolwise.tools.openapi import yaml_text

_VERSION = re.compile(r"3\.([01])(?:\.[0-9]{1,3})?")
_DIALECTS = ("https://spec.openapis.org/oas/3.1/dialect/base", "https://json-schema.org/draft/2020-12/schema")


@dataclass(frozen=True, slots=True)
class Description:
    """A description of version 3.0 (`old`) or 3.1."""

    root: Mapping[str, Any]
    old: bool

    def followed(self, part: Any) -> Any:
        """What a part is, or what its `$ref` leads to. Raises BadInput where that is nothing, or leads in a circle."""
        seen: set[str] = set()
        while isinstance(part, Mapping) and "$ref" in part:
            reference = part["$ref"]
            if not isinstance(reference, str) or reference in seen:
                raise BadInput("a $ref leads back to itself, or is no text")
            seen.add(reference)
            part = referred(self.root, reference)
        return part


def read_description(source: str | Path | Mapping[str, Any], limits: Limits) -> Description:
    """The description in a file (`.json`, else YAML), or in a value that was read already. Raises BadInput."""
    if isinstance(source, Mapping):
        name = "The description"
        bounds = replace(limits, json_depth=limits.openapi_depth)
        value = jsonio.plain(source, BadInput, limits.openapi_bytes, bounds)
    else:
        name = repr(str(source))
        value = _read_file(Path(source), name, limits)
    if not isinstance(value, dict) or "openapi" not in value:
        raise BadInput(f"{name} is no OpenAPI description: it names no version in `openapi` (Swagger 2: convert it).")
    version = _VERSION.fullmatch(str(value["openapi"]))
    if version is None:
        raise BadInput(f"{name} is of the version {quote(str(value['openapi']))}: 3.0 and 3.1 are read.")
    if value.get("jsonSchemaDialect", _DIALECTS[0]) not in _DIALECTS:
        raise BadInput(f"{name} is written in a dialect of its own (jsonSchemaDialect): use JSON Schema 2020-12.")
    return Description(value, old=version[1] == "0")


def _read_file(path: Path, name: str, limits: Limits) -> Any:
    try:
        with path.open("rb") as stream:
            data = stream.read(limits.openapi_bytes + 1)
    except OSError as error:
        raise BadInput(f"The description {name} cannot be read: {error.strerror or error}.") from error
    if len(data) > limits.openapi_bytes:
        raise BadInput(f"{name} has more than {limits.openapi_bytes} bytes: give a part of it.")
    bounds = replace(limits, json_depth=limits.openapi_depth, string_bytes=limits.openapi_bytes)
    try:
        if path.suffix.lower() == ".json":
            return jsonio.loads(data, bounds)
        return jsonio.plain(yaml_text.loads(data.decode(), bounds), BadInput, limits.openapi_bytes, bounds)
    except (ModelFault, BadInput) as error:
        raise BadInput(f"{name} cannot be read: {error}.") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{name} is not UTF-8 at byte {error.start}.") from error
