"""What the source must look like, each rule with its reason. Read from the syntax tree, nothing is imported.

Not covered: names reached through a variable (`f = json; f.loads`), `getattr` or a computed import.
"""

from __future__ import annotations

import ast
import builtins
import graphlib
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"
FILES = sorted((SRC / "toolwise").rglob("*.py"))
IDS = [str(file.relative_to(SRC / "toolwise")) for file in FILES]

#: From the ground up; `__init__` is the package's own, with the public names.
FLOORS = (
    *("core", "notation", "documents", "tools", "gate", "models", "teach", "decode", "evals", "serve", "demo"),
    *("__init__", "console", "commands", "cli", "__main__"),
)
LIGHT = ("core", "notation", "documents", "tools", "gate")

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 100


@dataclass(frozen=True)
class Ban:
    names: tuple[str, ...]
    why: str
    allowed: str = ""


BANS = (
    Ban(
        ("json.loads", "json.load", "json.JSONDecoder"),
        "the standard parser takes duplicate keys, NaN and endless digits, so JSON is read in one strict place",
        allowed="core/jsonio.py",
    ),
    Ban(("eval", "exec", "builtins.eval", "builtins.exec"), "text must never become code"),
    Ban(("pickle", "marshal", "shelve", "dill", "cloudpickle"), "reading their files runs what the files say"),
    Ban(
        (
            "os.system",
            "os.popen",
            "subprocess.getoutput",
            "subprocess.getstatusoutput",
            "asyncio.create_subprocess_shell",
        ),
        "a shell reads its arguments as a program",
    ),
    Ban(
        (
            *("time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "time.sleep"),
            *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today"),
        ),
        "tests move the clock by hand, which works only if there is one clock",
        allowed="core/clock.py",
    ),
)


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), str(file))


