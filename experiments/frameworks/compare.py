"""What one tool call costs in public frameworks and in ours, in one run, and what they do with a bad one.

    python compare.py [--rounds 40] [--calls 50] [--json result.json]

Every round makes so many calls with each path, in an order that is drawn anew, so that a busy machine is busy for all.
All run in one event loop, as in an agent; a call that is synchronous is simply called there.
"""

import argparse
import asyncio
import json
import logging
import platform
import random
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median, quantiles

from paths import PATHS, ToolPath, Toolwise
from probes import GOOD, probe
from rich.console import Console
from rich.progress import track
from rich.table import Table

PACKAGES = ("toolwise", "pydantic-ai-slim", "langchain-core", "langgraph", "openai-agents", "smolagents", "agno")


Seconds = tuple[float, float]
Found = dict[str, list[list[Seconds]]]  # path -> round -> every call


def add(a: int, b: int) -> int:
    """Add two integers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


async def one(path: ToolPath, id: str) -> Seconds:
    """What one call takes: wall time, and processor time of all threads of this process."""
    computed, started = time.process_time(), time.perf_counter()
    text = await path.call(id, GOOD)
    taken = time.perf_counter() - started, time.process_time() - computed
    assert text == "42", (path.name, text)
    return taken


async def timed(folder: Path, rounds: int, calls: int) -> Found:
    """Every path in turns."""
    paths = [each(add, folder) for each in PATHS]
    order = random.Random(0)  # noqa: S311
    found: Found = {path.name: [] for path in paths}
    for path in paths:
        for number in range(20):
            await one(path, f"warm-{number}")
    for turn in track(range(rounds), "rounds", console=Console(stderr=True), transient=True):
        for path in order.sample(paths, len(paths)):
            found[path.name].append([await one(path, f"{turn}-{number}") for number in range(calls)])
    for path in paths:
        path.close()
    return found


def summary(found: Found) -> dict[str, dict[str, float]]:
    """Microseconds, and `ratio`: the median over the rounds of this path's processor time to ours."""

    def computed(turn: list[Seconds]) -> float:
        return median(cpu for _, cpu in turn)

    told = {}
    for name, turns in found.items():
        every = [pair for turn in turns for pair in turn]
        tenths = quantiles((wall for wall, _ in every), n=10)
        micro = {"p10": tenths[0], "median": tenths[4], "p90": tenths[8], "cpu": computed(every)}
        ratio = median(computed(turn) / computed(ours) for turn, ours in zip(turns, found[Toolwise.name], strict=True))
        told[name] = {key: 1e6 * value for key, value in micro.items()} | {"ratio": ratio}
    return told


async def compare(rounds: int, calls: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory(dir=".") as made:
        probed = {}
        logging.disable(logging.CRITICAL)  # of what is refused below
        for each in PATHS:
            (folder := Path(made, each.__name__)).mkdir()
            probed[each.name] = await probe(each, folder)
        logging.disable(logging.NOTSET)
        costs = summary(await timed(Path(made), rounds, calls))
    return {
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        "calls": rounds * calls,
        "entries": {each.name: each.entry for each in PATHS},
        "microseconds": costs,
        "probes": probed,
    }


def show(result: dict[str, object]) -> None:
    console = Console(width=160)
    cost = Table("path", "entry", title=f"One call, microseconds ({result['calls']} calls each)")
    for column in ("p10", "median", "p90", "cpu", "cpu x ours"):
        cost.add_column(column, justify="right")
    for name, told in result["microseconds"].items():
        cost.add_row(
            name,
            result["entries"][name],
            *(f"{told[part]:.1f}" for part in ("p10", "median", "p90", "cpu")),
            f"{told['ratio']:.2f}",
        )
    console.print(cost)
    questions = list(next(iter(result["probes"].values())))
    answers = Table("path", *questions, title="What becomes of")
    for name, told in result["probes"].items():
        answers.add_row(name, *(told[question] for question in questions))
    console.print(answers)
    console.print(", ".join(f"{name} {number}" for name, number in result["versions"].items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = asyncio.run(compare(given.rounds, given.calls))
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n")
    show(found)
