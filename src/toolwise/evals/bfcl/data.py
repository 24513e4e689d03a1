"""BFCL's single-turn sets, as they come with its package: questions, functions, and what answers are right.

A function's types are Python's, Java's or JavaScript's; a request has them as JSON Schema. What is changed is what
BFCL's own handlers change: types by its table, a hint of the language in the description, and for Java and JavaScript
every parameter as text, which its checker reads.

Not covered: sets of several turns, web search and memory, whose tools must run.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from toolwise.core import jsonio
from toolwise.core.chat import Message, Role, ToolSpec
from toolwise.core.durable import sha256
from toolwise.core.errors import BadInput
from toolwise.documents.read import read_objects

#: In the leaderboard's order. Those whose names hold `relevance` have no right answer but to call or not to call.
CATEGORIES = (
    *("simple_python", "simple_java", "simple_javascript", "multiple", "parallel", "parallel_multiple", "irrelevance"),
    *("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple", "live_irrelevance", "live_relevance"),
)
_PREFIX = "BFCL_v4_"

#: BFCL's types (its table GORILLA_TO_OPENAPI); whatever is not here is a text there, too.
_TYPES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("integer", "byte", "short", "long", "Bigint"), "integer"),
        **dict.fromkeys(("number", "float", "double"), "number"),
        **dict.fromkeys(("boolean", "bool"), "boolean"),
        **dict.fromkeys(("array", "list", "tuple", "ArrayList", "Array", "Queue", "Stack"), "array"),
        **dict.fromkeys(("dict", "object", "HashMap", "Hashtable"), "object"),
    }
)
_HINTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "java": ("Java", " Note that the provided function is in Java 8 SDK syntax."),
        "javascript": ("JavaScript", " Note that the provided function is in JavaScript syntax."),
        "python": ("Python", " Note that the provided function is in Python 3 syntax."),
    }
)


@dataclass(frozen=True, slots=True)
class Example:
    """One question. `functions` are as BFCL has them, `tools` as a request does; `answers` is None where only calling
    or not calling is right."""

    id: str
    category: str
    messages: tuple[Message, ...]
    functions: Sequence[Mapping[str, Any]]
    answers: Sequence[Mapping[str, Any]] | None

    @property
    def language(self) -> str:
        return next((word for word in ("javascript", "java") if self.category.endswith(f"_{word}")), "python")

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return tuple(tool_spec(function, self.language) for function in self.functions)


def tool_spec(function: Mapping[str, Any], language: str = "python") -> ToolSpec:
    """A function of BFCL as a request declares it."""
    name, hint = _HINTS[language]
    parameters = function["parameters"]
    if language != "python":
        described = {key: _as_text(part, name) for key, part in parameters["properties"].items()}
        parameters = {**parameters, "properties": described}
    return ToolSpec(function["name"], function.get("description", "") + hint, _schema(parameters))


def read(folder: Path, category: str) -> list[Example]:
    """All examples of a category. Raises BadInput for a folder that is not BFCL's data, and an unknown category."""
    file = _file(folder, category)
    answers = {} if "relevance" in category else dict(_answers(folder / "possible_answer" / file.name))
    return [_example(place, row, category, answers) for place, row in read_objects(file)]


def sample(folder: Path, categories: Sequence[str], most: int | None, seed: int) -> list[Example]:
    """The first `most` of each category in an order by lot, the categories taking turns so that a run that is cut off
    has some of each."""
    drawn = []
    for category in categories:
        examples = read(folder, category)
        random.Random(f"{seed} {category}").shuffle(examples)  # noqa: S311 - not for secrets
        drawn.append(examples[:most])
    longest = max(map(len, drawn), default=0)
    return [examples[at] for at in range(longest) for examples in drawn if at < len(examples)]


def digests(package: Path, categories: Sequence[str]) -> dict[str, str]:
    """Which data was asked: a digest of each category's questions. Raises BadInput as `read` does."""
    return {category: sha256(_file(package / "data", category))[:16] for category in categories}


def _file(folder: Path, category: str) -> Path:
    if category not in CATEGORIES:
        raise BadInput(f"BFCL has no category {category!r} here; use {', '.join(CATEGORIES)}.")
    file = folder / f"{_PREFIX}{category}.json"
    if not file.is_file():
        raise BadInput(f"{str(folder)!r} has no {file.name!r}; give the folder bfcl_eval of BFCL's package.")
    return file


def _answers(file: Path) -> Iterator[tuple[str, Any]]:
    return ((row.get("id", ""), row.get("ground_truth")) for _, row in read_objects(file))


def _example(place: str, row: Mapping[str, Any], category: str, answers: Mapping[str, Any]) -> Example:
    try:
        id_, turns, functions = row["id"], row["question"], row["function"]
        messages = tuple(Message(Role(said["role"]), said["content"]) for said in turns[0])
        found = Example(id_, category, messages, functions, None if "relevance" in category else answers[id_])
        assert len(turns) == 1
        assert found.tools is not None  # they can be written as requests have them
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, AssertionError) as error:
        raise BadInput(f"{place}: this is no question of BFCL's; give the data of bfcl-eval 2026.3.23.") from error
    return found


def _as_text(part: Mapping[str, Any], language: str) -> Mapping[str, Any]:
    """A parameter of Java or JavaScript: the text of a value, and in words what it is the text of."""
    kind, said = part["type"], part.get("description", "")
    if kind == "any":
        said += f" This parameter can be of any type of {language} object in string representation."
    else:
        said += f" This is {language} {kind} type parameter in string representation."
    if "items" in part:
        said += f" The list elements are of type {part['items']['type']}; they are not in string representation."
    if "properties" in part:
        inside = jsonio.dumps(part["properties"])
        said += f" The dictionary entries have the following schema; they are not in string representation. {inside}"
    rest = {key: value for key, value in part.items() if key not in ("items", "properties", "type", "description")}
    return {**rest, "type": "string", "description": said}


def _schema(node: Mapping[str, Any]) -> dict[str, Any]:
    """The node in the words of JSON Schema. `any` is a text in BFCL's table, and to its checker."""
    made = dict(node)
    made["type"] = _TYPES.get(node.get("type", ""), "string")
    if node.get("type") == "float":
        made["description"] = f"{node.get('description', '')} This is a float type value."
    if "properties" in node:
        made["properties"] = {name: _schema(part) for name, part in node["properties"].items()}
    if "items" in node:
        made["items"] = _schema(node["items"])
    return made
