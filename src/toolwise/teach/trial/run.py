"""The pipeline over a few passages, in this process: what a run would propose and keep, and how long it would take.

The passages go through as one shard, so every figure is one that a run would have come to, but for thresholds: measured
over so few calls they say little, and the report says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Self

from toolwise.core.clock import Clock, SystemClock
from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS
from toolwise.documents import read_documents
from toolwise.models.base import LanguageModel
from toolwise.notation.segments import Tokenizer
from toolwise.teach.config import Settings
from toolwise.teach.keep import keep, prices, thresholds
from toolwise.teach.lessons import lessons
from toolwise.teach.pipeline import Pipeline
from toolwise.teach.records import Candidate, Passage
from toolwise.teach.report.summary import Places, plain_json, tool_report
from toolwise.teach.report.tally import Tally
from toolwise.teach.source import is_run, passages_of
from toolwise.teach.trial.failures import WatchedGate, failures
from toolwise.teach.trial.hints import hints
from toolwise.teach.trial.values import Kept, ToolTrial, Trial, TriedPassage
from toolwise.tools.registry import Registry

TAUS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0)  # nats: thresholds that are compared
_CLOCK = SystemClock()


def try_tools(
    corpus: Path,
    model: Callable[[], LanguageModel],
    settings: Settings,
    *,
    documents: int = 5,
    each: int = 1,
    best: int = 5,
    progress: Callable[[int, int], None] = lambda done, total: None,
    clock: Clock = _CLOCK,
) -> Trial:
    """Try the tools of the settings on the first `each` passages of the first `documents` documents.

    `model` is loaded behind the tools, whose mistakes are said at once. Raises BadInput, ModelUnavailable.
    """
    loaded: list[LanguageModel] = []
    taught = lessons(settings, lambda: loaded[0])
    loaded.append(network := model())
    chosen = list(_first(passages_of(corpus, network.tokenizer, settings.passage_tokens, documents), each))
    if not chosen:
        raise BadInput(f"The first {documents} documents of {str(corpus)!r} hold no text to try; give another corpus.")
    size, counted = _size(corpus, chosen, settings, network.tokenizer)
    gate = WatchedGate(taught.registry)
    pipeline = Pipeline(network, taught.registry, gate, settings, run_id="try", prompts=taught.prompts)
    started = clock.monotonic()
    scored = pipeline.annotate(chosen, progress=gate.watching(progress))
    seconds = clock.monotonic() - started
    judged = _Judged.of(scored, chosen, settings, taught.registry)
    tools = (judged.tool(name, gate.causes, best) for name in settings.tools)
    return Trial(
        tuple(TriedPassage(passage, judged.of_passage(passage)) for passage in chosen),
        tuple(replace(tool, hints=hints(tool, settings, taught, network.tokenizer)) for tool in tools),
        seconds,
        size,
        counted,
    )


def to_json(trial: Trial) -> dict[str, Any]:
    """The trial as JSON values."""
    known: dict[str, Any] = plain_json(asdict(trial))
    return {**known, "seconds_per_passage": trial.seconds_per_passage, "estimate": trial.estimate}


def _first(passages: Iterable[Passage], each: int) -> Iterator[Passage]:
    for _, of_one in groupby(passages, lambda passage: passage.document):
        yield from islice(of_one, each)


def _size(corpus: Path, tried: Sequence[Passage], settings: Settings, tokenizer: Tokenizer) -> tuple[int, bool]:
    """About how many passages the corpus has, and whether it was read to its end."""
    if is_run(corpus):
        return sum(1 for _ in passages_of(corpus, tokenizer, settings.passage_tokens, None)), True
    tokens = sum(len(tokenizer.encode(passage.text)) for passage in tried)
    characters = settings.passage_tokens * sum(len(passage.text) for passage in tried) / max(1, tokens)
    most = LIMITS.counted_documents
    lengths = [len(document.text) for document in read_documents(corpus, limit=most + 1)]
    return sum(math.ceil(length / characters) for length in lengths[:most]), len(lengths) <= most


@dataclass(frozen=True, slots=True)
class _Judged:
    """The calls of a trial as they were scored, and `rows`, the same as a run's thresholds would judge them."""

    passages: Sequence[Passage]
    settings: Settings
    scored: Sequence[Candidate]
    rows: Sequence[Candidate]
    thresholds: Mapping[str, float]
    prices: Mapping[str, float]

    @classmethod
    def of(
        cls, scored: Sequence[Candidate], passages: Sequence[Passage], settings: Settings, registry: Registry
    ) -> Self:
        found = thresholds({name: own.tau_f for name, own in settings.tools.items()}, scored)
        price = prices(settings, {name: tool.cost for name, tool in registry.items()})
        return cls(passages, settings, scored, keep(scored, found, price), found, price)

    def of_passage(self, passage: Passage) -> tuple[Candidate, ...]:
        rows = (row for row in self.rows if row.passage == passage.id)
        return tuple(sorted(rows, key=lambda row: (row.offset, row.tool, -_known(row.gain), row.body)))

    def tool(self, name: str, causes: Mapping[tuple[str, str], str], best: int) -> ToolTrial:
        """One tool without its hints; `causes` as `WatchedGate` has them."""
        tally = Tally(self.thresholds[name], self.prices[name])
        own = [row for row in self.rows if row.tool == name]
        for row in own:
            tally.add(row)
        places = Places(self.passages, tally.shown(best))
        report = tool_report(name, self.settings.tools[name], tally, len(self.passages), places, best, frequent=3)
        return ToolTrial(report, failures(own, causes), tuple(self._kept(name, tau) for tau in TAUS))

    def _kept(self, name: str, tau: float) -> Kept:
        own = [row for row in self.scored if row.tool == name]
        passing = sum(row.control_gain is not None and row.control_gain >= tau for row in own)
        return Kept(tau, sum(row.reason is None for row in keep(own, {name: tau}, self.prices)), passing)


def _known(gain: float | None) -> float:
    return -math.inf if gain is None else gain
