"""What a dry run found: plain frozen values, all of which JSON can carry."""

from __future__ import annotations

from dataclasses import dataclass

from toolwise.teach.records import Candidate, Passage
from toolwise.teach.report.values import ToolReport


@dataclass(frozen=True, slots=True)
class TriedPassage:
    """A passage and every proposal in it, by position; a tool whose rule left it out has one row without position."""

    passage: Passage
    rows: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """How often calls of a tool failed with an error code, what the error said most often, and the exception behind the
    first of them where there was one."""

    code: str
    count: int
    text: str
    cause: str


@dataclass(frozen=True, slots=True)
class Kept:
    """What a threshold of `tau_f` nats would keep of the proposals, and how many control calls would pass it."""

    tau_f: float
    calls: int
    controls: int


@dataclass(frozen=True, slots=True)
class ToolTrial:
    """One tool: what a report says of it, its failures, what other thresholds would keep, and what to do next."""

    report: ToolReport
    failures: tuple[Failure, ...]
    thresholds: tuple[Kept, ...]
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trial:
    """`seconds` went into `len(passages)` passages on one worker, the model being loaded already.

    The corpus has about `corpus_passages` of them; at least, where `corpus_counted` is False.
    """

    passages: tuple[TriedPassage, ...]
    tools: tuple[ToolTrial, ...]
    seconds: float
    corpus_passages: int
    corpus_counted: bool

    @property
    def seconds_per_passage(self) -> float:
        return self.seconds / max(1, len(self.passages))

    @property
    def estimate(self) -> float:
        """Seconds for the whole corpus on one worker."""
        return self.seconds_per_passage * self.corpus_passages
