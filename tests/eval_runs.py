"""Run folders of evaluations, made row by row."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolwise.evals.answers import Row, fill

TASK = {"data": "d" * 16, "dropped": {}, "prompt": "{q} The answer is", "rule": "the first number", "max_tokens": 48}


def settings(
    model: str = "m",
    tasks: Mapping[str, int] = {"svamp": 8},
    k: int = 10,
    taught: str = "calls",
    parameters: int = 134_515_008,
) -> dict[str, Any]:
    """What a run of `tasks` (name: questions) was begun with; k 0 is disabled."""
    decode = {"enabled": k > 0, "start_top_k": k or 10, "max_calls": 1, "strict": False, "start_threshold": None}
    asked = {name: {**TASK, "examples": count, "of": count, "without": []} for name, count in tasks.items()}
    about = {"parameters": parameters, "taught": taught}
    tools = {"Calculator": ["hash", ""]}
    return {"format": 1, "model": model, "about": about, "tools": tools, "decode": decode, "tasks": asked, "seed": 0}


def row(
    number: int, right: bool, *, task: str = "svamp", code: str | None = None, call: bool = False, **more: Any
) -> Row:
    """An answer to question `number`; a `code` is that of its call's error."""
    called = call or code is not None
    told = "8" if code is None else "Error: no number"
    written = f" [Calculator(3 + 5) -> {told}] 8." if called else " It is 9."
    calls = [{"body": "Calculator(3 + 5)", "name": "Calculator", "result": told, "code": code, "at": 0}]
    return {
        **{"id": f"q{number}", "task": task, "prompt": f"A boat has 3 and {number} sails. The answer is"},
        **{"written": written, "text": written.rpartition("]")[2], "calls": calls if called else []},
        **{"right": right, "read": "8", "stop": "enough", "sampled": 12 if called else 4, "fed": 60 if called else 40},
        **{"seconds": 0.5 if called else 0.25, "answers": ["8"], "about": {}, **more},
    }


def write(folder: Path, rows: Sequence[Row], begun: Mapping[str, Any]) -> Path:
    key: Callable[[Row], tuple[str, str]] = lambda one: (one["task"], one["id"])  # noqa: E731
    fill(folder, begun, {key(one): one for one in rows}, lambda: lambda one: one, key)
    return folder


def experiment(out: Path, sizes: Sequence[int] = (134_515_008,), questions: int = 120, seed: int = 0) -> list[Path]:
    """The paper's arms for models of several sizes: two tasks, tools help more the larger the model is."""
    lot, made = random.Random(seed), []
    for number, size in enumerate(sizes):
        share = 0.04 + 0.05 * number
        arms = [("base", "nothing", 0, share), ("plain", "texts", 0, share), ("tuned-disabled", "calls", 0, share)]
        arms += [
            (f"tuned-k{k}" if k < 10 else "tuned", "calls", k, share + 0.03 * k * (number + 1) / 4) for k in (1, 3, 10)
        ]
        for label, taught, k, score in arms:
            tasks = {"svamp": questions, "asdiv": questions}
            rows = [
                row(
                    n,
                    lot.random() < score * (0.7 if task == "svamp" else 1),
                    task=task,
                    call=lot.random() < (k / 10) ** 0.3 if k else False,
                    code=None if not k or lot.random() < 0.97 else "invalid_arguments",
                )
                for task in tasks
                for n in range(questions)
            ]
            name = label if len(sizes) == 1 else f"{size // 1_000_000}M-{label}"
            model = f"{size}-{taught}"
            made.append(write(out / name, rows, settings(model, tasks, k, taught, size)))
    return made
