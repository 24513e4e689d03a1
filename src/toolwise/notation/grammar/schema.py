"""A JSON Schema -> the same in the words that can be masked, and a record of every word that had to go.

What a mask lets pass is never wider than the schema without a `Downgrade` that says where; the full validator
(`core.schema`) stays the judge. It may be narrower, on purpose:

* an object has the properties that are named, in their order, where nothing is said of others;
* numbers have at most 18 digits before the point where no bounds are set: weak models write digits without end;
* `format` is kept where the engine knows it, although by itself it is an annotation;
* a string holds no control character but those with an escape of their own.

Covered: `oneOf` whose branches exclude each other becomes `anyOf`; annotations are dropped; a `$ref` with siblings is
told by the draft that the schema names; `required` names without a property stay required; a `$ref` that leads back to
itself. Not covered: JSON of any kind (`{}`) may nest deeper than strict reading allows, and names that a schema leaves
open may come twice (recorded as `additionalProperties`), which it refuses; whether any value fits at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from toolwise.core import jsonio
from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.schema_safety import referred
from toolwise.notation.grammar.grammar import ANY_OBJECT, Downgrade
from toolwise.notation.grammar.keywords import (
    ANY,
    COPIED,
    DIGITS,
    DROP_ORDER,
    FORMATS,
    IN_PLACE,
    KINDS,
    LOWER,
    OBJECT_WORDS,
    OTHER_FORMATS,
    REF_ALONE,
    THIS,
    UNMASKED,
    UPPER,
    Schema,
)
from toolwise.notation.grammar.one_of import exclusive
from toolwise.notation.grammar.tries import TooManyPlaces, Tries

#: Why a schema cannot be masked, or `""`.
Refusal = Callable[[Mapping[str, Any]], str]


@dataclass(frozen=True, slots=True)
class Normalised:
    schema: Schema
    downgrades: tuple[Downgrade, ...]


def normalised(
    schema: Mapping[str, Any],
    tool: str,
    refusal: Refusal | None = None,
    limits: Limits = LIMITS,
    tries: Tries | None = None,
) -> Normalised:
    """The schema to mask by. With `refusal`, every place is asked for, and what is refused there is left out.

    Raises BadInput for a schema that is too large, or refers to something outside itself.
    """
    bounds = replace(limits, json_depth=limits.schema_depth)
    root = jsonio.plain(schema, BadInput, limits.schema_bytes, bounds)
    reader = _Reader(root, tool, refusal, limits, tries)
    found = reader.read(root)
    return Normalised(found, tuple(sorted(set(reader.downgrades))))


def masked(
    schema: Mapping[str, Any], tool: str, refusal: Refusal, limits: Limits = LIMITS, tries: Tries | None = None
) -> Normalised:
    """The schema as far as it can be masked: each place that the engine refuses is relaxed there, or else the whole,
    as where `tries` are used up."""
    whole = normalised(schema, tool, None, limits)
    if not refusal(whole.schema):
        return whole
    try:
        whole = normalised(schema, tool, refusal, limits, tries)
    except TooManyPlaces:
        pass
    else:
        if not refusal(whole.schema):
            return whole
    return Normalised(dict(ANY_OBJECT), (Downgrade(tool, "", "schema"),))


class _Reader:
    """Reads one schema. Definitions are collected on the way, each once, so that a cycle ends."""

    def __init__(self, root: Any, tool: str, refusal: Refusal | None, limits: Limits, tries: Tries | None) -> None:
        self._root = root
        self._tool = tool
        self._refusal = refusal
        self._limits = limits
        own = Tries(limits.grammar_tries)
        self._tries = (own,) if tries is None else (own, tries)
        self._size = 0
        self._sizes: dict[str, int] = {}
        self._tentative: list[Downgrade] = []  # of the schemas that speak of the value in hand together
        self._joined = 0  # patterns that the value in hand must fit all together
        dialect = root.get("$schema") if isinstance(root, dict) else None
        self._old = isinstance(dialect, str) and bool(REF_ALONE.fullmatch(dialect))
        self._names: dict[tuple[str, bool], str] = {}
        self._definitions: dict[str, Any] = {}
        self._reading: set[str] = set()
        self._cyclic: set[str] = set()
        self.downgrades: list[Downgrade] = []

    def read(self, root: Any) -> Schema:
        found = self._place(root, "", closing=True)
        whole = found if isinstance(found, dict) else {"anyOf": [found]}
        return {"$defs": self._definitions, **whole} if self._definitions else whole

    def _grow(self, parts: int) -> None:
        self._size += parts
        if self._size > self._limits.schema_parts:
            raise BadInput(f"schema: use at most {self._limits.schema_parts} parts, every $ref written out")

    def _lost(self, pointer: str, keyword: str) -> None:
        self.downgrades.append(Downgrade(self._tool, pointer, keyword))

    def _place(self, node: Any, pointer: str, closing: bool) -> Any:
        """One schema of the tree; `closing` says that only it speaks of its value, so that it may be closed."""
        self._grow(1)
        if node is False:
            return node
        outside = self._joined, self._tentative
        if closing:
            self._joined, self._tentative = 0, []
        found = self._words(node, pointer, closing) if isinstance(node, dict) else {}
        if closing:
            self._close(node, found, pointer)
        open_names = _open(found)
        if found or not closing:
            self._bound_numbers(found)
        if closing:
            if open_names:
                self._lost(pointer, "additionalProperties")
            self._settle(found)
            self._fill(found)
            self._joined, self._tentative = outside
        else:
            words = ["additionalProperties"] * open_names + ["items"] * _unbounded(found)
            self._tentative += [Downgrade(self._tool, pointer, word) for word in words]
        return self._tried(found, pointer, closing) if self._refusal is not None else found

    def _settle(self, found: Schema) -> None:
        """What schemas in this place leave open is lost, unless the place as a whole does not."""
        kinds = found.get("type", ["object", "array"])
        closed = found.get("additionalProperties") is False and "patternProperties" not in found
        shut = {
            "additionalProperties": closed or "object" not in kinds,
            "items": "items" in found or "array" not in kinds,
        }
        self.downgrades += [lost for lost in self._tentative if not shut[lost.keyword]]

    def _words(self, node: Schema, pointer: str, closing: bool) -> Schema:
        found: Schema = {}
        alone = closing and not OBJECT_WORDS & set(node) and sum(word in node for word in IN_PLACE) == 1
        for word, value in node.items():
            here = f"{pointer}/{word}"
            match word:
                case "$ref":
                    found |= self._reference(node, value, pointer, alone)
                case "properties" | "patternProperties" if isinstance(value, dict):
                    found[word] = {
                        name: self._place(part, f"{here}/{_step(name)}", closing=True) for name, part in value.items()
                    }
                case "items" if isinstance(value, list):  # until draft 2019-09
                    found["prefixItems"] = self._places(value, here, closing=True)
                    found["items"] = self._place(node.get("additionalItems", True), f"{pointer}/additionalItems", True)
                case "items" | "additionalProperties":
                    found[word] = self._place(value, here, closing=True)
                case "prefixItems" if isinstance(value, list):
                    found[word] = self._places(value, here, closing=True)
                case "allOf" if isinstance(value, list):
                    _also(found, word, self._places(value, here, alone and len(value) == 1))
                case "anyOf" if isinstance(value, list):
                    _also(found, word, self._branches(value, here, alone))
                case "oneOf" if isinstance(value, list):
                    if not exclusive(value, self._target):
                        self._lost(pointer, "oneOf")
                    _also(found, "anyOf", self._branches(value, here, alone))
                case "pattern" | "format" if self._joined >= self._limits.joined_patterns:
                    self._lost(pointer, word)
                case "multipleOf" if not _countable(value, self._limits):
                    self._lost(pointer, word)
                case "format":
                    self._format(node, value, found, pointer)
                case "uniqueItems" if value is True:
                    self._lost(pointer, word)
                case _ if word in COPIED:
                    self._joined += word == "pattern"
                    found[word] = value
                case _ if word in UNMASKED:
                    self._lost(pointer, word)
        if self._old and "$ref" in node:
            return {word: value for word, value in found.items() if word == "$ref"}
        return found

    def _places(self, nodes: list[Any], pointer: str, closing: bool) -> list[Any]:
        return [self._place(node, f"{pointer}/{i}", closing) for i, node in enumerate(nodes)]

    def _branches(self, nodes: list[Any], pointer: str, closing: bool) -> list[Any]:
        """Places of which one counts: so do its patterns."""
        before, most, found = self._joined, self._joined, []
        for i, node in enumerate(nodes):
            self._joined = before
            found.append(self._place(node, f"{pointer}/{i}", closing))
            most = max(most, self._joined)
        self._joined = most
        return found

    def _target(self, node: Any) -> Any:
        """What a branch says, a `$ref` on its own followed."""
        for _ in range(self._limits.schema_depth):
            if not isinstance(node, dict) or "$ref" not in node:
                return node
            node = referred(self._root, node["$ref"])
        return {}

    # References

    def _reference(self, node: Schema, reference: Any, pointer: str, closing: bool) -> Schema:
        if not isinstance(reference, str):
            raise BadInput("schema: a $ref is a text that begins with #/")
        target, constrained = referred(self._root, reference), self._constrained(node)
        key = (reference, closing and not constrained)
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = f"d{len(self._names)}"
            self._definitions[name] = {}
            self._reading.add(name)
            before = self._size
            outside, self._tentative = self._tentative, []
            self._definitions[name] = self._place(target, reference[1:], key[1])
            self.downgrades += self._tentative  # it may be referred to from elsewhere as well
            self._tentative = outside
            self._sizes[name] = self._size - before
            self._reading.remove(name)
        elif name in self._reading:
            self._cyclic.add(name)
        elif constrained:  # the engine writes it out once more, to join it with what stands beside
            self._grow(self._sizes[name])
        if constrained and name in self._cyclic:  # the engine cannot join what leads back to itself with anything
            self._lost(pointer, "$ref")
            return {}
        return {"$ref": f"#/$defs/{name}"}

    def _constrained(self, node: Schema) -> bool:
        """Whether something beside the `$ref` says more than an annotation."""
        if self._old:
            return False
        words = COPIED | {"properties", "patternProperties", "additionalProperties", "items", "prefixItems"}
        return any(word in words or word in ("allOf", "anyOf", "oneOf", "format") for word in node)

    # Narrower on purpose

    def _close(self, node: Schema, found: Schema, pointer: str) -> None:
        if "properties" not in found or {"additionalProperties", "patternProperties"} & set(found):
            return
        named = set(found["properties"])
        if any(name not in named for name in _named_inside(node, self._target)):
            return
        for name in found.get("required", ()):
            if name not in named:
                found["properties"][name] = self._place({}, pointer, closing=True)
        found["additionalProperties"] = False

    def _fill(self, found: Schema) -> None:
        """What the schema leaves open is any JSON, in which numbers have their bounds too."""
        kinds = found.get("type", ())
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if "array" in kinds:
            found.setdefault("items", self._anything())
        if "object" in kinds and not {"additionalProperties", *IN_PLACE} & set(found):
            found["additionalProperties"] = self._anything()
        if not found:
            found |= self._anything()

    def _anything(self) -> Schema:
        self._definitions[ANY] = KINDS
        return dict(THIS)

    def _bound_numbers(self, found: Schema) -> None:
        kinds = found.get("type", "number")
        kinds = kinds if isinstance(kinds, list) else [kinds]
        told = {"enum", "const", *IN_PLACE} & set(found) and "type" not in found
        if told or not {"integer", "number"} & set(kinds) or {"enum", "const"} & set(found):
            return
        own = [found[word] for word in (*LOWER, *UPPER) if word in found]
        if any(abs(bound) > DIGITS for bound in own):
            return
        if not any(word in found for word in LOWER):
            found["minimum"] = -DIGITS
        if not any(word in found for word in UPPER):
            found["maximum"] = DIGITS

    def _format(self, node: Schema, value: Any, found: Schema, pointer: str) -> None:
        kinds = node.get("type", "string")
        if "string" not in (kinds if isinstance(kinds, list) else [kinds]):
            return
        if value in FORMATS:
            self._joined += 1
            found["format"] = value
        elif value in OTHER_FORMATS:
            self._lost(pointer, "format")

    # What the engine refuses

    def _tried(self, found: Schema, pointer: str, closing: bool) -> Schema:
        """What of a place the engine takes: all, all but one word, or what is left when one after another has gone."""
        if self._taken(found):
            return found
        nothing = self._anything() if closing else {}
        words = [word for word in DROP_ORDER if word in found]
        for word in words:
            less = {key: value for key, value in found.items() if key != word}
            if self._taken(less):
                self._lost(pointer, word)
                return less or nothing
        for word in words:
            found = {key: value for key, value in found.items() if key != word}
            self._lost(pointer, word)
            if self._taken(found):
                return found or nothing
        self._lost(pointer, "schema")
        return nothing

    def _taken(self, found: Schema) -> bool:
        assert self._refusal is not None
        for tries in self._tries:
            tries.spend()
        return not self._refusal({"$defs": self._definitions, **found} if self._definitions else found)


def _countable(step: Any, limits: Limits) -> bool:
    """Whether the engine can count in such steps: for each it has as many states, and however many are joined, all of
    them divide this one number."""
    hundredths = (
        Fraction(str(step)) * 100 if isinstance(step, int | float) and 0 < step <= limits.masked_steps else None
    )
    return hundredths is not None and (limits.masked_steps / hundredths).denominator == 1 == hundredths.denominator


def _also(found: Schema, word: str, branches: list[Any]) -> None:
    """Add a list of branches beside one that is there already (`anyOf` and a `oneOf` that became one)."""
    if word not in found:
        found[word] = branches
    else:
        found.setdefault("allOf", []).append({word: branches})


def _step(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _open(found: Schema) -> bool:
    """Whether objects may be written here whose names nothing fixes."""
    kinds = found.get("type")
    if kinds is not None and "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        return False
    if {"enum", "const", "$ref", "anyOf", "allOf"} & set(found) and "properties" not in found:
        return False
    return found.get("additionalProperties", True) is not False or "patternProperties" in found


def _unbounded(found: Schema) -> bool:
    """Whether an array may hold anything here, numbers out of range too."""
    kinds = found.get("type", "array")
    return "array" in (kinds if isinstance(kinds, list) else [kinds]) and not {"items", "enum", "const"} & set(found)


def _named_inside(node: Any, target: Callable[[Any], Any], depth: int = 8) -> Iterator[str]:
    """The properties that the schemas in the same place as `node` name."""
    for word in IN_PLACE if depth else ():
        value = node.get(word)
        branches = [target(node)] if word == "$ref" and value is not None else value
        for branch in branches if isinstance(branches, list) else ():
            branch = target(branch)
            if isinstance(branch, dict):
                yield from branch.get("properties", ())
                yield from branch.get("patternProperties", ())
                yield from _named_inside(branch, target, depth - 1)
