"""YAML as the JSON that it says: mappings, lists and scalars, read as YAML 1.2 reads them, without ever a guess.

Covered: keys that stand twice, texts that grow when they are read (aliases are refused), nesting, tags that would make
objects, and values that one reader takes for a boolean or a date and another for text: `no` and `2024-01-01` are text
here, `200` as a key is the text "200", and only what JSON writes as a number is one.

Not covered: anchors with aliases, merge keys (`<<`), tags, several documents in one file. Write them out, or convert
the file to JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from toolwise.core import jsonio
from toolwise.core.errors import BadInput, ModelFault
from toolwise.core.jsonio import quote
from toolwise.core.limits import Limits

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS: dict[str, bool | None] = dict.fromkeys(("", "~", "null", "Null", "NULL"))
_WORDS |= dict.fromkeys(("true", "True", "TRUE"), True) | dict.fromkeys(("false", "False", "FALSE"), False)


def loads(text: str, limits: Limits) -> Any:
    """The value that `text` says. Raises BadInput with the line where it is no such YAML, or nested too deep."""
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise BadInput("Reading YAML needs another package: pip install 'toolwise[openapi]'.") from error
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # Events, and not the library's objects: it would build aliases, dates and duplicates before anybody could look
        return _value(yaml.parse(text, Loader=loader), limits)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise BadInput(f"not YAML{'' if mark is None else f', line {mark.line + 1}'}") from None
    except RecursionError:
        raise BadInput("not YAML that can be read: nest fewer levels") from None


def _value(events: Iterable[Any], limits: Limits) -> Any:
    building = _Building(limits)
    for event in events:
        line = event.start_mark.line + 1 if event.start_mark is not None else 0
        if getattr(event, "tag", None) is not None:
            raise BadInput(f"line {line}: YAML tags ({quote(event.tag)}) are not read: leave them out")
        match type(event).__name__:
            case "ScalarEvent":
                building.add(event.value if building.wants_key else _scalar(event, limits), line)
            case "SequenceStartEvent":
                building.open([], line)
            case "MappingStartEvent":
                building.open({}, line)
            case "SequenceEndEvent" | "MappingEndEvent":
                building.close(line)
            case "AliasEvent":
                raise BadInput(f"line {line}: YAML aliases are not read: write out what they stand for")
    if len(building.documents) != 1:
        raise BadInput("give exactly one YAML document")
    return building.documents[0]


class _Building:
    """The value so far: every open list or mapping, outermost first, each mapping with the key that waits."""

    def __init__(self, limits: Limits) -> None:
        self.documents: list[Any] = []
        self._open: list[list[Any] | dict[str, Any]] = []
        self._keys: list[str | None] = []
        self._depth = limits.openapi_depth

    @property
    def wants_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1], dict) and self._keys[-1] is None

    def open(self, value: list[Any] | dict[str, Any], line: int) -> None:
        if len(self._open) >= self._depth:
            raise BadInput(f"line {line}: nest at most {self._depth} levels")
        if self.wants_key:
            raise BadInput(f"line {line}: a key is not a text")
        self._open.append(value)
        self._keys.append(None)

    def close(self, line: int) -> None:
        self._keys.pop()
        self.add(self._open.pop(), line)

    def add(self, value: Any, line: int) -> None:
        if not self._open:
            self.documents.append(value)
            return
        inside, key = self._open[-1], self._keys[-1]
        if isinstance(inside, list):
            inside.append(value)
        elif key is None:
            if value in inside:
                raise BadInput(f"line {line}: duplicate key {quote(value)}")
            self._keys[-1] = value
        else:
            inside[key], self._keys[-1] = value, None


def _scalar(event: Any, limits: Limits) -> Any:
    text: str = event.value
    if not event.implicit[0]:  # it stands in quotes, or is a block
        return text
    if text in _WORDS:
        return _WORDS[text]
    try:
        return jsonio.loads(text, limits) if _NUMBER.fullmatch(text) else text
    except ModelFault as error:
        raise BadInput(f"line {event.start_mark.line + 1}: {error}") from None
