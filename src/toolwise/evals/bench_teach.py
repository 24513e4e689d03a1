"""What teaching costs, stage by stage: the naive scheme and ours on the same passages, and whether they agree.

Counts (forward passes, token positions, vocabulary rows) do not depend on how busy the machine is; CPU seconds are
those of this process. Both sides use the model's own sampling with the same random numbers, no early bounds being
taken on the naive side, and must keep the same calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace
from itertools import islice
from pathlib import Path

from rich.console import Group
from rich.table import Table

from toolwise.core.clock import cpu_seconds
from toolwise.core.errors import BadInput
from toolwise.documents import read_documents
from toolwise.evals.naive import NaiveSampler, naive_score
from toolwise.gate.offline import offline_gate
from toolwise.models.base import LanguageModel
from toolwise.models.load import load_model
from toolwise.teach.config import Control, Settings, load_settings
from toolwise.teach.corpus import cut
from toolwise.teach.corpus.rules import rule_named
from toolwise.teach.execute import Executor
from toolwise.teach.keep import keep
from toolwise.teach.prepare import Prepared, prepare
from toolwise.teach.prompts import PROMPTS
from toolwise.teach.propose import LMProposer
from toolwise.teach.records import Candidate, Passage
from toolwise.teach.score import Scorer, notation_wording
from toolwise.tools.builtin import builtin_registry


@dataclass(slots=True)
class Cost:
    """What one stage of one scheme took."""

    forwards: int = 0
    positions: int = 0
    rows: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Side:
    """One scheme: the cost of each stage, and every candidate with what was found out of it."""

    stages: dict[str, Cost] = field(default_factory=dict)
    rows: list[Candidate] = field(default_factory=list)

    @property
    def kept(self) -> set[tuple[str, int, str]]:
        return {_place(row) for row in self.rows if row.reason is None}

    @property
    def total(self) -> Cost:
        costs = self.stages.values()
        return Cost(
            sum(c.forwards for c in costs),
            sum(c.positions for c in costs),
            sum(c.rows for c in costs),
            sum(c.seconds for c in costs),
        )


@dataclass(frozen=True, slots=True)
class TeachBench:
    """Both schemes. `compared` losses were computed by both, and differ by at most `largest_difference` nats."""

    passages: int
    naive: Side
    ours: Side
    compared: int
    largest_difference: float

    @property
    def same_calls(self) -> bool:
        return self.naive.kept == self.ours.kept

    @property
    def same_samples(self) -> bool:
        """Whether ours sampled what the naive scheme did, but for the positions that its bound left out."""
        sampled = {_place(row) for row in self.ours.rows if row.body}
        return sampled <= {_place(row) for row in self.naive.rows}

    def as_json(self) -> Mapping[str, object]:
        def costs(side: Side) -> Mapping[str, object]:
            return {
                name: {
                    "forwards": c.forwards,
                    "positions": c.positions,
                    "rows": c.rows,
                    "cpu_seconds": round(c.seconds, 2),
                }
                for name, c in [*side.stages.items(), ("all", side.total)]
            }

        return {
            "passages": self.passages,
            "naive": costs(self.naive),
            "ours": costs(self.ours),
            "kept": len(self.ours.kept),
            "same_calls": self.same_calls,
            "same_samples": self.same_samples,
            "compared": self.compared,
            "largest_difference": None if math.isnan(self.largest_difference) else self.largest_difference,
        }


def bench_teach(
    model: LanguageModel,
    passages: Sequence[Passage],
    settings: Settings,
    tool: str = "Calculator",
    progress: Callable[[str], None] = lambda line: None,
) -> TeachBench:
    """Run both schemes for one tool over the passages, on the same samples."""
    own = settings.tools[tool]
    if isinstance(own.tau_f, Control):
        raise BadInput("The comparison needs a given tau_f; use the preset `paper`.")
    progress("ours")
    ours, prepared = _ours(model, passages, settings, tool)
    naive = Side()
    for number, one in enumerate(prepared):
        progress(f"naive {number + 1}/{len(prepared)}")
        _naive(naive, model, one, settings, tool)
    thresholds = {tool: own.tau_f}
    ours.rows[:], naive.rows[:] = keep(ours.rows, thresholds), keep(naive.rows, thresholds)
    differences = _differences(naive, ours)
    return TeachBench(len(passages), naive, ours, len(differences), max(differences, default=math.nan))


def _ours(
    model: LanguageModel, passages: Sequence[Passage], settings: Settings, tool: str
) -> tuple[Side, list[Prepared]]:
    """The pipeline's stages, one after the other, each measured."""
    side, registry = Side(), builtin_registry([tool])
    proposer = LMProposer(model, registry.resolve(tool), PROMPTS[tool], settings)
    scorer = Scorer(
        model,
        notation_wording(),
        settings.tools[tool],
        separator=settings.separator,
        early_bounds=settings.early_bounds,
        seed=0,
        controls=False,
    )
    executor = Executor(offline_gate(registry), registry, "bench")
    with _measured(model, side, "loss without a call"):
        prepared = prepare(passages, model, weigh_spaces=settings.weigh_spaces)
    with _measured(model, side, "propose"):
        proposed = [(p, proposer.propose(p)) for p in prepared]
    with _measured(model, side, "execute"):
        found = [c for p, candidates in proposed for c in executor.execute(p.passage, candidates)]
    with _measured(model, side, "score"):
        side.rows.extend(scorer.score(found, {p.passage.id: p for p in prepared}))
    return side, prepared


