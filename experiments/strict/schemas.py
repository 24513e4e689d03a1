"""Schemas of public collections, by path: nothing of them is kept here."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: How BFCL writes types, as JSON Schema has them; `None` is any.
TYPES = {
    **{"dict": "object", "hashmap": "object", "float": "number", "double": "number", "long": "integer"},
    **{"tuple": "array", "arraylist": "array", "array": "array", "string": "string", "char": "string", "any": None},
}


@dataclass(frozen=True)
class Item:
    """A schema, a question that a call could answer, and instances that are known to fit or not."""

    source: str
    id: str
    name: str
    description: str
    schema: dict[str, Any]
    question: str
    instances: tuple[tuple[bool, Any], ...] = ()


def bfcl(folder: Path) -> Iterator[Item]:
    """The functions of BFCL's single-turn sets, each distinct one once, with the first question that shows it."""
    seen = set()
    for file in sorted(folder.glob("BFCL_v4_*.json")):
        if not any(part in file.name for part in ("simple", "multiple", "parallel")):
            continue
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            question = " ".join(turn["content"] for turn in row["question"][0])
            for number, function in enumerate(row["function"]):
                schema = _standard(function["parameters"])
                key = json.dumps([function["name"], schema], sort_keys=True)
                if key not in seen:
                    seen.add(key)
                    name, said = function["name"].replace("/", "_"), function.get("description", "")
                    yield Item("BFCL", f"{row['id']}/{number}", name, said, schema, question)


def bench(folder: Path) -> Iterator[Item]:
    """The schemas of JSONSchemaBench (maskbench/data), those that it took from BFCL left out."""
    for file in sorted(folder.glob("*.json")):
        if file.name.startswith("BFCL"):
            continue
        row = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(row.get("schema"), dict):
            continue
        instances = tuple((test["valid"], test["data"]) for test in row.get("tests", ()))
        said = str(row["schema"].get("description") or row["schema"].get("title") or "a record")[:200]
        yield Item("bench", file.stem, "submit", said, row["schema"], f"Submit one example: {said}", instances)


def lot(items: Iterator[Item], seed: int) -> list[Item]:
    """In an order by lot that is the same every time."""
    found = list(items)
    random.Random(seed).shuffle(found)  # noqa: S311
    return found


def _standard(node: Any, names: bool = False) -> Any:
    if isinstance(node, list):
        return [_standard(part) for part in node]
    if not isinstance(node, dict):
        return node
    if names:
        return {name: _standard(part) for name, part in node.items()}
    made = {}
    for key, value in node.items():
        if key == "type" and isinstance(value, str):
            kind = TYPES.get(value.lower(), value.lower())
            if kind:
                made[key] = kind
        elif key in ("default", "enum", "const", "example", "examples"):
            made[key] = value
        else:
            made[key] = _standard(value, key == "properties")
    return made
