"""Every Python example in the documentation and in docstrings is run, so none can be out of date.

A fence that is marked `python` in README.md, CONTRIBUTING.md or docs/ is run from the first to the last of its file
in one namespace, in an empty folder; one with `>>>` is compared with what it shows. One that is marked
`python model` runs where the small model has been pulled, and the code of one marked `python mine.py` lies in that file
as well. In a fence marked `console` each line with `$ toolwise` is a command that shows what follows it; `$NAME` in it
is a name of the Python examples.
"""

from __future__ import annotations

import doctest
import importlib
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from command_line import Toolwise

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(python[^\n]*|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MODULES = [
    ".".join(file.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
    for file in sorted((ROOT / "src").rglob("*.py"))
    if ">>> " in file.read_text(encoding="utf-8")
]


def run_example(code: str, where: str, names: dict[str, Any]) -> None:
    if ">>> " not in code:
        exec(compile(code, where, "exec"), names)
        return
    example = doctest.DocTestParser().get_doctest(code, names, where, where, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    failures: list[str] = []
    runner.run(example, out=failures.append, clear_globs=False)
    names.update(example.globs)
    assert not failures, "".join(failures)


def run_commands(code: str, names: dict[str, Any], toolwise: Toolwise) -> None:
    for example in code.split("$ ")[1:]:
        command, _, wanted = example.partition("\n")
        program, *words = shlex.split(command)
        assert program == "toolwise"
        done = toolwise(*(str(names[word[1:]]) if word[:1] == "$" else word for word in words))
        shown = "\n".join(line.rstrip() for line in (done.out + done.err).split("\n"))
        same = doctest.OutputChecker().check_output(wanted, shown, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        assert same, f"{command}\nshows\n{shown}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, toolwise: Toolwise
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOOLWISE_STATE", raising=False)
    names: dict[str, Any] = {"__name__": "example"}
    for number, (kind, code) in enumerate(FENCE.findall(page.read_text(encoding="utf-8")), 1):
        if "model" in kind:
            request.getfixturevalue("smollm2")
        if kind == "console":
            run_commands(code, names, toolwise)
            continue
        for file in re.findall(r"\S+\.py$", kind):
            Path(file).write_text(code, encoding="utf-8")
        run_example(code, f"{page.name}, example {number}", names)


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs" / "own-tools.md"], ids=lambda page: page.name)
def test_the_tutorials_tool_is_the_one_among_the_examples(page: Path) -> None:
    (shown,) = re.findall(r"^```python mine\.py\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert shown == (ROOT / "examples" / "own_tool" / "mine.py").read_text("utf-8")


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_module_run(module: str) -> None:
    failures: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for example in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(module)):
        runner.run(example, out=failures.append)
    assert runner.tries, "the example stands where doctest does not look"
    assert not failures, "".join(failures)


def test_an_example_that_shows_something_else_fails() -> None:
    with pytest.raises(AssertionError, match="Expected"):
        run_example(">>> 1 + 1\n3\n", "here", {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    dead = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert not dead, f"{page.name} links to files that are not there: {dead}"
