"""Is the filter right? Human calculator annotations tell: how often do they pass, and how often with a wrong result?

GSM8K's solutions carry `<<48/2=24>>` where a person used a calculator. Each annotation becomes a candidate before the
number that it computes, with the calculator's own result, and once more with the result of another problem's call. A
good filter passes many of the first and few of the second; what it passes of the second it would also pass of nonsense.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from rich.table import Table

from toolwise.core.errors import BadInput, ToolwiseError
from toolwise.evals.annotations import problems as read_problems
from toolwise.models.base import LanguageModel
from toolwise.notation.inline import write_body
from toolwise.teach.config import ToolSettings
from toolwise.teach.expressions import word_start
from toolwise.teach.prepare import Prepared, prepare
from toolwise.teach.prompts import PROMPTS
from toolwise.teach.records import Candidate, Passage
from toolwise.teach.score import Scorer, wording_named
from toolwise.tools.calculator import CALCULATOR, calculate


@dataclass(frozen=True, slots=True)
class FilterQuality:
    """Shares of calls that pass at each threshold: the human ones, and the same with another problem's result."""

    calls: int
    skipped: int
    thresholds: tuple[float, ...]
    human: tuple[float, ...]
    wrong: tuple[float, ...]
    gains: tuple[float, ...]
    wrong_gains: tuple[float, ...]


def filter_quality(
    model: LanguageModel,
    data: Path,
    *,
    problems: int,
    wording: str = "notation",
    separator: str = "\n",
    weigh_spaces: bool = True,
    thresholds: Sequence[float] = (0.05, 0.1, 0.25, 0.5, 1.0),
    seed: int = 0,
) -> FilterQuality:
    """Score the annotations of the first `problems` problems of a GSM8K file (`.jsonl` or `.jsonl.gz`).

    Raises BadInput for another file, one without an annotation that can be scored, and an unknown wording.
    """
    texts, annotated, skipped = [], [], 0
    for number, (text, calls) in enumerate(islice(read_problems(data), problems)):
        texts.append(Passage(f"gsm8k-{number:05}", f"gsm8k-{number:05}", 0, text))
        annotated.append(calls)
    prepared = {p.passage.id: p for p in prepare(texts, model, weigh_spaces=weigh_spaces)}
    rows: list[Candidate] = []
    for passage, calls in zip(texts, annotated, strict=True):
        for human in calls:
            row = _candidate(prepared[passage.id], human.offset, human.expression)
            skipped += row is None
            rows.extend([row] if row is not None else [])
    scorer = Scorer(
        model,
        wording_named(wording, PROMPTS["Calculator"], CALCULATOR),
        ToolSettings(),
        separator=separator,
        early_bounds=False,
        seed=seed,
        controls=False,
    )
    right = scorer.score(rows, prepared)
    wrong = scorer.score(_with_results_of_others(rows, seed), prepared)
    gains = tuple(r.gain for r in right if r.gain is not None)
    if not gains:
        raise BadInput(f"{data} holds no annotation that could be scored; give a GSM8K file with <<48/2=24>> in it.")
    wrong_gains = tuple(r.gain for r in wrong if r.gain is not None)
    return FilterQuality(
        len(gains),
        skipped,
        tuple(thresholds),
        tuple(_share(gains, tau) for tau in thresholds),
        tuple(_share(wrong_gains, tau) for tau in thresholds),
        gains,
        wrong_gains,
    )


def as_json(quality: FilterQuality) -> Mapping[str, object]:
    return {
        "calls": quality.calls,
        "skipped": quality.skipped,
        "thresholds": list(quality.thresholds),
        "human_pass": list(quality.human),
        "wrong_pass": list(quality.wrong),
    }


def table(quality: FilterQuality) -> Table:
    """The shares side by side, a line a threshold."""
    shown = Table(title=f"{quality.calls} human calls ({quality.skipped} could not be placed or computed)")
    for column in ("tau_f", "human result passes", "another problem's result passes"):
        shown.add_column(column, justify="right")
    for tau, human, wrong in zip(quality.thresholds, quality.human, quality.wrong, strict=True):
        shown.add_row(f"{tau:g}", f"{human:.1%}", f"{wrong:.1%}")
    return shown


def _share(gains: Sequence[float], tau: float) -> float:
    return sum(gain >= tau for gain in gains) / max(1, len(gains))


def _candidate(prepared: Prepared, offset: int, expression: str) -> Candidate | None:
    """The annotation as a candidate before the word that its number stands in; None where the calculator refuses."""
    try:
        result = calculate(expression)
    except ToolwiseError:
        return None
    start = word_start(prepared.passage.text, offset)
    if start not in prepared.offsets[1:-1]:
        return None
    position = prepared.offsets.index(start)
    body = write_body(CALCULATOR, {"expression": expression})
    return Candidate(prepared.passage.id, CALCULATOR.name, position, start, body, "human", result=result)


def _with_results_of_others(rows: Sequence[Candidate], seed: int) -> list[Candidate]:
    """Each call with the result of a call of another problem that differs from its own."""
    draw = random.Random(seed)  # noqa: S311 - not for secrets
    swapped = []
    for row in rows:
        others = [other.result for other in rows if other.passage != row.passage and other.result != row.result]
        if others:
            swapped.append(replace(row, result=draw.choice(others)))
    return swapped
