"""What several runs come to, made of their rows alone: scores, what calls were worth, what they cost, and examples.

    report = summarise(arms(folders))      then tables(report) and page(report); from_json(as_json(report)) == report

The control of an arm that may call is every arm of a model of the same size that may not: the same model with calls
disabled first, then the base and the one that was trained on the plain texts. Where there is none, it is the first arm.

Not covered: what all questions of a task share. That one training run came out better than another is not in the
intervals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from toolwise.core import jsonio
from toolwise.core.errors import BadInput
from toolwise.evals.answers import Row
from toolwise.evals.compare import Arm, Line, lines
from toolwise.evals.intervals import Interval, paired_interval

FORMAT = 1
Kind = Literal["base", "plain", "disabled", "calls"]
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ArmSaid:
    """One run. `kind` is what it is to the others, `parameters` None where its folder does not say. `top_k` is 0 and
    `start_threshold` None where calls are disabled. `failed` counts the calls that gave an error, by code."""

    label: str
    kind: Kind
    model: str
    parameters: int | None
    top_k: int
    start_threshold: float | None
    answers: int
    of: int
    calls: int
    failed: Mapping[str, int]
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Gain:
    """An arm held against a control on the same questions: how much better it is, and how many questions each of
    the two has right."""

    task: str
    arm: str
    control: str
    difference: Interval
    both: int
    only_arm: int
    only_control: int
    neither: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What an answer costs in the mean: tokens that the model read (prompt, calls and results with it), tokens that it
    chose, seconds (while others were asked beside it), calls."""

    task: str
    arm: str
    read: float
    sampled: float
    seconds: float
    calls: float
    right: float


@dataclass(frozen=True, slots=True)
class Shown:
    """A question on which an arm and its control differ. `call` is the call as written, `result` what it gave."""

    task: str
    arm: str
    control: str
    helped: bool
    prompt: str
    answers: tuple[str, ...]
    written: str
    call: str
    result: str
    without: str


@dataclass(frozen=True, slots=True)
class Report:
    """All of it, plain frozen values that JSON can carry."""

    arms: tuple[ArmSaid, ...]
    lines: tuple[Line, ...]
    gains: tuple[Gain, ...]
    costs: tuple[Cost, ...]
    examples: tuple[Shown, ...]


def summarise(arms: Sequence[Arm], examples: int = 3) -> Report:
    """The report over these runs, with at most so many examples of each task, `chief` arm and kind."""
    said = [_said(arm) for arm in arms]
    shown_of = chief(said)
    found: list[Gain] = []
    shown: list[Shown] = []
    for arm, one in zip(arms, said, strict=True):
        others = _controls(one, said)
        for task in _tasks([arm]):
            for number, place in enumerate(others):
                pairs = _pairs(task, arm, arms[place])
                if pairs:
                    found.append(_gain(task, one, said[place], pairs))
                    if number == 0 and one in shown_of:
                        shown += _examples(task, one, said[place], pairs, examples)
    order = _tasks(arms)
    return Report(
        tuple(said),
        tuple(lines(arms)),
        tuple(sorted(found, key=lambda gain: order.index(gain.task))),
        tuple(_cost(task, arm) for task in order for arm in arms if task in _tasks([arm])),
        tuple(sorted(shown, key=lambda one: (order.index(one.task), not one.helped))),
    )


def as_json(report: Report) -> dict[str, Any]:
    """The report for scripts; `from_json` reads it."""
    return {"format": FORMAT, **asdict(report)}


def from_json(value: Any) -> Report:
    """The report that `as_json` was given. Raises BadInput for anything else."""
    try:
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise ValueError("no report, or of another version")
        rest = {name: part for name, part in value.items() if name != "format"}
        return TypeAdapter(Report).validate_python(rest)
    except (ValidationError, ValueError) as error:
        raise BadInput("This is not the JSON of `toolwise eval report --json`; name folders of runs.") from error


def chief(arms: Sequence[ArmSaid]) -> list[ArmSaid]:
    """Of each model that may call the arm with the largest k (the paper's way), and that with a threshold if it has
    one alone: of several, none is more than another."""
    found = []
    for model in dict.fromkeys(arm.model for arm in arms if arm.kind == "calls"):
        own = [arm for arm in arms if arm.model == model and arm.kind == "calls"]
        by_k = [arm for arm in own if arm.start_threshold is None]
        by_threshold = [arm for arm in own if arm.start_threshold is not None]
        found += [max(by_k, key=lambda arm: arm.top_k)] if by_k else []
        found += by_threshold if len(by_threshold) == 1 else []
    return found