def _naive(side: Side, model: LanguageModel, prepared: Prepared, settings: Settings, tool: str) -> None:
    """One passage by the naive scheme, without early bounds."""
    registry = builtin_registry([tool])
    everything = settings.model_copy(update={"early_bounds": False})
    proposer = LMProposer(NaiveSampler(model), registry.resolve(tool), PROMPTS[tool], everything)
    executor = Executor(offline_gate(registry), registry, "bench-naive")
    with _measured(model, side, "propose"):
        candidates = proposer.propose(prepared)
    with _measured(model, side, "execute"):
        candidates = executor.execute(prepared.passage, candidates)
    with _measured(model, side, "score"):
        side.rows.extend(
            naive_score(model, notation_wording(), settings.separator, prepared, c) if c.reason is None else c
            for c in candidates
        )


def bench_corpus(
    corpus: Path,
    model: str,
    documents: int,
    k: int | None,
    m: int | None,
    threads: int | None,
    progress: Callable[[str], None],
) -> TeachBench:
    """The comparison on the first passages of a corpus that the calculator's rule does not refuse, paper settings."""
    settings = load_settings("paper", ("Calculator",))
    own = settings.tools["Calculator"]
    own = own.model_copy(update={"k": k or own.k, "m": m or own.m})
    settings = settings.model_copy(update={"tools": {"Calculator": own}})
    loaded = load_model(model, threads=threads)
    rule = rule_named(own.rule, settings.seed)
    passages = (
        passage
        for document in read_documents(corpus)
        for passage in cut(document, loaded.tokenizer, settings.passage_tokens)
        if rule(passage, loaded.tokenizer) is None
    )
    first = list(islice(passages, documents))
    if not first:
        raise BadInput(f"{str(corpus)!r} holds no passage with numbers that the calculator is tried on; give another.")
    return bench_teach(loaded, first, settings, progress=progress)


def table(bench: TeachBench) -> Group:
    """Stage by stage: both schemes, and how many times less ours takes."""
    shown = Table(title=f"{bench.passages} passages, one tool, the paper's settings")
    for column in ("stage", "", "forwards", "positions", "rows", "CPU s"):
        shown.add_column(column, justify="left" if column in ("stage", "") else "right")
    stages = list(dict.fromkeys([*bench.naive.stages, *bench.ours.stages]))
    for stage in [*stages, "all"]:
        naive = bench.naive.total if stage == "all" else bench.naive.stages.get(stage, Cost())
        ours = bench.ours.total if stage == "all" else bench.ours.stages.get(stage, Cost())
        for name, cost in (("naive", naive), ("ours", ours)):
            shown.add_row(
                stage, name, f"{cost.forwards:,}", f"{cost.positions:,}", f"{cost.rows:,}", f"{cost.seconds:.1f}"
            )
        shown.add_row("", "ratio", *(_ratio(a, b) for a, b in zip(astuple(naive), astuple(ours), strict=True)))
    agreed = "the same calls" if bench.same_calls else "NOT the same calls"
    differ = (
        ""
        if math.isnan(bench.largest_difference)
        else f"; losses differ by at most {bench.largest_difference:.1e} nats"
    )
    return Group(shown, f"Both kept {agreed} ({len(bench.ours.kept)}){differ}.")


def _ratio(naive: float, ours: float) -> str:
    return f"{naive / ours:.1f}x" if naive and ours else "-"


def _place(row: Candidate) -> tuple[str, int, str]:
    return row.passage, row.position, row.body


def _differences(a: Side, b: Side) -> list[float]:
    """How far apart the losses are, in nats, that both sides computed for a candidate."""
    others = {_place(row): row for row in b.rows if row.loss_none is not None}
    return [
        abs(value - other)
        for row in a.rows
        if row.loss_none is not None and _place(row) in others
        for name in ("loss_none", "loss_call", "loss_result")
        if (value := getattr(row, name)) is not None and (other := getattr(others[_place(row)], name)) is not None
    ]


@contextmanager
def _measured(model: LanguageModel, side: Side, stage: str) -> Iterator[None]:
    before, started = replace(model.usage), cpu_seconds()
    yield
    cost = side.stages.setdefault(stage, Cost())
    cost.seconds += cpu_seconds() - started
    cost.forwards += model.usage.forwards - before.forwards
    cost.positions += model.usage.positions - before.positions
    cost.rows += model.usage.rows - before.rows
