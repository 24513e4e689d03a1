"""Secrets among the arguments of a call, and how they are kept out of every record.

A property is secret when its schema says `"writeOnly": true` or `"format": "password"`; a parameter of pydantic's type
`SecretStr` says both. Its value is shown as `[secret]` in the audit log, in approvals and in telemetry, and blanked out
of whatever the tool says, or prints in a child.

Not covered: secrets in arguments whose schema does not say so; secrets of less than four characters, which are left out
of the arguments alone; parts of a secret (a bound may cut it), and spellings of it other than those of JSON and Python.
The digest of a call is made of its real arguments, so that two secrets are two calls: whoever can read the log and
guess a short secret can test the guess. What a bounded tool prints goes where the program prints, as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolwise.core import jsonio
from toolwise.core.schema_safety import referred

SHOWN = "[secret]"
_SHORTEST = 4  # characters; blanking "1" out of every text would hide everything and protect nothing

_LISTS = ("allOf", "anyOf", "oneOf")
_NAMED = ("dependentSchemas", "dependencies")
_REST = ("additionalProperties", "unevaluatedProperties")
_REST_ITEMS = ("additionalItems", "unevaluatedItems")


def redacted(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The arguments without what is secret, and the secret texts."""
    secrets: list[str] = []
    shown = _redacted(dict(arguments), [parameters], parameters, secrets)
    assert isinstance(shown, dict)
    spelled = {way for text in secrets if len(text) >= _SHORTEST for way in _spellings(text)}
    return shown, tuple(sorted(spelled, key=lambda text: (-len(text), text)))  # one may begin with another


def has_secrets(parameters: Any) -> bool:
    """Whether any part of a schema is marked as secret."""
    if isinstance(parameters, Mapping):
        return _marked(parameters) or any(map(has_secrets, parameters.values()))
    return isinstance(parameters, list | tuple) and any(map(has_secrets, parameters))


def blanked(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret in it blanked out."""
    for secret in secrets:
        text = text.replace(secret, SHOWN)
    return text


def _redacted(value: Any, schemas: Iterable[Any], root: Mapping[str, Any], secrets: list[str]) -> Any:
    applying = _applying(schemas, root)
    if any(map(_marked, applying)):
        secrets.extend(_texts(value))
        return SHOWN
    if isinstance(value, dict):
        return {key: _redacted(item, _inside(applying, key), root, secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [_redacted(item, _items(applying, number), root, secrets) for number, item in enumerate(value)]
    return value


def _marked(schema: Mapping[str, Any]) -> bool:
    return schema.get("writeOnly") is True or schema.get("format") == "password"


def _applying(schemas: Iterable[Any], root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The schemas and all that they refer to or are made of; a registered schema has no circles."""
    found = [schema for schema in schemas if isinstance(schema, Mapping)]
    for schema in found:  # grows while it is read
        parts = [part for name in _LISTS for part in schema.get(name, ())]
        parts += [part for name in _NAMED for part in schema.get(name, {}).values()]
        parts += [schema[name] for name in ("if", "then", "else", "not") if name in schema]
        if isinstance(schema.get("$ref"), str):
            parts.append(referred(root, schema["$ref"]))
        found += [part for part in parts if isinstance(part, Mapping)]
    return found


def _inside(schemas: Iterable[Mapping[str, Any]], key: str) -> list[Any]:
    """The schemas of one property; a pattern is taken to fit every name, since to show too little does no harm."""
    found = []
    for schema in schemas:
        named = schema.get("properties", {})
        found += [named[key]] if key in named else [schema.get(name) for name in _REST]
        found += schema.get("patternProperties", {}).values()
    return found


def _items(schemas: Iterable[Mapping[str, Any]], number: int) -> list[Any]:
    found = []
    for schema in schemas:
        first, rest = schema.get("prefixItems", ()), schema.get("items")
        if isinstance(rest, list | tuple):  # until draft 2019-09, what `prefixItems` is now
            first, rest = rest, None
        found += [first[number]] if number < len(first) else [rest, *(schema.get(name) for name in _REST_ITEMS)]
        found.append(schema.get("contains"))
    return found


def _spellings(text: str) -> tuple[str, ...]:
    """As it is, and as a result that is JSON, an error's sentence and a traceback write it."""
    return text, jsonio.dumps(text)[1:-1], jsonio.printable(text, len(text)), repr(text)[1:-1]


def _texts(value: Any) -> list[str]:
    """Every text and number in a secret value, as it would be written."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [] if value is None or isinstance(value, bool) else [str(value)]
