"""`toolwise eval bfcl` against a server: of ours, and one that is not there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api_server import Served, serving

CHECKER = """
from bfcl_eval.constants.model_config import MODEL_CONFIG_MAPPING


def ast_checker(functions, calls, answers, language, category, model):
    assert not MODEL_CONFIG_MAPPING[model].underscore_to_dot
    assert [function["name"] for function in functions] == ["math.sum"]
    wrong = calls != answers
    return {"valid": not wrong, "error": [f"not {answers}"], "error_type": "value_error:other"}
"""
ENUMS = 'from enum import Enum\n\n\nclass Language(Enum):\n    PYTHON = "python"\n'
SUM = {"name": "math.sum", "description": "Adds.", "parameters": {"type": "dict", "properties": {}, "required": []}}


def question(id: str, text: str) -> str:
    return json.dumps({"id": id, "question": [[{"role": "user", "content": text}]], "function": [SUM]})


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package in the shape of BFCL's, whose checker asks for the one table that ours puts in place."""
    folder = tmp_path_factory.mktemp("package") / "bfcl_eval"
    texts = {
        "eval_checker/ast_eval/ast_checker.py": CHECKER,
        "constants/enums.py": ENUMS,
        "data/BFCL_v4_simple_python.json": question("s0", 'call math_sum {"a": 1}') + "\n" + question("s1", "say hi"),
        "data/possible_answer/BFCL_v4_simple_python.json": "\n".join(
            json.dumps({"id": id, "ground_truth": [{"math.sum": {"a": 1}}]}) for id in ("s0", "s1")
        ),
        "data/BFCL_v4_irrelevance.json": question("i0", "say hi"),
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as made:
        yield made


def toolwise(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A process of its own, since a package that is imported once stays."""
    return subprocess.run(
        [sys.executable, "-m", "toolwise", *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def evaluated(url: str, package: Path, out: Path) -> dict[str, Any]:
    asked = ("--url", url, "--model", "scripted", "--categories", "simple_python,irrelevance", "--json")
    done = toolwise("eval", "bfcl", "--data", str(package), "--out", str(out), *asked)
    assert done.returncode == 0, done.stderr
    return {line["category"]: line for line in json.loads(done.stdout)}


def test_a_server_is_asked_and_judged_and_what_is_not_there_is_right_nowhere(
    served: Served, package: Path, tmp_path: Path
) -> None:
    found = evaluated(f"{served.url}/v1", package, tmp_path / "out")
    assert {name: line["right"] for name, line in found.items()} == {"simple_python": 0.5, "irrelevance": 1.0}
    rows = {row["id"]: row for row in map(json.loads, (tmp_path / "out" / "answers.jsonl").read_text().splitlines())}
    assert rows["s0"]["reply"]["calls"][0]["name"] == "math.sum"
    assert rows["s1"]["why"] == "no call"
    dead = evaluated("http://127.0.0.1:9/v1", package, tmp_path / "dead")
    assert {name: (line["right"], line["failed"]) for name, line in dead.items()} == {
        "simple_python": (0.0, 2),
        "irrelevance": (0.0, 1),
    }


def test_without_bfcls_package_the_command_says_where_it_comes_from(tmp_path: Path) -> None:
    done = toolwise("eval", "bfcl", "--data", str(tmp_path), "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "bfcl_eval" in done.stderr
    assert not (tmp_path / "out").exists()
