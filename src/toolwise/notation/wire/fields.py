"""A request's or a reply's body, read field by field; whatever does not fit is named by its place in the JSON.

Covered: a field of the wrong type is never coerced, and one that is not known is refused. Not covered: how long a
body may be, and whether its text is JSON (`core.jsonio`); whether a tool's schema can be used (`core.schema`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolwise.core.chat import ToolChoice, ToolSpec
from toolwise.core.errors import BadInput
from toolwise.core.jsonio import printable, quote
from toolwise.core.limits import LIMITS, Limits

# The registry's own rule, and `:` and `/`, which other runtimes put between a server and its tool.
_TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/-]*")


@dataclass(frozen=True, slots=True)
class Field:
    """A value of a body, and its place: `messages[2].content`. A field that is absent holds None, as one that is null.

    What reads it raises BadInput that names the place.
    """

    value: Any
    path: str = ""

    def refused(self, told: str) -> BadInput:
        """What to raise; `told` says what to do: `send a string`."""
        return BadInput(f"{self.path or 'body'}: {told}.", self.path)

    @property
    def absent(self) -> bool:
        return self.value is None

    @property
    def word(self) -> str:
        """The string, or an empty one where something else stands; for what servers get wrong."""
        return self.value if isinstance(self.value, str) else ""

    # Into an object or a list

    def __getitem__(self, key: str) -> Field:
        return Field(self.object().get(key), f"{self.path}.{key}" if self.path else key)

    def object(self) -> Mapping[str, Any]:
        if not isinstance(self.value, Mapping):
            raise self.refused("send an object")
        return self.value

    def items(self) -> list[Field]:
        """The items of a list; none where it is absent."""
        if self.absent:
            return []
        if not isinstance(self.value, list):
            raise self.refused("send a list")
        return [Field(item, f"{self.path}[{number}]") for number, item in enumerate(self.value)]

    def check_keys(self, read: Collection[str], left: Collection[str] = ()) -> None:
        """Refuses an object with other keys than those that are `read`, and those `left` since they change nothing."""
        for key, value in self.object().items():
            if key not in read and key not in left and value is not None:
                raise self[printable(key, 40)].refused("not supported; leave it out")

    def refuse(self, *keys: str, instead: str = "leave it out") -> None:
        """Refuses an object in which one of these is set."""
        for key in keys:
            if not self[key].absent:
                raise self[key].refused(f"not supported; {instead}")

    # Values

    def text(self, default: str | None = None) -> str:
        """A string; one must be there unless there is a default."""
        if self.absent and default is not None:
            return default
        if not isinstance(self.value, str):
            raise self.refused("send a string")
        return self.value

    def filled(self) -> str:
        """A string that is not empty."""
        if not self.text():
            raise self.refused("is empty; send a string")
        return self.text()

    def one_of(self, *words: str) -> str:
        """One of these words."""
        if self.value not in words:
            known = " or ".join(quote(word) for word in words)
            sent = f", not {quote(self.value)}" if isinstance(self.value, str) else ""
            raise self.refused(f"send {known}{sent}")
        return str(self.value)

    def flag(self, default: bool = False) -> bool:
        if self.absent:
            return default
        if not isinstance(self.value, bool):
            raise self.refused("send true or false")
        return self.value

    def integer(self, least: int | None = None, most: int | None = None) -> int | None:
        """An integer in these bounds, which are inclusive; 5.0 is one, as JSON Schema has it."""
        if self.absent:
            return None
        value = int(self.value) if isinstance(self.value, float) and self.value.is_integer() else self.value
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.refused("send an integer")
        self._check_range(value, least, most)
        return value

    def number(self, least: float | None = None, most: float | None = None) -> float | None:
        """A number in these bounds, which are inclusive."""
        if self.absent:
            return None
        if not isinstance(self.value, int | float) or isinstance(self.value, bool):
            raise self.refused("send a number")
        self._check_range(self.value, least, most)
        return float(self.value)

    def _check_range(self, value: float, least: float | None, most: float | None) -> None:
        if least is not None and value < least:
            raise self.refused(f"send at least {least}")
        if most is not None and value > most:
            raise self.refused(f"send at most {most}")

    # What every format has

    def tool_name(self, limits: Limits = LIMITS) -> str:
        name = self.text()
        if len(name) > limits.name_chars or not _TOOL_NAME.fullmatch(name):
            raise self.refused(
                f"name a tool with at most {limits.name_chars} letters, digits, _ . : / and -, a letter or _ first"
            )
        return name

    def tool_schema(self) -> dict[str, Any]:
        """The JSON Schema of a tool's arguments: an object without arguments where it is absent."""
        schema = {} if self.absent else dict(self.object())
        if schema.setdefault("type", "object") != "object":
            raise self["type"].refused('send "object": the arguments of a tool are one')
        schema.setdefault("properties", {})
        return schema

    def stop_strings(self, limits: Limits = LIMITS) -> tuple[str, ...]:
        """A string or a list of them."""
        items = [self] if isinstance(self.value, str) else self.items()
        if len(items) > limits.stop_strings:
            raise self.refused(f"send at most {limits.stop_strings} strings")
        return tuple(item.filled() for item in items)


def check_tools(tools: Iterable[ToolSpec], places: Field) -> None:
    """Raises BadInput where two tools have one name."""
    seen: set[str] = set()
    for tool, place in zip(tools, places.items(), strict=False):
        if tool.name in seen:
            raise place.refused(f"the tool {quote(tool.name)} stands there twice; name each tool once")
        seen.add(tool.name)


def check_choice(choice: ToolChoice, tools: Sequence[ToolSpec], place: Field) -> ToolChoice:
    """The choice. Raises BadInput where it forces a call or names a tool, and there is no such tool."""
    if choice.forced and not tools:
        raise place.refused("asks for a call; send tools with it")
    known = {tool.name for tool in tools}
    for name in choice.names:
        if name not in known:
            raise place.refused(f"names {quote(name)}, which is none of the tools; name one of them")
    return choice


def only(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Those that say something: a field that is None is left out of a request."""
    return {key: value for key, value in fields.items() if value is not None}
