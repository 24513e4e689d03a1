"""The calls that a run over GSM8K's prose would keep, held against those that people made in the same problems.

    precision    of the kept calls, the share that stands where a person called, with the same arguments
    recall       of the people's calls, the share that was kept so
    place        of the kept calls, the share that stands where a person called
    arguments    of these, the share with the same arguments (`annotations.normal`)
    controls     of the calls with another call's result, the share that passes

For each threshold, from one pass over the scored rows; finished and unfinished runs alike. `written` are calls before
which the text has written the expression out, `free` the others: to copy an expression is not to find one.

Not covered: whether a call is good that no person made. People annotated some computations and not others, and none at
the answer that is said once more; so precision is a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from toolwise.core.errors import BadInput
from toolwise.core.schema import raw_argument
from toolwise.evals.annotations import Human, is_written, normal, problems, solid
from toolwise.evals.intervals import Interval, mean_interval
from toolwise.evals.shown import markdown, percent, share_cells
from toolwise.notation.inline import read_arguments, read_body
from toolwise.teach.begun import prices_of, settings_of
from toolwise.teach.keep import standing
from toolwise.teach.records import Candidate, Passage
from toolwise.teach.report.kept_at import TAUS
from toolwise.teach.store import Store, shards
from toolwise.tools.calculator import CALCULATOR

KINDS = ("all", "written", "free")
_BEFORE_NUMBER = "$€£-("  # may stand between the place of a call and its number
_THOUSAND, _MILLION, _MINUTE = 1_000, 1_000_000, 60


@dataclass(frozen=True, slots=True)
class At:
    """What a threshold keeps of a kind of calls, and how far people did the same. None where there is nothing of it."""

    tau: float
    kind: str
    kept: int
    people: int
    precision: Interval | None
    recall: Interval | None
    place: float | None
    arguments: float | None


@dataclass(frozen=True, slots=True)
class Yield:
    """What a threshold keeps, for what it took; None where the run did not count that. `controls`: those that pass."""

    tau: float
    kept: int
    per_thousand_documents: float
    per_cpu_minute: float | None
    per_million_positions: float | None
    controls: float | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """A run held against people: `documents` were annotated and are in the data, `elsewhere` are not in it."""

    documents: int
    elsewhere: int
    people: int
    at: tuple[At, ...]
    yields: tuple[Yield, ...]


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that is kept by some threshold, or a person's: what it gains, and how it was matched."""

    worth: float
    written: bool
    place: bool = False
    same: bool = False


def agreement(run: Path, data: Path, taus: Sequence[float] = TAUS) -> Agreement:
    """Hold the calculator's calls of a run over GSM8K's prose against the annotations in `data`.

    Thresholds below the run's own floor are left out: what they would keep is not known. Raises BadInput for a run
    without a calculator, one over other texts, and for other data.
    """
    store = Store.load(run, partial=True)
    settings = settings_of(store)
    if CALCULATOR.name not in settings.tools:
        raise BadInput(f"{str(run)!r} tried no {CALCULATOR.name}; give a run that did.")
    known = {solid(text): calls for text, calls in problems(data)}
    price = prices_of(store, settings).get(CALCULATOR.name, 0.0)
    documents = _documents(store)
    rows = [(row, (row.gain or 0.0) - price) for row in _standing(store)]
    there = {name: known[key] for name, (key, _) in documents.items() if key in known}
    if not there:
        raise BadInput(f"No text of {str(run)!r} is in {str(data)!r}; the run must be over the same problems' prose.")
    calls, people = _matched(rows, documents, there)
    at = [tau for tau in taus if tau >= settings.tools[CALCULATOR.name].floor]
    return Agreement(
        len(there),
        len(documents) - len(there),
        len(people),
        tuple(_at(tau, kind, calls, people) for tau in at for kind in KINDS),
        tuple(_yields(store, at, [worth for _, worth in rows], len(documents))),
    )


def _scored(store: Store) -> Iterator[list[Candidate]]:
    for _, info in sorted(store.done("scored").items()):
        rows = shards.load(store.folder, info, Candidate)
        yield [row for row in rows if row.tool == CALCULATOR.name]


def _standing(store: Store) -> Iterator[Candidate]:
    return (row for rows in _scored(store) for row in standing(rows))


def _documents(store: Store) -> dict[str, tuple[str, list[Passage]]]:
    """The documents of the scored shards: their text without white space, and their passages in order.

    The last may go on in a shard that is not scored; then it is taken whole.
    """
    passages, scored = store.done("passages"), store.done("scored")
    every: dict[str, list[Passage]] = {}
    begun: set[str] = set()
    for index, info in sorted(passages.items()):
        for passage in shards.load(store.folder, info, Passage):
            every.setdefault(passage.document, []).append(passage)
            begun |= {passage.document} if index in scored else set()
    found = {name: sorted(every[name], key=lambda one: one.start) for name in every if name in begun}
    return {name: (solid("".join(one.text for one in own)), own) for name, own in found.items()}


