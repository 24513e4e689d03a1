"""The list of cases is data, and tests cite it: neither may name what the other does not have."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
CASES = tomllib.loads((TESTS / "spec" / "cases.toml").read_text(encoding="utf-8"))
NOW, LATER = CASES["now"], CASES["later"]


@cache
def cited() -> dict[str, set[str]]:
    """Case id -> the test files that cite it with `pytest.mark.case`."""
    found: dict[str, set[str]] = {}
    for file in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.case":
                for argument in node.args:
                    found.setdefault(ast.literal_eval(argument), set()).add(str(file.relative_to(TESTS)))
    return found


def test_every_case_of_this_version_has_a_test() -> None:
    missing = {id: title for id, title in NOW.items() if id not in cited()}
    assert not missing, f"cases without a test: {missing}"


def test_every_case_that_a_test_cites_is_on_the_list() -> None:
    unknown = {id: files for id, files in cited().items() if id not in NOW and id not in LATER}
    assert not unknown, f"add these to tests/spec/cases.toml, or mend the id: {unknown}"


def test_a_case_that_has_a_test_is_promised_now() -> None:
    early = {id: files for id, files in cited().items() if id in LATER}
    assert not early, f"these have tests: move them from `later` to `now` in tests/spec/cases.toml: {early}"


def test_no_case_stands_twice() -> None:
    assert not NOW.keys() & LATER.keys()
