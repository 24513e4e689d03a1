"""The five tools of the paper on real texts: what is proposed, executed and kept, and what a wrong result would keep.

    python run.py --data DATA --out RUNS [--workers N] [--only search-wiki ...] [--markdown table.md]

DATA is a folder with the corpora that README.md names; RUNS keeps the runs, each of which goes on where it was. A run
that is finished is only read.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from toolwise.console import progress_bar, stages
from toolwise.notation.inline import read_body
from toolwise.teach.annotate import annotate
from toolwise.teach.config import load_settings
from toolwise.teach.records import Candidate
from toolwise.teach.report import summarise
from toolwise.teach.report.values import Shown, ToolReport
from toolwise.teach.store import Store

MODEL = "smollm2-135m"
TAUS = (0.05, 0.1, 0.2, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Plan:
    """One run: which tool, on which corpus (below DATA, or below RUNS for one that is made), how many documents."""

    tool: str
    corpus: str
    documents: int
    made: bool = False


PLANS = {
    "calculator-gsm8k": Plan("Calculator", "gsm8k_train_prose.jsonl.gz", 104),
    "calculator-factbook": Plan("Calculator", "factbook.jsonl.gz", 90),
    "calendar-sotu": Plan("Calendar", "sotu.jsonl.gz", 5),
    "calendar-days": Plan("Calendar", "days_in_history_en.jsonl.gz", 14),
    "search-wiki": Plan("Search", "wiki_vital_en.jsonl.gz", 100),
    "search-days": Plan("Search", "days_in_history_en.jsonl.gz", 14),
    "qa-wiki": Plan("QA", "wiki_vital_en.jsonl.gz", 100),
    "qa-days": Plan("QA", "days_in_history_en.jsonl.gz", 14),
    "translate-wiki": Plan("Translate", "mixed.jsonl", 120, made=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=PLANS, default=list(PLANS))
    parser.add_argument("--markdown", type=Path)
    arguments = parser.parse_args()
    for name in arguments.only:
        plan = PLANS[name]
        corpus = arguments.out / plan.corpus if plan.made else arguments.data / "corpora" / plan.corpus
        with progress_bar() as bar:
            annotate(
                corpus,
                arguments.out / name,
                MODEL,
                load_settings("small", (plan.tool,)),
                limit=plan.documents,
                workers=arguments.workers,
                progress=stages(bar),
            )
    text = "\n".join(page([(name, arguments.out / name) for name in arguments.only]))
    Console(soft_wrap=True).print(text, markup=False, highlight=False)
    if arguments.markdown is not None:
        arguments.markdown.write_text(text + "\n", encoding="utf-8")


def page(runs: Sequence[tuple[str, Path]]) -> Iterator[str]:
    """The tables, and the best and worst kept calls of every run."""
    reports = [(name, summarise(folder, best=3)) for name, folder in runs]
    titles = (
        "run",
        "passages",
        "tried",
        "proposed",
        "executed",
        "reached 0.05",
        "kept",
        "passages with one",
        "threshold",
    )
    yield f"| {' | '.join(titles)} |"
    yield "|---" * len(titles) + "|"
    for name, report in reports:
        (tool,) = report.tools
        floor = len(_reached(dict(runs)[name]))
        tau = "none" if tool.threshold.value is None else f"{tool.threshold.value:.2f}"
        cells = (report.passages, report.passages - tool.not_tried, tool.proposed, tool.executed, floor, tool.kept)
        yield f"| {name} | {' | '.join(f'{cell:,}' for cell in cells)} | {tool.passages_with_call:,} | {tau} |"
    yield ""
    yield "| run | calls with a control | " + " | ".join(f"{tau}: own / another's" for tau in TAUS) + " |"
    yield "|---|---|" + "---|" * len(TAUS)
    for name, folder in runs:
        rows = [row for row in _reached(folder) if row.control_gain is not None]
        cells = [_passing(rows, tau) for tau in TAUS]
        yield f"| {name} | {len(rows):,} | {' | '.join(cells)} |"
    yield ""
    yield "| run | reasons |"
    yield "|---|---|"
    for name, report in reports:
        (tool,) = report.tools
        counts = Counter({one.code: one.count for one in tool.reasons})
        yield f"| {name} | {', '.join(f'{code} {count:,}' for code, count in counts.most_common())} |"
    for name, report in reports:
        (tool,) = report.tools
        yield from _calls(name, tool)


def _reached(folder: Path) -> list[Candidate]:
    rows = Store.load(folder).read("candidates", Candidate)
    return [row for row in rows if row.gain is not None and row.gain >= TAUS[0]]


def _passing(rows: Sequence[Candidate], tau: float) -> str:
    if not rows:
        return "-"
    own, control = (
        100 * sum((gain or 0) >= tau for gain in gains) / len(rows)
        for gains in ([row.gain for row in rows], [row.control_gain for row in rows])
    )
    return f"{own:.0f} / {control:.0f} %"


def _calls(name: str, tool: ToolReport) -> Iterator[str]:
    yield ""
    yield f"{name}, the best and the worst of {tool.kept} kept calls (gain, with another's result):"
    yield ""
    worst = [one for one in tool.worst if one not in tool.best]
    yield from (f"- {_shown(one)}" for one in [*tool.best, *worst])


def _shown(one: Shown) -> str:
    row = one.candidate
    control = "-" if row.control_gain is None else f"{row.control_gain:.2f}"
    _, raw = read_body(row.body)
    result = row.result or ""
    call = f"[{row.tool}({raw}) -> {result[:140]}{'…' if len(result) > 140 else ''}]"
    said = f"…{one.before} **{call}**{one.after}…"
    return f"{row.gain:.2f} ({control}): {' '.join(said.split())}"


if __name__ == "__main__":
    main()