def _said(arm: Arm) -> ArmSaid:
    settings = jsonio.loads(jsonio.dumps(arm.settings))  # in the order that it comes back in
    decode, about = settings.get("decode", {}), settings.get("about", {})
    may = bool(decode.get("enabled", True))
    kinds: Mapping[str, Kind] = {"nothing": "base", "texts": "plain"}
    codes = [call["code"] for row in arm.rows for call in row["calls"]]
    return ArmSaid(
        arm.label,
        "calls" if may else kinds.get(about.get("taught", ""), "disabled"),
        str(settings.get("model", "")),
        about.get("parameters"),
        decode.get("start_top_k", 0) if may else 0,
        decode.get("start_threshold") if may else None,
        len(arm.rows),
        sum(task["examples"] for task in settings["tasks"].values()),
        len(codes),
        dict(sorted(Counter(code for code in codes if code is not None).items())),
        settings,
    )


def _controls(arm: ArmSaid, arms: Sequence[ArmSaid]) -> list[int]:
    """The places of its controls, the closest first."""
    if arm.kind != "calls":
        return []
    near = {"disabled": 0, "plain": 1, "base": 2}
    found = [
        place
        for place, other in enumerate(arms)
        if other.kind != "calls"
        and other.parameters == arm.parameters
        and (other.kind != "disabled" or other.model == arm.model)
    ]
    found.sort(key=lambda place: near[arms[place].kind])
    return found or [0] * (arms[0] is not arm)


def _tasks(arms: Sequence[Arm]) -> list[str]:
    return list(dict.fromkeys(str(row["task"]) for arm in arms for row in arm.rows))


def _rows(task: str, arm: Arm) -> dict[Key, Row]:
    return {(row["id"], row["prompt"]): row for row in arm.rows if row["task"] == task}


def _pairs(task: str, arm: Arm, control: Arm) -> list[tuple[Row, Row]]:
    """The answers of both, where both were asked the same questions; none otherwise."""
    first, second = _rows(task, control), _rows(task, arm)
    return [(first[key], row) for key, row in second.items()] if first.keys() == second.keys() else []


def _gain(task: str, arm: ArmSaid, control: ArmSaid, pairs: Sequence[tuple[Row, Row]]) -> Gain:
    counts = Counter((bool(before["right"]), bool(after["right"])) for before, after in pairs)
    sides = ([float(row["right"]) for row in side] for side in zip(*pairs, strict=True))
    difference = paired_interval(*sides)
    assert difference is not None
    places = [(True, True), (False, True), (True, False), (False, False)]
    return Gain(task, arm.label, control.label, difference, *(counts[place] for place in places))


def _examples(task: str, arm: ArmSaid, control: ArmSaid, pairs: Sequence[tuple[Row, Row]], most: int) -> list[Shown]:
    """The shortest of those that a call made right, and of those that it made wrong."""
    found: list[Shown] = []
    for helped in (True, False):
        chosen = [
            (before, after)
            for before, after in pairs
            if after["calls"] and bool(after["right"]) is helped and bool(before["right"]) is not helped
        ]
        chosen.sort(key=lambda pair: len(pair[1]["prompt"]))
        found += [_shown(task, arm, control, helped, *pair) for pair in chosen[:most]]
    return found


def _shown(task: str, arm: ArmSaid, control: ArmSaid, helped: bool, before: Row, after: Row) -> Shown:
    call = after["calls"][0]
    told = (after["prompt"], tuple(after["answers"]), after["written"], call["body"], call.get("result") or "")
    return Shown(task, arm.label, control.label, helped, *told, before["written"])


def _cost(task: str, arm: Arm) -> Cost:
    rows = list(_rows(task, arm).values())

    def mean(name: str) -> float:
        return round(sum(float(row[name]) for row in rows) / len(rows), 4)

    calls = round(sum(len(row["calls"]) for row in rows) / len(rows), 4)
    return Cost(task, arm.label, mean("fed"), mean("sampled"), mean("seconds"), calls, mean("right"))