def _matched(
    rows: Iterable[tuple[Candidate, float]],
    documents: Mapping[str, tuple[str, list[Passage]]],
    there: Mapping[str, Sequence[Human]],
) -> tuple[list[_Call], list[_Call]]:
    """The run's calls in known documents, and people's, each with the gain from which on it is kept."""
    places: dict[str, tuple[str, int, Passage]] = {}
    for name in there:
        before = 0
        for passage in documents[name][1]:
            places[passage.id] = (name, before, passage)
            before += len(solid(passage.text))
    calls, found = list[_Call](), dict[tuple[str, int], float]()
    for row, worth in rows:
        if row.passage not in places:
            continue
        name, before, passage = places[row.passage]
        at = before + len(solid(passage.text[: row.offset]))
        human = _there(documents[name][0], at, there[name])
        same = human is not None and normal(_expression(row)) == normal(human.expression)
        calls.append(_Call(worth, is_written(passage.text[: row.offset]), human is not None, same))
        if human is not None and same:
            key = (name, human.solid)
            found[key] = max(worth, found.get(key, -math.inf))
    people = [_Call(found.get((name, one.solid), -math.inf), one.written) for name, own in there.items() for one in own]
    return calls, people


def _there(text: str, at: int, people: Sequence[Human]) -> Human | None:
    """The person's call at this place: nothing but a sign or a currency stands between."""
    return next(
        (one for one in people if at <= one.solid <= at + 3 and not text[at : one.solid].strip(_BEFORE_NUMBER)), None
    )


def _expression(row: Candidate) -> str:
    argument = raw_argument(CALCULATOR.parameters)
    return str(read_arguments(read_body(row.body)[1], CALCULATOR).get(argument or "", ""))


def _at(tau: float, kind: str, calls: Sequence[_Call], people: Sequence[_Call]) -> At:
    kept = [one for one in calls if one.worth >= tau and kind in ("all", "written" if one.written else "free")]
    asked = [one for one in people if kind in ("all", "written" if one.written else "free")]
    placed = [one for one in kept if one.place]
    return At(
        tau,
        kind,
        len(kept),
        len(asked),
        mean_interval([one.same for one in kept]),
        mean_interval([one.worth >= tau for one in asked]),
        len(placed) / len(kept) if kept else None,
        sum(one.same for one in placed) / len(placed) if placed else None,
    )


def _yields(store: Store, taus: Sequence[float], worth: Sequence[float], documents: int) -> Iterator[Yield]:
    infos = list(store.done("scored").values())
    seconds, read = [info.cpu_seconds for info in infos], [info.positions for info in infos]
    minutes = sum(filter(None, seconds)) / _MINUTE if None not in seconds else 0
    millions = sum(filter(None, read)) / _MILLION if None not in read else 0
    controls = [row.control_gain for rows in _scored(store) for row in rows if row.control_gain is not None]
    for tau in taus:
        kept = sum(one >= tau for one in worth)
        yield Yield(
            tau,
            kept,
            _THOUSAND * kept / documents,
            kept / minutes if minutes else None,
            kept / millions if millions else None,
            sum(gain >= tau for gain in controls) / len(controls) if controls else None,
        )


def as_json(found: Agreement) -> dict[str, Any]:
    return asdict(found)


def table(found: Agreement) -> str:
    """As Markdown: what agrees, then what it took."""
    head = ["tau_f", "calls", "kept", "precision", "95 %", "recall", "95 %", "place", "arguments"]
    rows = [
        [
            *(f"{one.tau:g}", one.kind, f"{one.kept:,}", *share_cells(one.precision), *share_cells(one.recall)),
            *(percent(share) for share in (one.place, one.arguments)),
        ]
        for one in found.at
    ]
    costs = [
        [
            *(f"{one.tau:g}", f"{one.kept:,}", f"{one.per_thousand_documents:,.1f}"),
            *("–" if part is None else f"{part:,.1f}" for part in (one.per_cpu_minute, one.per_million_positions)),
            percent(one.controls),
        ]
        for one in found.yields
    ]
    spent = ["tau_f", "kept", "per 1,000 documents", "per CPU minute", "per million positions", "controls that pass"]
    outside = f" ({found.elsewhere:,} others are not in the data)" if found.elsewhere else ""
    return (
        f"{found.people:,} calls of people in {found.documents:,} documents{outside}\n\n"
        f"{markdown(head, rows)}\n\n{markdown(spent, costs)}"
    )
