"""The obedient model over AgentDojo, with our gate in place of its executor. README.md says what is measured.

python run.py --workers 2                            everything
python run.py --suites banking --attacks direct      a part
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
import yaml
from agentdojo.task_suite.load_suites import get_suites
from cells import Outcome, Suite
from check import lies
from report import problems, sheets, summary
from rich.console import Console
from rich.progress import Progress

ATTACKS = (
    *("direct", "ignore_previous", "important_instructions", "tool_knowledge"),
    *("dos", "swearwords_dos", "captcha_dos", "offensive_email_dos", "felony_dos"),
)
SUITES = ("workspace", "travel", "banking", "slack")

# For every cell the package reads an environment of 100 KB with the slower of PyYAML's two readers of one language.
yaml.safe_load = partial(yaml.load, Loader=yaml.CSafeLoader)


def main(
    suites: Annotated[str, typer.Option(help="Names with commas between them.")] = ",".join(SUITES),
    attacks: Annotated[str, typer.Option(help="Names with commas between them.")] = ",".join(ATTACKS),
    version: Annotated[str, typer.Option(help="Of the suites.")] = "v1.2.2",
    workers: Annotated[int, typer.Option(help="Processes.", min=1)] = 1,
    out: Annotated[Path | None, typer.Option("--json", help="Where to write the figures and every cell.")] = None,
    page: Annotated[Path | None, typer.Option("--markdown", help="Where to write the tables as Markdown.")] = None,
) -> None:
    """Attack a model that obeys, and count by the state of the environment."""
    chosen = [name for name in get_suites(version) if name in suites.split(",")]
    console = Console()
    wrong = [lie for name in chosen for lie in lies(get_suites(version)[name])]
    tasks = [(version, name, task) for name in chosen for task in get_suites(version)[name].user_tasks]
    outcomes = list(_all(tasks, ("none", *attacks.split(",")), workers, console))
    drawn = sheets(outcomes)
    for sheet in drawn:
        console.print(sheet.table())
    wrong += problems(outcomes)
    for problem in wrong:
        console.print(f"[red]{problem}")
    if out is not None:
        figures = {
            "version": version,
            "problems": wrong,
            "summary": summary(outcomes),
            "cells": [*map(asdict, outcomes)],
        }
        out.write_text(json.dumps(figures, indent=1), "utf-8")
    if page is not None:
        page.write_text("\n".join(sheet.markdown() for sheet in drawn), "utf-8")
    raise typer.Exit(bool(wrong))


def _all(
    tasks: Sequence[tuple[str, str, str]], attacks: Sequence[str], workers: int, console: Console
) -> Iterator[Outcome]:
    with Progress(console=console) as progress, ProcessPoolExecutor(workers) as pool:
        bar = progress.add_task("user tasks", total=len(tasks))
        for found in pool.map(_one, tasks, [attacks] * len(tasks)):
            progress.advance(bar)
            yield from found


def _one(task: tuple[str, str, str], attacks: Sequence[str]) -> list[Outcome]:
    version, name, task_id = task
    suite = Suite(version, name)
    return [each for attack in attacks for each in suite.outcomes(suite.suite.user_tasks[task_id], attack)]


if __name__ == "__main__":
    typer.run(main)
