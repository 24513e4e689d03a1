"""One index built or asked in a process of its own, so that its memory is its own: rows of a table, as JSON."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from questions import SETS, questions

from toolwise.tools.index import Index, build_index
from toolwise.tools.search import make_search

Rows = list[tuple[str, str]]


def build(corpus: Path, out: Path) -> Rows:
    """What it costs to index a corpus."""
    before, own = memory()["VmRSS"], 0

    def watch(stage: str, done: int, total: int | None) -> None:
        nonlocal own
        own = max(own, memory()["RssAnon"])

    started, used = time.perf_counter(), processor()
    build_index([corpus], out, progress=watch)
    return [
        ("building: seconds, processor seconds", f"{time.perf_counter() - started:.1f}, {processor() - used:.1f}"),
        ("- resident at most", megabytes(memory()["VmHWM"])),
        ("- of that its own memory, seen behind each shard", megabytes(own)),
        ("- before it began", megabytes(before)),
    ]


def ask(out: Path, data: Path) -> Rows:
    """What it costs to ask all questions of the sets."""
    before = memory()["VmRSS"]
    opened = time.perf_counter()
    index = Index.open(out)
    opened = time.perf_counter() - opened
    asked = [one.text for name in SETS for one in questions(data, name)]
    tool = make_search(index)
    searches, searching = timed(asked, lambda query: index.search(query, 5))
    calls, calling = timed(asked[::4], lambda query: tool.run(query=query))
    at = memory()
    return [
        ("opening, every byte checked: seconds", f"{opened:.2f}"),
        ("searches a second, top five", rates(searches, searching)),
        ("- milliseconds, median and 99 %", percentiles(searches)),
        ("calls of `Search` a second, snippets and all", rates(calls, calling)),
        ("answering: resident", megabytes(at["VmRSS"])),
        ("- of that its own memory, the rest being mapped files", megabytes(at["RssAnon"])),
        ("- before it began", megabytes(before)),
    ]


def timed(queries: Sequence[str], answer: Callable[[str], object]) -> tuple[list[float], float]:
    """The seconds of each answer, and the processor's of all."""
    times, used = [], processor()
    for query in queries:
        started = time.perf_counter()
        answer(query)
        times.append(time.perf_counter() - started)
    return times, processor() - used


def rates(times: Sequence[float], used: float) -> str:
    return f"{len(times) / sum(times):,.0f} ({len(times) / used:,.0f} a second of the processor)"


def percentiles(times: Sequence[float]) -> str:
    ordered = sorted(times)
    return f"{1000 * ordered[len(ordered) // 2]:.2f}, {1000 * ordered[len(ordered) * 99 // 100]:.2f}"


def processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def memory() -> dict[str, int]:
    """Bytes, by the names in /proc/self/status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.endswith(" kB")}


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


if __name__ == "__main__":
    what, *paths = sys.argv[1:]
    sys.stdout.write(json.dumps({"build": build, "ask": ask}[what](*map(Path, paths))))