def module_name(file: Path) -> str:
    parts = file.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def floor(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def height(module: str) -> int:
    assert floor(module) in FLOORS, f"{module} is on no floor: give it its place in FLOORS and in CONTRIBUTING.md"
    return FLOORS.index(floor(module))


MODULES = {module_name(file): file for file in FILES}


def imported_names(file: Path) -> Iterator[tuple[ast.stmt, str, str]]:
    """(statement, bound name, full dotted name) of every import, those inside functions included."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.asname or alias.name.split(".")[0], alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module_name(file).split(".")
                up = node.level - (file.name == "__init__.py")
                base = ".".join([*package[: len(package) - up], *filter(None, [node.module])])
            for alias in node.names:
                yield node, alias.asname or alias.name, f"{base}.{alias.name}"


def own_imports(file: Path) -> set[str]:
    """The modules of ours that a file imports."""
    found = set()
    for _, _, name in imported_names(file):
        if name.split(".")[0] == "toolwise":
            found.add(name if name in MODULES else name.rpartition(".")[0])
    return found - {module_name(file)}


def used_names(source: ast.Module, imports: dict[str, str]) -> Iterator[tuple[int, str]]:
    """(line, full dotted name) of every name and attribute that is read, followed through imports."""
    for node in ast.walk(source):
        parts: list[str] = []
        part: ast.AST = node
        while isinstance(part, ast.Attribute):
            parts.insert(0, part.attr)
            part = part.value
        if not isinstance(part, ast.Name) or not isinstance(node, ast.Name | ast.Attribute):
            continue
        head = imports.get(part.id)
        if head is not None or hasattr(builtins, part.id):
            yield node.lineno, ".".join([head or part.id, *parts])


def banned(source: ast.Module, ban: Ban, imports: list[tuple[int, str, str]]) -> list[str]:
    bound = {name: full if full.split(".")[0] != name else name for _, name, full in imports}
    seen = [*used_names(source, bound), *((line, full) for line, _, full in imports)]
    hits = {(line, name) for line, name in seen for bad in ban.names if name == bad or name.startswith(bad + ".")}
    return [f"line {line}: {name}" for line, name in sorted(hits)]


def imports_with_lines(file: Path) -> list[tuple[int, str, str]]:
    return [(node.lineno, name, full) for node, name, full in imported_names(file)]


@pytest.mark.parametrize("file", FILES, ids=IDS)
def test_imports_only_go_down(file: Path) -> None:
    """A lower floor that knows a higher one cannot be read, tested or replaced without it."""
    here = module_name(file)
    up = sorted(name for name in own_imports(file) if height(name) > height(here))
    assert not up, f"{here} imports upwards: {up}"


def test_imports_form_no_cycle() -> None:
    """Modules in a cycle are one module in several files, and only import order decides whether they load."""
    graph = {name: own_imports(file) for name, file in MODULES.items()}
    try:
        tuple(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        pytest.fail(f"cycle: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize("file", FILES, ids=IDS)
@pytest.mark.parametrize("ban", BANS, ids=lambda ban: ban.names[0])
def test_banned_names_are_not_used(file: Path, ban: Ban) -> None:
    """Each ban says why."""
    if ban.allowed and file == SRC / "toolwise" / ban.allowed:
        return
    hits = banned(tree(file), ban, imports_with_lines(file))
    assert not hits, f"{ban.why}; in {file.name}: {hits}"


@pytest.mark.parametrize("file", FILES, ids=IDS)
def test_no_process_is_started_through_a_shell(file: Path) -> None:
    """A shell reads its arguments as a program."""
    shells = [
        node.value.lineno
        for node in ast.walk(tree(file))
        if isinstance(node, ast.keyword) and node.arg == "shell" and ast.unparse(node.value) != "False"
    ]
    assert not shells, f"shell= in {file.name}, lines {shells}"


@pytest.mark.parametrize(
    "code",
    [
        "import json; json.loads('1')",
        "import json as j; keep = j.load",
        "from json import loads as read",
        "import datetime as dt; dt.datetime.now()",
        "from datetime import date; date.today()",
        "from time import sleep; sleep(1)",
        "import pickle",
        "import os.path, os; os.system('true')",
        "map(eval, [])",
    ],
)
def test_a_banned_name_is_found_however_it_is_imported(code: str, tmp_path: Path) -> None:
    """A search that finds nothing anywhere proves nothing."""
    source = ast.parse(code)
    imports = [
        (node.lineno, alias.asname or alias.name.split(".")[0], full)
        for node in ast.walk(source)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        for full in [alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"]
    ]
    assert any(banned(source, ban, imports) for ban in BANS)


@pytest.mark.parametrize("file", FILES, ids=IDS)
def test_files_and_functions_are_short(file: Path) -> None:
    """What does not fit on a few screens holds a second idea."""
    lines = file.read_text(encoding="utf-8").count("\n")
    assert lines <= MAX_FILE_LINES, f"{file.name} has {lines} lines"
    long = {
        node.name: node.end_lineno - node.lineno + 1
        for node in ast.walk(tree(file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION_LINES
    }
    assert not long, f"long functions in {file.name}: {long}"


@pytest.mark.parametrize("file", FILES, ids=IDS)
def test_every_module_says_what_it_is_for(file: Path) -> None:
    """The first line is what a newcomer reads when deciding whether to read on."""
    assert ast.get_docstring(tree(file)), f"{file.name} has no docstring"


@pytest.mark.parametrize("file", FILES, ids=IDS)
def test_a_list_of_public_names_is_exact(file: Path) -> None:
    """A name that is public by accident has to be kept for ever."""
    body = tree(file).body
    lists = [
        ast.literal_eval(node.value)
        for node in body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    if not lists:
        return
    defined = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    for node in body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and not ast.unparse(node.value or node).startswith("TypeVar("):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            defined |= {target.id for target in targets if isinstance(target, ast.Name)}
    outer = [*body, *(inner for node in body if isinstance(node, ast.If) for inner in node.body)]
    handed_on = {name for node, name, _ in imported_names(file) if node in outer}
    public = {name for name in defined if not name.startswith("_")}
    assert len(lists[0]) == len(set(lists[0]))
    assert public <= set(lists[0]) <= defined | handed_on


@cache
def declared() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Packages that may be imported: the core's; with the extras that need no torch; with every extra but `dev`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    owners = {package: {normal(name) for name in names} for package, names in packages_distributions().items()}

    def packages(requirements: list[str]) -> frozenset[str]:
        wanted = {normal(re.split(r"[<>=!~;\[ ]", requirement)[0]) for requirement in requirements}
        return frozenset(package for package, names in owners.items() if names & wanted)

    extras = {extra: packages(listed) for extra, listed in project["optional-dependencies"].items() if extra != "dev"}
    core = packages(project["dependencies"])
    light = core.union(*(own for extra, own in extras.items() if extra != "teach"))
    return core, light, core.union(*extras.values())


def normal(distribution: str) -> str:
    return distribution.lower().replace("_", "-")


@pytest.mark.parametrize("file", FILES, ids=IDS)
def test_every_package_that_is_imported_is_declared(file: Path) -> None:
    """What is there only because something else brought it goes when that something changes its mind."""
    core, light, every = declared()
    lower = floor(module_name(file)) in LIGHT
    strange = {
        f"line {node.lineno}: {full}"
        for node, _, full in imported_names(file)
        for allowed in [every if not lower else light if node.col_offset else core]  # an extra only where it is used
        if full.split(".")[0] not in {"toolwise", *sys.stdlib_module_names, *allowed}
    }
    assert not strange, f"{file.name} imports what pyproject.toml does not name: {strange}"


@pytest.mark.parametrize("file", FILES, ids=IDS)
def test_only_heavy_packages_are_imported_inside_functions(file: Path) -> None:
    """An import inside a function hides a dependency, so only what is optional and slow to load may hide."""
    if floor(module_name(file)) in ("__init__", "commands", "cli", "__main__"):  # they load what is needed then
        return
    core, _, every = declared()
    may_hide = (every - core) | {"fcntl", "resource"}  # the last two are not on every system
    hidden = {
        f"line {node.lineno}: {full}"
        for node, _, full in imported_names(file)
        if node.col_offset and full.split(".")[0] not in may_hide
    }
    assert not hidden, f"{file.name} imports inside a function: {hidden}"


#: What else has a method `run`: programs, event loops, loops of agents, and the gate's own processes.
OTHER_RUNS = {"agent", "asyncio", "subprocess", "self._runner", "_Server(program, theirs, tools, limits)", "protocol"}


@pytest.mark.parametrize("file", FILES, ids=IDS)
def test_a_tool_runs_nowhere_but_in_the_gate(file: Path) -> None:
    """A second way to run a tool would be a way around the policy, the ledger and the audit log."""
    if file == SRC / "toolwise" / "gate" / "outcome.py":
        return
    ways = {
        f"line {node.lineno}: {ast.unparse(node.func)}"
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "run"
        if ast.unparse(node.func.value) not in OTHER_RUNS
    }
    assert not ways, f"{file.name} runs a tool: {ways}"


def test_every_test_file_has_a_name_of_its_own() -> None:
    """Test folders are no packages, so that pytest knows a file by its name alone and stops at the second."""
    names = Counter(file.name for file in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
