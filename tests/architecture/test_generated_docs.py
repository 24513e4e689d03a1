"""What the documentation takes from the code is what the code says now. `scripts/docs` makes the pages anew."""

from __future__ import annotations

import inspect
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from toolwise.core import errors
from toolwise.core.errors import ToolwiseError

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "scripts" / "docs.py"))
BOUNDS = '''
class Bounds:
    """Of a thing."""

    # How large
    size: int = 3  # more is a mistake
    width: int = (
        4  # never seen
    )
    # How long
    length: int = 5  # a # in a comment
    text: str = "# no comment"
'''


@pytest.mark.parametrize("name", SCRIPT["PAGES"])
def test_a_generated_page_says_what_the_code_says(name: str) -> None:
    same = (DOCS / name).read_text(encoding="utf-8") == SCRIPT["PAGES"][name]()
    assert same, f"docs/{name} is out of date: run scripts/docs and commit what it changes"


def test_every_page_is_linked_from_the_index() -> None:
    """A page that nothing leads to is not read."""
    linked = set(re.findall(r"\]\(([^)#\s]+)\)", (DOCS / "index.md").read_text(encoding="utf-8")))
    assert {file.name for file in DOCS.glob("*.md")} - {"index.md"} <= linked


def test_a_field_is_explained_by_the_comment_behind_it_and_grouped_by_the_one_above() -> None:
    found = [(field.name, field.group, field.comment) for field in SCRIPT["fields_of"](BOUNDS)]
    assert found == [
        ("size", "How large", "more is a mistake"),
        ("width", "How large", ""),
        ("length", "How long", "a # in a comment"),
        ("text", "How long", ""),
    ]


def test_what_has_no_explanation_is_refused() -> None:
    for nothing in (None, "", " \n"):
        with pytest.raises(ValueError, match="width has no explanation"):
            SCRIPT["explained"](nothing, "width")


def test_a_bar_in_a_cell_makes_no_column() -> None:
    assert SCRIPT["table"](["a"], [["x | y"]]).splitlines()[-1] == r"| x \| y |"


def test_the_drawing_of_the_error_tree_is_the_tree() -> None:
    """The drawing is what people read first, and it says of each group who acts."""
    drawn = re.findall(r"[├└]── (\w+) +(.+)", inspect.getdoc(errors) or "")
    groups = [group for group in ToolwiseError.__subclasses__() if group.__module__ == errors.__name__]
    leaves = [(leaf.__name__, leaf.code) for group in groups for leaf in group.__subclasses__()]
    assert [name for name, _ in drawn if name.endswith("Fault")] == [group.__name__ for group in groups]
    assert [(name, said) for name, said in drawn if not name.endswith("Fault")] == leaves
