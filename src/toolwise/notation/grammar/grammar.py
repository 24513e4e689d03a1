"""What a grammar is: rules in the masking engine's language (Lark), apart from what a tokenizer decides.

A dialect's own texts (`<tool_call>`) may be single tokens or ordinary text, which only a tokenizer knows; so they stand
beside the rules, as `text_0` and so on, and are spelled when the grammar meets its tokenizer. Schemas stand beside them
as `schema_0` and so on, so that one which the engine refuses can be replaced by any JSON object, and this recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from toolwise.core import jsonio

#: One space behind each comma and colon, as chat templates and most of what models have read write JSON: without it,
#: every sixth call of SmolLM2 has empty strings. No others: weak models write spaces up to the token limit otherwise.
#: Without `\uXXXX`, no string can hold a NUL or half a character, which strict reading refuses.
OPTIONS: Mapping[str, Any] = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
    "coerce_one_of": False,
    "lenient": False,
    "json_allowed_escapes": 'nrbtf\\"',
}
#: As the notation of running text writes it (`notation.arguments`).
COMPACT: Mapping[str, Any] = {**OPTIONS, "item_separator": ",", "key_separator": ":"}
ANY_OBJECT: Mapping[str, Any] = {"type": "object"}


@dataclass(frozen=True, slots=True, order=True)
class Downgrade:
    """A word of a tool's schema that no mask enforces: what is decoded is to be validated all the more.

    `pointer` is the JSON pointer of the place in the schema as it was given, `keyword` the word there. A `pointer` of
    `""` and the keyword `schema` say that any JSON object may be written.
    """

    tool: str
    pointer: str
    keyword: str

    def __str__(self) -> str:
        return f"{self.tool or 'output'}: {self.keyword} at {self.pointer or '/'} is not masked"


@dataclass(frozen=True, slots=True)
class MaskedSchema:
    """A normalised schema as JSON text, the tool whose it is (`""`: the answer's own), and what stands in its place
    where the engine refuses it."""

    tool: str
    text: str
    instead: str


@dataclass(frozen=True, slots=True)
class Grammar:
    """`rules` name `start`, and may use `text_N` and `schema_N`."""

    rules: str
    texts: tuple[str, ...] = ()
    schemas: tuple[MaskedSchema, ...] = ()
    downgrades: tuple[Downgrade, ...] = ()

    def lark(self, spell: Callable[[str], str]) -> str:
        """The whole grammar; `spell` writes a text as Lark, and gives `""` for an empty one."""
        return "\n".join(
            [
                "%llguidance {}",
                self.rules,
                *(f"text_{i}: {spell(text)}" for i, text in enumerate(self.texts)),
                *(f"schema_{i}: %json {schema.text}" for i, schema in enumerate(self.schemas)),
            ]
        )

    @property
    def text(self) -> str:
        """The grammar where every text is ordinary text."""
        return self.lark(quoted)

    def behind(self, text: str) -> Grammar:
        """The same with a text in front of it."""
        rules = f"start: text_{len(self.texts)} behind\nbehind{self.rules.removeprefix('start')}"
        return replace(self, rules=rules, texts=(*self.texts, text))

    def opened(self, number: int) -> Grammar:
        """With any JSON (object) in place of schema `number`, and that recorded."""
        schemas = list(self.schemas)
        given = schemas[number]
        schemas[number] = replace(given, text=given.instead)
        said = Downgrade(given.tool, "", "schema")
        return replace(self, schemas=tuple(schemas), downgrades=(*self.downgrades, said))


class Parts:
    """Collects the texts and schemas of a grammar in the making; each call gives the name of a rule."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.schemas: list[MaskedSchema] = []
        self.downgrades: list[Downgrade] = []

    def text(self, text: str) -> str:
        if not text:
            return ""
        if text not in self.texts:
            self.texts.append(text)
        return f"text_{self.texts.index(text)}"

    def schema(
        self,
        tool: str,
        schema: Mapping[str, Any],
        downgrades: Iterable[Downgrade],
        instead: Mapping[str, Any] = ANY_OBJECT,
        options: Mapping[str, Any] = OPTIONS,
    ) -> str:
        self.schemas.append(MaskedSchema(tool, schema_text(schema, options), schema_text(instead, options)))
        self.downgrades.extend(downgrades)
        return f"schema_{len(self.schemas) - 1}"

    def grammar(self, rules: Iterable[str]) -> Grammar:
        return Grammar("\n".join(rules), tuple(self.texts), tuple(self.schemas), tuple(dict.fromkeys(self.downgrades)))


def quoted(text: str) -> str:
    """Text as a string of Lark."""
    return jsonio.compact(text) if text else ""


def schema_text(schema: Mapping[str, Any], options: Mapping[str, Any] = OPTIONS) -> str:
    """A schema with the engine's options in it, its keys in their own order: that is the order of what is decoded."""
    return jsonio.compact({**schema, "x-guidance": options})


def joined(*parts: str) -> str:
    """Rules and strings one after another."""
    return " ".join(_present(parts))


def _present(parts: Iterable[str]) -> Iterator[str]:
    return (part for part in parts if part)
