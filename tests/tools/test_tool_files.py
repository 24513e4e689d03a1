"""Tools from a user's file: found in their order, and whatever is wrong with the file is one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolwise.core.errors import BadInput
from toolwise.models.toolbox import toolbox
from toolwise.tools import CALCULATOR
from toolwise.tools.load import load_tools

TWO = '''
from __future__ import annotations
from dataclasses import dataclass
from toolwise import CALCULATOR_IF_ANY, Effect, tool
from toolwise.tools import CALCULATOR

@dataclass
class Place:
    city: str

@tool(effect=Effect.READ)
def weather(place: Place) -> str:
    """Weather."""
    return place.city

@tool
def send(to: str) -> str:
    """Send."""
    return to

again = send
_hidden = tool(send.run, name="hidden") if False else None
'''.replace("CALCULATOR_IF_ANY, ", "")


def file(folder: Path, text: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_every_tool_of_a_file_is_found_once_and_in_order(tmp_path: Path) -> None:
    found = load_tools(file(tmp_path, TWO))
    assert [tool.name for tool in found] == ["Calculator", "weather", "send"]
    assert found[1].run(place={"city": "Oslo"}) == "Oslo"


def test_files_and_names_of_ours_make_one_registry(tmp_path: Path) -> None:
    path = file(tmp_path, TWO.replace("from toolwise.tools import CALCULATOR", ""))
    assert toolbox([str(path), "Calculator"]).registry.names == ("weather", "send", "Calculator")
    assert toolbox(["Calculator"]).registry["Calculator"] is CALCULATOR
    for wanted in (["Calculater"], [str(tmp_path / "none.py")]):
        with pytest.raises(BadInput):
            toolbox(wanted)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "holds no tool"),
        ("1 +", "SyntaxError"),
        ("import nothing_of_this_name", "ModuleNotFoundError"),
        ("raise SystemExit(3)", "SystemExit"),
        ("raise ValueError('a' * 10_000 + '\\n\\x1b[2J')", "ValueError: aaa"),
        ("\x00", "SyntaxError|ValueError"),
    ],
)
def test_a_file_that_gives_no_tools_is_one_sentence(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=words) as refused:
        load_tools(file(tmp_path, text))
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 1_000


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    for path in (tmp_path / "none.py", tmp_path / "folder.py", file(tmp_path, TWO, "mine.txt")):
        with pytest.raises(BadInput, match="no Python file"):
            load_tools(path)
