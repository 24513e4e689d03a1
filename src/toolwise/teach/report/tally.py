"""One pass over the candidates of one tool: what a report counts and shows of them.

Held in memory: the kept rows, a few examples a reason, three numbers a scored row, and each distinct call body and
result up to `KEY_CHARS` characters. Longer ones that begin alike count as one.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from itertools import takewhile
from typing import TypeGuard

from toolwise.teach.records import Candidate
from toolwise.teach.report.histogram import Histogram, histogram
from toolwise.teach.report.reasons import rank
from toolwise.teach.report.values import Frequent, Losses, ProposerCount

KEY_CHARS = 200
_SHARED_WORDS = 8  # in a row; fewer are a phrase that anybody may use
_SHARED_ROWS = 1_000  # kept calls among whose results they are looked for; what is everywhere is among them
_EXAMPLES = 2  # shown of each reason
_LOSSES = 120  # kept calls whose losses are given


class Tally:
    """Feed it rows with `add`, then ask. `threshold` in nats, infinite when there is none; `price` comes on top."""

    def __init__(self, threshold: float, price: float = 0.0) -> None:
        self.threshold = threshold
        self.price = price
        self.rows = 0
        self.not_tried = 0
        self.kept: list[Candidate] = []
        self.passages: set[str] = set()
        self.control_gains: array[float] = array("d")
        self._dropped_gains: array[float] = array("d")
        self._reasons: Counter[str] = Counter()
        self._examples: dict[str, list[Candidate]] = {}
        self._proposers: dict[str, Counter[str]] = {}
        self._results: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        self._bodies: tuple[Counter[str], Counter[str]] = (Counter(), Counter())

    def add(self, row: Candidate) -> None:
        """Count one row."""
        self.rows += 1
        if row.reason is not None:
            self._reasons[row.reason] += 1
        if row.position < 0:  # a passage that the tool's rule left out
            self.not_tried += 1
            return
        counts = self._proposers.setdefault(row.proposer, Counter())
        counts["proposed"] += 1
        if row.result is not None:
            counts["executed"] += 1
            _count(row, self._results[0], self._bodies[0])
        if _finite(row.control_gain):
            self.control_gains.append(row.control_gain)
        if row.reason is None:
            counts["kept"] += 1
            _count(row, self._results[1], self._bodies[1])
            self.kept.append(row)
            self.passages.add(row.passage)
            return
        if _finite(row.gain):
            self._dropped_gains.append(row.gain)
        self._offer(row)

    @property
    def scored(self) -> int:
        """Rows with a gain."""
        return len(self.kept) + len(self._dropped_gains)

    def reasons(self) -> list[tuple[str, int]]:
        """Every code that was met and its count, in the order of the stages."""
        return sorted(self._reasons.items(), key=lambda item: rank(item[0]))

    def proposers(self) -> tuple[ProposerCount, ...]:
        """By name."""
        return tuple(
            ProposerCount(name, counts["proposed"], counts["executed"], counts["kept"])
            for name, counts in sorted(self._proposers.items())
        )

    def examples(self, code: str) -> list[Candidate]:
        """The dropped calls of a reason with the largest gains; without gains, those that came first."""
        return self._examples.get(code, [])

    def extremes(self, count: int) -> tuple[list[Candidate], list[Candidate]]:
        """The kept calls with the largest gains, and those of the others with the smallest; largest gain first."""
        ranked = sorted(self.kept, key=_order)
        return ranked[:count], ranked[count:][-count:] if count else []

    def shown(self, count: int) -> list[Candidate]:
        """All candidates that `extremes` and `examples` give."""
        top, bottom = self.extremes(count)
        return [*top, *bottom, *(row for rows in self._examples.values() for row in rows)]

    def losses(self) -> tuple[Losses, ...]:
        """Largest gain first."""
        ranked = sorted(self.kept, key=_order)
        step = max(1, math.ceil(len(ranked) / _LOSSES))
        return tuple(
            Losses(row.loss_none, row.loss_call, row.loss_result)
            for row in ranked[::step]
            if row.loss_none is not None and row.loss_call is not None and row.loss_result is not None
        )

    def histogram(self) -> Histogram:
        """The gains of all scored rows."""
        kept = [row.gain for row in self.kept if row.gain is not None]
        return histogram(kept, self._dropped_gains, self.control_gains, self.threshold)

    def frequent_results(self, count: int) -> tuple[Frequent, ...]:
        """Results that stand in the most kept calls, then in the most executed ones."""
        return _most(self._results, count)

    def shared_words(self) -> Frequent | None:
        """The words in a row that stand in the most results of kept calls, whatever stands around them."""
        step = max(1, math.ceil(len(self.kept) / _SHARED_ROWS))
        results = [row.result or "" for row in self.kept]
        counts = Counter(run for result in results[::step] for run in dict.fromkeys(_runs(result)))
        if not counts:
            return None
        (first, most) = counts.most_common(1)[0]
        runs = next(runs for runs in map(_runs, results) if first in runs)
        others = takewhile(lambda run: counts[run] == most, runs[runs.index(first) + 1 :])
        kept = sum(f" {first} " in f" {' '.join(result.split())} " for result in results)
        return Frequent(" ".join((first, *(run.rpartition(" ")[2] for run in others))), kept, kept)

    def frequent_bodies(self, count: int) -> tuple[Frequent, ...]:
        """The same for the calls as written."""
        return _most(self._bodies, count)

    def _offer(self, row: Candidate) -> None:
        assert row.reason is not None
        examples = self._examples.setdefault(row.reason, [])
        if all(row.body != other.body for other in examples):
            examples.append(row)
            examples.sort(key=lambda one: -one.gain if _finite(one.gain) else math.inf)
            del examples[_EXAMPLES:]


def _count(row: Candidate, results: Counter[str], bodies: Counter[str]) -> None:
    results[(row.result or "")[:KEY_CHARS]] += 1
    bodies[row.body[:KEY_CHARS]] += 1


def _runs(text: str) -> list[str]:
    words = text.split()
    return [" ".join(words[at : at + _SHARED_WORDS]) for at in range(len(words) - _SHARED_WORDS + 1)]


def _most(counters: tuple[Counter[str], Counter[str]], count: int) -> tuple[Frequent, ...]:
    executed, kept = counters
    ranked = sorted(executed, key=lambda text: (-kept[text], -executed[text], text))
    return tuple(Frequent(text, executed[text], kept[text]) for text in ranked[:count])


def _order(row: Candidate) -> tuple[float, str, int, str]:
    return -(row.gain or 0.0), row.passage, row.position, row.body


def _finite(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)
