"""What importing the package really loads, seen from a fresh interpreter in which the heavy packages are forbidden."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import toolwise

PACKAGE = Path(toolwise.__file__).parent
LIGHT = ("core", "notation", "tools", "gate")
FORBID = """
import sys
HEAVY = {"torch", "transformers", "tokenizers", "safetensors", "pyarrow", "peft", "accelerate", "gguf", "matplotlib"}
class Forbid:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in HEAVY:
            raise ImportError(f"{name} must not be imported here")
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
pages = [["--help"], *([name, "--help"] for name in getattr(command, "commands", {}))]
for page in pages:
    command.main(page, prog_name="toolwise", standalone_mode=False)
"""
    done = run(code)
    assert done.returncode == 0, done.stderr
    assert "Usage: toolwise" in done.stdout


def test_the_package_exports_exactly_what_it_says() -> None:
    """A name that is public by accident has to be kept for ever."""
    for name in toolwise.__all__:
        assert getattr(toolwise, name) is not None
    modules = {file.stem for file in PACKAGE.iterdir()}
    public = {name for name in vars(toolwise) if not name.startswith("_")} - modules
    assert public == set(toolwise.__all__) - {"__version__"}
