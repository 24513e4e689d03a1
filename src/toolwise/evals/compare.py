"""Several runs in one table, made of their rows alone: a line for each task and arm.

    score      the share that is right, with its bootstrap interval
    calls      the share of answers with a call that was run, whatever it gave
    gain       the score less the first arm's, question by question; only where both were asked the same questions

Whether an answer "called" is what it did, not what was good for it: a score where it called and one where it did not
are of different questions, and neither says what a call was worth. The gain over the same model with calls disabled
does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from toolwise.core.errors import BadInput
from toolwise.core.sealed import read_sealed
from toolwise.core.work_folder import SETTINGS
from toolwise.evals.answers import ANSWERS, Row, answers
from toolwise.evals.intervals import Interval, mean_interval, paired_interval
from toolwise.evals.shown import between, markdown, percent, share_cells


@dataclass(frozen=True, slots=True)
class Arm:
    """One run: a model asked in one way. `settings` is what its folder says that the rows depend on."""

    label: str
    settings: Mapping[str, Any]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A task's figures in one arm. `of` questions were to be asked; shares lie between 0 and 1."""

    task: str
    arm: str
    asked: int
    of: int
    score: Interval
    calls: float
    where_called: Interval | None
    where_not: Interval | None
    gain: Interval | None


def arms(folders: Sequence[Path]) -> list[Arm]:
    """The runs in these folders; of a folder that holds runs, each of them in the order of their names.

    Raises BadInput where there is none, or one of something else, and Corrupt for settings that were changed.
    """
    found = [run for folder in folders for run in _runs(folder)]
    labels = [_label(run, found) for run in found]
    return [_arm(label, run) for label, run in zip(labels, found, strict=True)]


def _runs(folder: Path) -> list[Path]:
    if (folder / ANSWERS).is_file():
        return [folder]
    inside = sorted(file.parent for file in folder.glob(f"*/{ANSWERS}"))
    if not inside:
        raise BadInput(f"{str(folder)!r} holds no answers; name a folder that `toolwise eval TASK --out` filled.")
    return inside


def _label(run: Path, all_: Sequence[Path]) -> str:
    """A folder's name, with the one above it where another is called the same."""
    alike = sum(other.name == run.name for other in all_) > 1
    return f"{run.resolve().parent.name}/{run.name}" if alike else run.name


def _arm(label: str, run: Path) -> Arm:
    settings, rows = read_sealed(run / SETTINGS), tuple(answers(run))
    if "tasks" not in settings or not all("task" in row and "right" in row for row in rows):
        raise BadInput(f"{str(run)!r} holds answers to something else; name a folder that `toolwise eval TASK` filled.")
    return Arm(label, settings, rows)


def lines(arms: Sequence[Arm]) -> list[Line]:
    """Task by task, in the order in which they were asked, and in each the arms in theirs; the first with answers to a
    task is what the others are compared with."""
    found = []
    for task in dict.fromkeys(str(row["task"]) for arm in arms for row in arm.rows):
        first: list[Row] = []
        for arm in arms:
            rows = [row for row in arm.rows if row["task"] == task]
            if rows:
                found.append(_line(task, arm, rows, first))
                first = first or rows
    return found


def _line(task: str, arm: Arm, rows: list[Row], first: list[Row]) -> Line:
    score = mean_interval(_right(rows))
    assert score is not None
    same = {(row["id"], row["prompt"]): row for row in rows}
    pairs = [(row, same[row["id"], row["prompt"]]) for row in first if (row["id"], row["prompt"]) in same]
    paired = len(pairs) == len(first) == len(rows)
    gain = paired_interval(*(_right(side) for side in zip(*pairs, strict=True))) if pairs and paired else None
    return Line(
        task,
        arm.label,
        len(rows),
        arm.settings["tasks"][task]["examples"],
        score,
        sum(bool(row["calls"]) for row in rows) / len(rows),
        mean_interval(_right(row for row in rows if row["calls"])),
        mean_interval(_right(row for row in rows if not row["calls"])),
        gain,
    )


def _right(rows: Iterable[Row]) -> list[bool]:
    return [bool(row["right"]) for row in rows]


def table(lines: Sequence[Line]) -> str:
    """As Markdown, in per cent; the gain in points."""
    head = ["task", "arm", "questions", "score", "95 %", "answers with calls"]
    head += ["score where called", "where not", "gain over the first", "95 %"]
    return markdown(head, [_cells(line) for line in lines])


def _cells(line: Line) -> list[str]:
    asked = str(line.asked) if line.asked == line.of else f"{line.asked} of {line.of}"
    inside = [percent(part.mean if part else None) for part in (line.where_called, line.where_not)]
    gain = [f"{100 * line.gain.mean:+.1f}", between(line.gain, "+.1f")] if line.gain else ["–", "–"]
    return [line.task, line.arm, asked, *share_cells(line.score), percent(line.calls), *inside, *gain]


def as_json(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """The same for scripts, with all that is in a line."""
    return [asdict(line) for line in lines]
