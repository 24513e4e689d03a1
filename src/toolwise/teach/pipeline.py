"""The stages in order over one shard: propose, execute, score. Keeping and weaving follow once all shards are scored.

A shard is a list of passages; what comes back is every candidate with all that became known of it. The same code runs
in this process, in local worker processes and on a cluster, and a shard's rows depend on its passages and the settings
alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolwise.core.limits import LIMITS
from toolwise.core.types import Result, Tool
from toolwise.gate.gate import Gate
from toolwise.models.base import LanguageModel, Usage, marker_id
from toolwise.notation.inline import PLAIN, Notation, read_arguments, read_body
from toolwise.teach.checks import Check, check_named
from toolwise.teach.config import Settings, ToolSettings
from toolwise.teach.corpus.rules import Rule, rule_named
from toolwise.teach.execute import Executor
from toolwise.teach.expressions import EnumerateProposer
from toolwise.teach.foreign import ForeignProposer
from toolwise.teach.guard import already_said, copies, looks_ahead, repeats, stands_on
from toolwise.teach.prepare import Prepared, prepare, tokens_of
from toolwise.teach.prompts import PROMPTS, Prompt
from toolwise.teach.propose import LMProposer, Proposer
from toolwise.teach.records import Candidate, Passage
from toolwise.teach.score import Scorer, wording_named
from toolwise.tools.language import languages
from toolwise.tools.registry import Registry

#: Changes with what the stages find for the same input, so that no run is continued by another version.
FORMAT = 4


@dataclass(frozen=True, slots=True)
class _Stages:
    """What one tool needs on its way through the pipeline."""

    tool: Tool
    settings: ToolSettings
    rule: Rule
    proposers: tuple[Proposer, ...]
    scorer: Scorer
    checks: tuple[Check, ...]


class Pipeline:
    """Everything a worker holds: a model, a way to make gates, and the stages of each tool."""

    def __init__(
        self,
        model: LanguageModel,
        registry: Registry,
        gates: Callable[[], Gate],
        settings: Settings,
        *,
        run_id: str,
        prompts: Mapping[str, Prompt] = PROMPTS,
        notation: Notation = PLAIN,
    ) -> None:
        self._model = model
        self._settings = settings
        self._notation = notation
        self._registry = registry
        self._gates = gates
        self._run_id = run_id
        self._pure: dict[str, Result] = {}
        self._stages = [self._stages_of(name, registry, prompts[name]) for name in settings.tools]

    @property
    def usage(self) -> Usage:
        """What the model has computed so far, for this pipeline and for whoever else has it."""
        return self._model.usage

    def annotate(
        self, passages: Sequence[Passage], progress: Callable[[int, int], None] = lambda done, total: None
    ) -> list[Candidate]:
        """Every candidate of the shard. Those without a reason have a gain, and wait for a threshold.

        `progress` hears of every passage in which calls of a tool were proposed and executed: (done, total).
        """
        tokenizer, most = self._model.tokenizer, LIMITS.woven_tokens
        crowded = [p for p in passages if p.calls and tokens_of(p, tokenizer) > most]
        rows = [_not_tried(p, name, "too_many_calls") for p in crowded for name in self._settings.tools]
        tried = [p for p in passages if p not in crowded]
        prepared = {p.passage.id: p for p in self._prepare(tried)}
        # A gate a shard: what it remembers of calls without effect need not outlive the shard.
        with self._gates() as gate:
            executor = Executor(gate, self._registry, self._run_id, self._pure)
            for number, stages in enumerate(self._stages):  # tool by tool, so that its prompt's cache serves all
                found: list[Candidate] = []
                for done, each in enumerate(prepared.values(), 1):
                    found += self._found(stages, each, executor)
                    progress(number * len(prepared) + done, len(self._stages) * len(prepared))
                scored = stages.scorer.score(found, prepared)
                rows += [self._checked(stages, prepared[c.passage].passage, c, executor) for c in scored]
        return rows

    def _prepare(self, passages: Sequence[Passage]) -> list[Prepared]:
        own = self._settings
        marker = marker_id(self._model.tokenizer, self._notation) if own.scoring == "inline" else None
        return prepare(passages, self._model, weigh_spaces=own.weigh_spaces, disabled=marker)

    def _found(self, stages: _Stages, prepared: Prepared, executor: Executor) -> list[Candidate]:
        """The candidates of one tool in one passage, executed."""
        passage, name = prepared.passage, stages.tool.name
        refused = stages.rule(passage, self._model.tokenizer)
        if refused is not None:
            return [_not_tried(passage, name, refused)]
        proposed = [c for proposer in stages.proposers for c in proposer.propose(prepared)]
        if not proposed:  # no position was likely enough, and nothing could be enumerated
            return [_not_tried(passage, name, "no_position")]
        proposed = [stages.scorer.begin(c, prepared) if c.reason is None else c for c in proposed]
        proposed = [self._guarded(stages, passage, c) if c.reason is None else c for c in proposed]
        executed = executor.execute(passage, proposed)
        return [self._told(stages, passage, c) if c.reason is None else c for c in executed]

    def _guarded(self, stages: _Stages, passage: Passage, candidate: Candidate) -> Candidate:
        """Drop a call that was read off the text behind it; of another, say whether it stands on an earlier call."""
        given, tokenizer = passage.given(candidate.offset), self._model.tokenizer
        if not (given or stages.settings.look_ahead_guard):
            return candidate
        arguments = self._arguments(stages, candidate)
        ahead = looks_ahead(arguments, passage.text, candidate.offset, tokenizer, known=given)
        if stages.settings.look_ahead_guard and ahead:
            return replace(candidate, reason="look_ahead")
        return replace(candidate, stands_on=stands_on(arguments, passage.text[: candidate.offset], given, tokenizer))

    def _told(self, stages: _Stages, passage: Passage, candidate: Candidate) -> Candidate:
        """Drop a call whose result is too long, says what was said already, or has the very words that follow."""
        own, result = stages.settings, candidate.result or ""
        if len(self._model.tokenizer.encode(result)) > LIMITS.taught_result_tokens:
            return replace(candidate, reason="too_long")
        if own.look_ahead_guard and repeats(result, self._arguments(stages, candidate)):
            return replace(candidate, reason="repeats_argument")
        if own.look_ahead_guard and already_said(result, passage.text, candidate.offset):
            return replace(candidate, reason="already_said")
        if own.copied_words and copies(result, passage.text, candidate.offset, own.copied_words):
            return replace(candidate, reason="copies_text")
        return candidate

    def _checked(self, stages: _Stages, passage: Passage, candidate: Candidate, executor: Executor) -> Candidate:
        """Drop a call that may be kept, but whose result does not stand up to a check of its truth."""
        if candidate.reason is not None or (candidate.gain or 0) < stages.settings.floor:
            return candidate
        found = (check(passage, candidate, executor) for check in stages.checks)
        return replace(candidate, reason=next((reason for reason in found if reason is not None), None))

    def _arguments(self, stages: _Stages, candidate: Candidate) -> dict[str, Any]:
        return read_arguments(read_body(candidate.body, self._notation)[1], stages.tool, self._notation)

    def _stages_of(self, name: str, registry: Registry, prompt: Prompt) -> _Stages:
        tool, own, all_ = registry.resolve(name), self._settings.tools[name], self._settings
        makers: Mapping[str, Callable[[], Proposer]] = {
            "lm": lambda: LMProposer(self._model, tool, prompt, all_, self._notation),
            "lm_positions": lambda: LMProposer(self._model, tool, prompt, all_, self._notation, sampled=False),
            "enumerate": lambda: EnumerateProposer(tool, self._notation),
            "foreign": lambda: ForeignProposer(tool, languages, self._notation),
        }
        scorer = Scorer(
            self._model,
            wording_named(own.wording, prompt, tool, self._notation),
            own,
            separator=all_.separator,
            early_bounds=all_.early_bounds,
            seed=all_.seed,
            inline=all_.scoring == "inline",
            likeliest=all_.same_result == "likelihood",
        )
        proposers = tuple(makers[proposer]() for proposer in own.proposers)
        checks = tuple(check_named(check, tool.name, own, registry, self._notation) for check in own.checks)
        return _Stages(tool, own, rule_named(own.rule, all_.seed), proposers, scorer, checks)


def _not_tried(passage: Passage, tool: str, reason: str) -> Candidate:
    """A passage in which nothing was proposed: no position, so -1, and the reason."""
    return Candidate(passage.id, tool, -1, -1, "", "rule", reason=reason)
