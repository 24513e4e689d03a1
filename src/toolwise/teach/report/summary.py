"""The folder of an annotation run, read into a report.

A finished run is read from its candidates. Of a run that is not finished, or still going on, the scored shards are
read and judged as if the corpus ended with them; the report says that it is partial.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from toolwise.core.errors import Corrupt
from toolwise.teach.begun import prices_of, settings_of
from toolwise.teach.config import Control, Settings, ToolSettings
from toolwise.teach.keep import keep, thresholds
from toolwise.teach.records import Candidate, Passage
from toolwise.teach.report.kept_at import kept_at
from toolwise.teach.report.notes import notes
from toolwise.teach.report.reasons import explain, stage_of
from toolwise.teach.report.tally import Tally
from toolwise.teach.report.values import CONTEXT, KeptAt, ReasonCount, Report, Shown, Threshold, ToolReport
from toolwise.teach.store import Store, shards


def summarise(folder: str | os.PathLike[str], *, best: int = 10, frequent: int = 5) -> Report:
    """Read the folder of an annotation run, finished or not; nothing in it is changed.

    `best` calls with the largest and as many with the smallest gain are shown of each tool, and its `frequent` most
    frequent results and call bodies. Raises BadInput for a folder of another kind, Corrupt for damaged shards.
    """
    store = Store.load(folder, partial=True)
    settings = settings_of(store)
    price = prices_of(store, settings)
    if store.manifest is not None:
        found = {name: _number(value) for name, value in store.manifest["report"]["thresholds"].items()}
        rows = store.read("candidates", Candidate)
    else:
        found, rows = _provisional(store, settings, price)
    tallies = {name: Tally(found[name], price[name]) for name in settings.tools}
    for row in rows:
        tallies[row.tool].add(row)
    passages, done = store.done("passages"), store.done("scored")
    floors = {name: own.floor for name, own in settings.tools.items()}
    at = kept_at(_scored(store), price, floors)
    annotated = sum(info.rows for index, info in passages.items() if index in done or store.manifest is not None)
    shown = Places(store.read("passages", Passage), [row for tally in tallies.values() for row in tally.shown(best)])
    identity = store.settings
    return Report(
        name=Path(folder).resolve().name,
        finished=store.manifest is not None,
        model=str(identity.get("model", "")),
        corpus=str(identity.get("corpus", "")),
        fingerprint=store.fingerprint,
        settings=dict(identity),
        passages=sum(info.rows for info in passages.values()),
        annotated=annotated,
        augmented=len(set[str]().union(*(tally.passages for tally in tallies.values()))),
        tools=tuple(
            tool_report(name, own, tallies[name], annotated, shown, best, frequent, at[name])
            for name, own in settings.tools.items()
        ),
    )


def to_json(report: Report) -> dict[str, Any]:
    """The report as JSON values: no NaN, no infinity; a number that is none is null."""
    plain: dict[str, Any] = plain_json(asdict(report))
    return plain


def _provisional(
    store: Store, settings: Settings, price: Mapping[str, float]
) -> tuple[dict[str, float], Iterator[Candidate]]:
    """What would be kept if the corpus ended with the shards scored so far."""
    wanted = {name: own.tau_f for name, own in settings.tools.items()}
    found = thresholds(wanted, (row for rows in _scored(store) for row in rows))
    return found, (row for rows in _scored(store) for row in keep(rows, found, price))


def _scored(store: Store) -> Iterator[list[Candidate]]:
    """Shard by shard, read again for every use: one fits into memory, a corpus may not."""
    infos = [info for _, info in sorted(store.done("scored").items())]
    return (list(shards.load(store.folder, info, Candidate)) for info in infos)


def tool_report(
    name: str,
    own: ToolSettings,
    tally: Tally,
    annotated: int,
    shown: Places,
    best: int,
    frequent: int,
    at: tuple[KeptAt, ...] = (),
) -> ToolReport:
    """What a tally of the rows of `annotated` passages comes to; `shown` knows the places of `tally.shown(best)`."""
    top, bottom = tally.extremes(best)
    report = ToolReport(
        name=name,
        settings=own.model_dump(mode="json"),
        rows=tally.rows,
        not_tried=tally.not_tried,
        proposed=tally.rows - tally.not_tried,
        executed=sum(one.executed for one in tally.proposers()),
        scored=tally.scored,
        kept=len(tally.kept),
        passages_with_call=len(tally.passages),
        kept_per_thousand=1000 * len(tally.kept) / max(1, annotated),
        share_with_call=len(tally.passages) / max(1, annotated),
        threshold=_threshold(own.tau_f, tally),
        kept_at=at,
        reasons=tuple(
            ReasonCount(code, stage_of(code), explain(code), count, shown.all(tally.examples(code)))
            for code, count in tally.reasons()
        ),
        proposers=tally.proposers(),
        gains=tally.histogram(),
        losses=tally.losses(),
        best=shown.all(top),
        worst=shown.all(bottom),
        results=tally.frequent_results(frequent),
        shared=tally.shared_words(),
        bodies=tally.frequent_bodies(frequent),
        notes=(),
    )
    return replace(report, notes=notes(report))


def _threshold(tau_f: float | Control, tally: Tally) -> Threshold:
    return Threshold(
        value=tally.threshold if math.isfinite(tally.threshold) else None,
        alpha=tau_f.alpha if isinstance(tau_f, Control) else None,
        floor=tau_f.floor if isinstance(tau_f, Control) else None,
        controls=len(tally.control_gains),
        passing=sum(gain >= tally.threshold for gain in tally.control_gains),
        price=tally.price,
    )


class Places:
    """The texts around some candidates, of which only their passages are held."""

    def __init__(self, passages: Iterable[Passage], rows: Sequence[Candidate]) -> None:
        wanted = {row.passage for row in rows}
        self._passages = {p.id: p for p in passages if p.id in wanted}

    def all(self, rows: Sequence[Candidate]) -> tuple[Shown, ...]:
        return tuple(map(self._show, rows))

    def _show(self, row: Candidate) -> Shown:
        if row.passage not in self._passages:
            raise Corrupt(f"the passage {row.passage!r} of a candidate is missing; annotate again into another folder")
        passage = self._passages[row.passage]
        before = passage.text[max(0, row.offset - CONTEXT) : row.offset]
        return Shown(row, passage.document, before, passage.text[row.offset : row.offset + CONTEXT])


def _number(value: float | None) -> float:
    return math.inf if value is None else value


def plain_json(value: Any) -> Any:
    """The value with null for every number that is none."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: plain_json(item) for key, item in value.items()}
    return [plain_json(item) for item in value] if isinstance(value, list | tuple) else value
