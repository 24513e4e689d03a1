"""What importing the package really loads, seen from a fresh interpreter in which the heavy packages are forbidden."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import toolwise

PACKAGE = Path(toolwise.__file__).parent
LIGHT = ("core", "notation", "documents", "tools", "gate")
FORBID = """
import sys
HEAVY = {"torch", "transformers", "tokenizers", "safetensors", "pyarrow", "peft", "accelerate", "gguf", "matplotlib"}
HEAVY |= {"bm25s", "Stemmer", "datasets", "pandas", "llguidance"}
HEAVY |= {"sqlalchemy", "psycopg", "starlette", "uvicorn", "redis", "opentelemetry"}
class Forbid:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in HEAVY:
            raise ModuleNotFoundError(f"{name} must not be imported here", name=name)
sys.meta_path.insert(0, Forbid())
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", FORBID + code], capture_output=True, text=True, timeout=120, check=False
    )


def light_modules() -> list[str]:
    files = [file for floor in LIGHT for file in sorted((PACKAGE / floor).rglob("*.py"))]
    names = [".".join(("toolwise", *file.relative_to(PACKAGE).with_suffix("").parts)) for file in files]
    return [name.removesuffix(".__init__") for name in names]


def test_the_guard_of_these_tests_works() -> None:
    assert "torch must not be imported here" in run("import torch").stderr


def test_the_lower_floors_import_without_the_heavy_packages() -> None:
    """Whoever only runs calls installs no torch, and starts in a fraction of a second."""
    done = run("".join(f"import {name}\n" for name in ["toolwise", *light_modules()]))
    assert done.returncode == 0, done.stderr


def test_every_help_page_of_the_command_line_comes_without_the_heavy_packages() -> None:
    """Help that takes five seconds is not asked for twice."""
    code = """
from typer.main import get_command
from toolwise.cli import app
command = get_command(app)
def pages(group, path):
    yield [*path, "--help"]
    for name, child in getattr(group, "commands", {}).items():
        yield from pages(child, [*path, name])
for page in pages(command, []):
    command.main(page, prog_name="toolwise", standalone_mode=False)
"""
    done = run(code)
    assert done.returncode == 0, done.stderr
    assert "Usage: toolwise" in done.stdout


def test_the_package_exports_exactly_what_it_says() -> None:
    """A name that is public by accident has to be kept for ever."""
    star: dict[str, object] = {}
    exec("from toolwise import *", star)
    del star["__builtins__"]
    assert set(star) == set(toolwise.__all__) == set(dir(toolwise))
    assert all(value is not None for value in star.values())
    assert not hasattr(toolwise, "nothing_of_this_name")


def test_type_checkers_see_every_public_name_where_it_is_loaded_from() -> None:
    """The names stand there twice, once for programs and once for the tools that read them."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (checking,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: (node.module or "").removeprefix("toolwise.")
        for node in checking.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == toolwise._HOME_OF
    assert set(seen) == set(toolwise.__all__) - {"__version__"}


def test_a_public_name_that_needs_missing_packages_says_what_to_install() -> None:
    for name in ("load_model", "train", "annotate"):
        done = run(f"from toolwise import {name}")
        assert "ModelUnavailable" in done.stderr
        assert "pip install 'toolwise[teach]'" in done.stderr


def test_whoever_runs_calls_needs_none_of_the_heavy_packages() -> None:
    code = """
from toolwise import Call, CallContext, Effect, Principal, Registry, offline_gate, tool
@tool(effect=Effect.PURE, bounded=True)
def double(number: int) -> int:
    "Double a number."
    return 2 * number
gate = offline_gate(Registry([double]))
print(gate.execute(Call("1", "double", {"number": 21}), CallContext(Principal("ann"), "run")).text)
"""
    assert run(code).stdout.strip() == "42"
