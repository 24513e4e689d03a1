"""YAML as the JSON that it says: mappings, lists and scalars, read as YAML 1.2 reads them, without ever a guess.

Covered: keys that stand twice, nesting, aliases that lead back to themselves, tags that would make objects, and values
that one reader takes for a boolean or a date and another for text: `no` and `2024-01-01` are text here, `200` as a key
is the text "200", and only what JSON writes as a number is one.

Not covered: what aliases grow to once they are written out (one part is shared here; `jsonio.plain` counts it before it
copies). Refused: merge keys (`<<`), tags, several documents in one file, JSON's pairs of escapes for one character.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
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
        anchor = getattr(event, "anchor", None)
        match type(event).__name__:
            case "ScalarEvent":
                jsonio.check_text(
                    event.value, BadInput
                )  # half a pair of escapes, which some builds of the parser let pass
                building.add(event.value if building.wants_key else _scalar(event, limits), anchor, line)
            case "SequenceStartEvent":
                building.open([], anchor, line)
            case "MappingStartEvent":
                building.open({}, anchor, line)
            case "SequenceEndEvent" | "MappingEndEvent":
                building.close(line)
            case "AliasEvent":
                building.repeat(event.anchor, line)
    if len(building.documents) != 1:
        raise BadInput("give exactly one YAML document")
    return building.documents[0]


@dataclass
class _Open:
    """A list or mapping that is not complete, with the key that waits for a value."""

    value: list[Any] | dict[str, Any]
    anchor: str | None
    key: str | None = None


class _Building:
    """The value so far: what is open, outermost first, and what has a name."""

    def __init__(self, limits: Limits) -> None:
        self.documents: list[Any] = []
        self._open: list[_Open] = []
        self._named: dict[str, Any] = {}
        self._depth = limits.openapi_depth

    @property
    def wants_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].value, dict) and self._open[-1].key is None

    def open(self, value: list[Any] | dict[str, Any], anchor: str | None, line: int) -> None:
        if len(self._open) >= self._depth:
            raise BadInput(f"line {line}: nest at most {self._depth} levels")
        self._open.append(_Open(value, anchor))

    def close(self, line: int) -> None:
        done = self._open.pop()
        self.add(done.value, done.anchor, line)

    def repeat(self, name: str, line: int) -> None:
        if name not in self._named:
            raise BadInput(f"line {line}: the alias {quote(name)} names nothing that is complete")
        self.add(self._named[name], None, line)

    def add(self, value: Any, anchor: str | None, line: int) -> None:
        if anchor is not None:
            self._named[anchor] = value
        if not self._open:
            self.documents.append(value)
            return
        inside = self._open[-1]
        if isinstance(inside.value, list):
            inside.value.append(value)
        elif inside.key is not None:
            inside.value[inside.key], inside.key = value, None
        elif not isinstance(value, str):
            raise BadInput(f"line {line}: a key is not a text")
        elif value in inside.value or value == "<<":
            raise BadInput(f"line {line}: {'merge' if value == '<<' else 'duplicate'} key {quote(value)}")
        else:
            inside.key = value


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
