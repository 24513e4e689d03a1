"""Every reason that a stage can write is explained, and nothing is explained that no stage writes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import toolwise.teach.keep
from toolwise.teach.report.reasons import REASONS, STAGES, explain, rank, stage_of

TEACH = Path(toolwise.teach.keep.__file__).parent
MAKERS = {"_candidate", "new_candidate", "_not_tried"}  # functions whose last argument is a reason


def texts(node: ast.expr | None) -> Iterator[str]:
    """The string constants that an expression can be."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    if isinstance(node, ast.IfExp):
        yield from texts(node.body)
        yield from texts(node.orelse)


def written(source: str, *, rules: bool = False) -> set[str]:
    """The reasons in a module: `reason="..."`, `reason = ...`, the makers' last argument, what a rule returns."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.keyword(arg="reason", value=value) | ast.Assign(targets=[ast.Name("reason")], value=value):
                found.update(texts(value))
            case ast.Call(func=ast.Name(maker) | ast.Attribute(attr=maker), args=[*_, last]) if maker in MAKERS:
                found.update(texts(last))
            case ast.Return(value=value) if rules:
                found.update(texts(value))
    return found


def all_written() -> set[str]:
    return {
        code
        for file in [*TEACH.glob("*.py"), *TEACH.glob("corpus/*.py")]
        for code in written(file.read_text(encoding="utf-8"), rules=file.name in ("rules.py", "checks.py"))
    }


def test_every_reason_that_a_stage_writes_is_explained_and_no_other() -> None:
    assert all_written() == set(REASONS)


def test_the_search_finds_a_reason_in_each_form() -> None:
    source = 'replace(c, reason="a" if x else "b")\nreason = None if ok else "c"\nself._candidate(p, "body", "d")'
    assert written(source) == {"a", "b", "c", "d"}
    assert written('def rule():\n    return None if x else "e"', rules=True) == {"e"}


def test_an_explanation_is_one_or_two_sentences() -> None:
    for said in REASONS.values():
        assert said[0].isupper()
        assert said.endswith(".")


def test_no_reason_belongs_to_two_stages() -> None:
    assert sum(map(len, STAGES.values())) == len(REASONS)


def test_reasons_sort_in_the_order_of_the_stages_and_unknown_ones_come_last() -> None:
    codes = ["of_another_version", "overlap", "unclosed", "no_date"]
    assert sorted(codes, key=rank) == ["no_date", "unclosed", "overlap", "of_another_version"]
    assert stage_of("of_another_version") == "unknown"
    assert "no explanation" in explain("of_another_version")
