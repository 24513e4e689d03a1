"""What asking many questions at a time is worth: the same questions one at a time, and together, in one run.

One at a time is the model's own session with a cache of its own, the quickest way for one question alone. The
processor's seconds are told beside the wall's, since a machine that others use spoils the latter.

Answers are to be equal. Where two tokens are as likely as each other but for rounding, another batch may choose
another; such answers are counted and shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.table import Table
from rich.text import Text

from toolwise.core.clock import Clock, SystemClock, cpu_seconds
from toolwise.evals.answers import Row
from toolwise.evals.asking import Together
from toolwise.evals.run import Gates, Questions, Way, key_of, run, together
from toolwise.models.base import LanguageModel, Writer

_CLOCK = SystemClock()
_TIMELESS = ("seconds",)


@dataclass(frozen=True, slots=True)
class Side:
    """One way of asking. `seconds` by the wall's clock and by the processor's; `passes` of the network."""

    at_once: int
    questions: int
    seconds: float
    cpu: float
    passes: int
    positions: int

    @property
    def rate(self) -> float:
        """Questions a second."""
        return self.questions / max(self.seconds, 1e-9)


@dataclass(frozen=True, slots=True)
class Found:
    """Both sides, and the pairs of rows that are not equal: what each wrote."""

    alone: Side
    many: Side
    differing: tuple[tuple[str, str, str], ...]

    @property
    def ratio(self) -> float:
        return self.many.rate / self.alone.rate

    def as_json(self) -> dict[str, Any]:
        sides = {name: asdict(side) | {"rate": side.rate} for name, side in self._sides().items()}
        equal = self.alone.questions - len(self.differing)
        cpu = self.alone.cpu / max(self.many.cpu, 1e-9)
        return sides | {"ratio": self.ratio, "cpu_ratio": cpu, "equal": equal, "differing": list(self.differing)}

    def _sides(self) -> Mapping[str, Side]:
        return {"alone": self.alone, "many": self.many}


def bench_eval(
    model: LanguageModel,
    questions: Questions,
    gates: Gates,
    way: Way,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
    clock: Clock = _CLOCK,
) -> Found:
    """Asks all questions twice; the first one a third time before that, so that nobody pays for a cold start."""
    warm = _first(questions)

    def asked(name: str, some: Questions, at_once: int, writer: Writer) -> tuple[list[Row], Side]:
        before, begun, cpu = (model.usage.forwards, model.usage.positions), clock.monotonic(), cpu_seconds()
        with TemporaryDirectory() as folder:
            how = Way(way.decode, way.today, way.strict, at_once)
            rows = run(
                Path(folder) / name,
                {},
                some,
                lambda: model,
                gates,
                how,
                lambda done, total: progress(name, done, total),
                shared=lambda loaded: writer,
            )
        spent = clock.monotonic() - begun, cpu_seconds() - cpu
        passes, positions = model.usage.forwards - before[0], model.usage.positions - before[1]
        return rows, Side(at_once, len(rows), *spent, passes, positions)

    alone = Together(model.tokenizer, model.session)
    asked("warm", warm, 1, alone)
    one, first = asked("one at a time", questions, 1, alone)
    many, second = asked("together", questions, way.at_once, together(model))
    pairs = zip(one, many, strict=True)
    differing = [(str(key_of(a)), str(a["written"]), str(b["written"])) for a, b in pairs if _told(a) != _told(b)]
    return Found(first, second, tuple(differing))


def _first(questions: Questions) -> Questions:
    task = questions.tasks[0]
    return Questions((task,), {task.name: questions.drawn[task.name][:1]}, {})


def _told(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in _TIMELESS}


def table(found: Found, shown: int = 5) -> Table:
    both: Sequence[Side] = (found.alone, found.many)
    made = Table(title=f"{found.alone.questions} questions")
    for name in ("", *(f"{side.at_once} at a time" for side in both), "ratio"):
        made.add_column(name, justify="right" if name else "left")

    def row(name: str, form: str, of: Callable[[Side], float]) -> None:
        made.add_row(name, *(format(of(side), form) for side in both), f"{of(both[1]) / max(of(both[0]), 1e-9):.2f}")

    row("questions a second", ".2f", lambda side: side.rate)
    row("seconds of the processor", ".1f", lambda side: side.cpu)
    row("forward passes", ",d", lambda side: side.passes)
    row("token positions", ",d", lambda side: side.positions)
    made.add_row("equal answers", "", f"{found.alone.questions - len(found.differing)}", "")
    for name, one, many in found.differing[:shown]:
        made.add_row(Text(name), Text(one), Text(many), "")
    return made
