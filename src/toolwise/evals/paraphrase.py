"""Do other words change what a model does? Each question is asked in five frames: the paper's, and four of ours.

A frame is what stands around a question. The question itself stays as it is, so that what differs between two answers
is the model's doing. A reworded task is a task like any other, called `asdiv#2`, and its examples keep their ids.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

from toolwise.core.errors import BadInput
from toolwise.evals.answers import Row
from toolwise.evals.compare import Arm
from toolwise.evals.intervals import Interval, mean_interval
from toolwise.evals.shown import markdown, percent, share_cells
from toolwise.evals.tasks import lama, questions, reading, word_problems
from toolwise.evals.tasks.base import Loaded, Source, Task

#: By a task's prompt, the frames; the first is the paper's, the fields being what it is filled with.
FRAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        word_problems.PROMPT: (
            "{problem} The answer is",
            "{problem} The result is",
            "Solve this problem: {problem} The answer is",
            "Problem: {problem} Solution: the answer is",
            "Question: {problem} Answer:",
        ),
        lama.PROMPT: (
            lama.PROMPT,
            "Complete this sentence with the right fact: {text}",
            "The following sentence is true: {text}",
            "Finish the sentence so that it is correct: {text}",
            "Here is a fact. {text}",
        ),
        questions.PROMPT: (
            questions.PROMPT,
            "Please answer this question: {question}",
            "Question: {question} Answer:",
            "{question} The answer is",
            "Here is a question, with its answer behind it. {question}",
        ),
        reading.PROMPT: (
            reading.PROMPT,
            "Read this paragraph: {context} Answer this question about it in English: {question}",
            "Paragraph: {context} Question: {question} Answer in English:",
            "{context} According to this text, answer in English: {question}",
            "Here is a text. {context} Here is a question about it, to be answered in English. {question}",
        ),
    }
)
_FIELD = re.compile(r"\{(\w+)\}")
_MARK = "#"


@dataclass(frozen=True, slots=True)
class Wording:
    """One frame: how often it makes the model call, and its score."""

    frame: str
    calls: Interval
    score: Interval


@dataclass(frozen=True, slots=True)
class Robustness:
    """A task in one arm: shares of the examples that were asked in all frames. `same_calls` is that of the examples
    with a call in some frame, and needs the same calls, written alike but for spaces, in all of them."""

    task: str
    arm: str
    examples: int
    same_decision: Interval
    same_calls: Interval | None
    same_verdict: Interval
    wordings: tuple[Wording, ...]


def reworded(task: Task) -> list[Task]:
    """The task in each of its frames, the paper's first. Raises BadInput for one whose prompt has no other frames."""
    frames = FRAMES.get(task.prompt)
    if frames is None:
        raise BadInput(f"There are no other words for {task.name!r}; take a task whose prompt is the paper's.")
    return [_in_frame(task, number, frames[0], frame) for number, frame in enumerate(frames, 1)]


def _in_frame(task: Task, number: int, paper: str, frame: str) -> Task:
    def load(source: Source) -> Loaded:
        loaded = task.load(source)
        return replace(
            loaded,
            examples=tuple(replace(one, prompt=reframed(one.prompt, paper, frame)) for one in loaded.examples),
        )

    return replace(task, name=f"{task.name}{_MARK}{number}", prompt=frame, load=load)


def reframed(prompt: str, paper: str, frame: str) -> str:
    """A prompt in the paper's frame in another one. Raises BadInput where it does not stand in the paper's."""
    parts = _FIELD.split(paper)
    pattern = "".join(f"(?P<{part}>.+)" if number % 2 else re.escape(part) for number, part in enumerate(parts))
    match = re.fullmatch(pattern, prompt, re.DOTALL)
    if match is None:
        raise BadInput(f"A prompt does not stand in the words {paper!r}; leave this task out.")
    return _FIELD.sub(lambda field: match[field[1]], frame)


def robustness(arms: Sequence[Arm]) -> list[Robustness]:
    """Of every reworded task in the arms. Raises BadInput where there is none whole."""
    found = []
    names = dict.fromkeys(str(row["task"]).partition(_MARK)[0] for arm in arms for row in arm.rows if _number(row))
    for name in names:
        for arm in arms:
            by_id: dict[str, dict[int, Row]] = defaultdict(dict)
            for row in arm.rows:
                if _number(row) and str(row["task"]).partition(_MARK)[0] == name:
                    by_id[str(row["id"])][_number(row)] = row
            frames = [
                str(task["prompt"]) for other, task in arm.settings["tasks"].items() if other.startswith(name + _MARK)
            ]
            whole = [[rows[n] for n in sorted(rows)] for rows in by_id.values() if len(rows) == len(frames)]
            if whole:
                found.append(_robustness(name, arm.label, whole, frames))
    if not found:
        raise BadInput("No example was answered in all its wordings; run: toolwise eval wording TASK.")
    return found


def _number(row: Row) -> int:
    number = str(row["task"]).partition(_MARK)[2]
    return int(number) if number.isdecimal() else 0


def _robustness(task: str, arm: str, whole: Sequence[Sequence[Row]], frames: Sequence[str]) -> Robustness:
    called = [rows for rows in whole if any(row["calls"] for row in rows)]
    decision = mean_interval([len({bool(row["calls"]) for row in rows}) == 1 for rows in whole])
    verdict = mean_interval([len({bool(row["right"]) for row in rows}) == 1 for rows in whole])
    calls = mean_interval([len({_calls(row) for row in rows}) == 1 for rows in called])
    wordings = []
    for frame, rows in zip(frames, zip(*whole, strict=True), strict=True):
        rate, score = mean_interval([bool(row["calls"]) for row in rows]), mean_interval([row["right"] for row in rows])
        assert rate is not None and score is not None  # noqa: PT018
        wordings.append(Wording(frame, rate, score))
    assert decision is not None and verdict is not None  # noqa: PT018
    return Robustness(task, arm, len(whole), decision, calls, verdict, tuple(wordings))


def _calls(row: Row) -> tuple[str, ...]:
    return tuple("".join(str(call["body"]).split()) for call in row["calls"])


def table(found: Sequence[Robustness]) -> str:
    """As Markdown, in per cent: how much is equal in all wordings, and below it each wording."""
    head = ["task", "arm", "examples", "same decision", "95 %", "same calls", "95 %", "same verdict", "95 %"]
    upper = [
        [one.task, one.arm, str(one.examples)]
        + [cell for share in (one.same_decision, one.same_calls, one.same_verdict) for cell in share_cells(share)]
        for one in found
    ]
    lower = [
        [one.task, one.arm, each.frame, percent(each.calls.mean), *share_cells(each.score)]
        for one in found
        for each in one.wordings
    ]
    below = markdown(["task", "arm", "wording", "answers with a call", "score", "95 %"], lower)
    return f"{markdown(head, upper)}\n\n{below}"


def as_json(found: Sequence[Robustness]) -> list[dict[str, Any]]:
    return [asdict(one) for one in found]
