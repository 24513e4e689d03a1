"""What rows say of calls: good ones, restraint, robustness to words, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from toolwise.core.errors import BadInput
from toolwise.evals.answers import Row
from toolwise.evals.compare import Arm
from toolwise.evals.cost import Prices, costs
from toolwise.evals.cost import table as cost_table
from toolwise.evals.intervals import ratio_interval
from toolwise.evals.paraphrase import FRAMES, reframed, reworded, robustness
from toolwise.evals.paraphrase import table as wording_table
from toolwise.evals.quality import is_used, qualities, steps
from toolwise.evals.quality import table as quality_table
from toolwise.evals.restraint import restraint_task, restraints
from toolwise.evals.restraint import table as restraint_table
from toolwise.evals.tasks import TASKS, data_source, named


def call(code: str | None = None, result: str = "9", at: int = 0, name: str = "Calculator", body: str = "") -> Row:
    return {"body": body or f"{name}(7 + 2)", "name": name, "at": at, "result": result, "code": code}


def row(id_: str, *calls: Row, right: bool = False, read: str | None = None, **more: Any) -> Row:
    made = {"id": id_, "task": "asdiv", "prompt": f"{id_}: 7 and 2. The answer is", "text": " 9 lamps.", "calls": calls}
    return {**made, "right": right, "read": read, "sampled": 10, "fed": 50, "seconds": 0.5, **more}


def arm(
    label: str, rows: Sequence[Row], *, enabled: bool = True, model: str = "m", tasks: Mapping[str, Any] = {}
) -> Arm:
    return Arm(label, {"model": model, "decode": {"enabled": enabled}, "tasks": tasks}, tuple(rows))


@pytest.mark.parametrize(
    ("result", "behind", "used"),
    [
        ("9", " 9 lamps.", True),
        ("9", " 19 lamps, 9.5 lamps.", False),
        ("1000", " 1,000 lamps.", True),
        ("-2.5", " it is -2.50 degrees", True),
        ("Today is Monday, January 30, 2023.", " Monday.", True),
        ("Today is Monday, January 30, 2023.", " a day like today.", False),
        ("Skarvik has a lighthouse", " lighthouse", False),  # the question has it
        ("Skarvik has a lighthouse", " SKARVIK", True),
        ("", " 9", False),
    ],
)
def test_a_result_is_used_where_its_number_or_a_new_word_of_it_stands_behind_the_call(
    result: str, behind: str, used: bool
) -> None:
    assert is_used(result, behind, "Which town has the lighthouse?") == used


@pytest.mark.parametrize(
    ("made", "passed"),
    [
        (call("truncated_call"), 0),
        (call("malformed_call"), 0),
        ({"body": "Calculator(", "name": "Calculator", "at": 0}, 0),  # the answer ended in it
        (call("unknown_tool"), 1),
        (call("invalid_arguments"), 2),
        (call("tool_failed"), 3),
        (call("denied"), 3),
        (call(result="7"), 4),
        (call(result="9", at=3), 4),  # stands before the call, not behind it
        (call(), 5),
    ],
)
def test_a_call_passes_one_step_after_the_other(made: Row, passed: int) -> None:
    assert steps(row("a"), made) == passed


def test_calls_are_held_against_the_same_models_answers_with_calls_disabled() -> None:
    tuned = [row("a", call(), right=True, read="9"), row("b", call("unknown_tool"), read="3"), row("c", read="1")]
    tuned += [row("d", call(), read="5")]
    disabled = [row("a", read="4"), row("b", read="3"), row("c", read="1"), row("d", right=True, read="8")]
    arms = [arm("tuned", tuned), arm("other", disabled, enabled=False, model="o"), arm("no", disabled, enabled=False)]
    (found,) = qualities(arms)
    assert (found.arm, found.answers, found.with_call, found.calls) == ("tuned", 4, 3, 3)
    shares = (found.well_formed, found.known_tool, found.used, found.changed, found.better, found.worse, found.right)
    assert [round(share.mean, 2) for share in shares if share] == [1.0, 0.67, 0.67, 0.67, 0.33, 0.33, 0.33]
    assert qualities(arms[:1], arms[2:]) == [found]
    assert qualities(arms[:2])[0].changed is None
    assert "| asdiv | tuned | 4 | 3 | 3 | 100.0 | 100.0 to 100.0 | 66.7 |" in quality_table([found])
    with pytest.raises(BadInput, match="might"):
        qualities(arms[1:])


def test_a_right_answer_costs_what_all_answers_took() -> None:
    rows = [row("a", call(), right=True), row("b", call(name="Search"), call()), row("c"), row("d", right=True)]
    (found,) = costs([arm("tuned", rows)], Prices(read=1.0, chosen=10.0, call=0.5, tools={"Search": 2.0}))
    assert (found.answers, found.score.mean, found.calls.answer.mean) == (4, 0.5, 0.75)
    assert (found.read.answer.mean, found.chosen.answer.mean) == (40, 10)
    assert found.money.answer.mean == pytest.approx((4 * (0.04 + 0.1) + 0.5 + 2.0 + 0.5) / 4)
    assert found.money.right_answer is not None
    assert found.money.right_answer.value == pytest.approx((4 * (0.04 + 0.1) + 3.0) / 2)
    assert "| asdiv | tuned | 4 | 50.0 |" in cost_table([found])
    (none,) = costs([arm("none", rows[1:3])], Prices())
    assert none.money.right_answer is None
    assert none.money.answer.mean == 0


def test_a_ratios_interval_holds_it_and_is_open_where_the_sum_below_may_be_nothing() -> None:
    many = ratio_interval([2.0, 4.0] * 200, [1.0, 1.0] * 200)
    assert many is not None and many.high is not None  # noqa: PT018
    assert many.low < many.value == 3.0 < many.high
    few = ratio_interval([1.0] * 3, [1.0, 0.0, 0.0])
    assert few is not None
    assert (few.value, few.high) == (3.0, None)
    assert ratio_interval([1.0], [0.0]) is None
    assert ratio_interval([], []) is None


TEXT = """The keeper of the lighthouse climbed all the stairs before the evening came again.
In 1871 the keeper of the lighthouse climbed all the stairs before it was evening.
Too short for this. The keeper of the lighthouse climbed up and down until nobody could count the steps any more.
"""


def test_sentences_of_plain_texts_are_begun(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text(TEXT)
    loaded = restraint_task(str(tmp_path / "texts.txt"), 8).load(data_source("."))
    assert [example.prompt for example in loaded.examples] == ["The keeper of the lighthouse climbed"]
    assert loaded.dropped == {"short": 1, "digit": 1, "repeated": 1}
    loaded = restraint_task(str(tmp_path / "texts.txt"), 8, digits=True).load(data_source("."))
    assert [example.prompt for example in loaded.examples][1:] == ["In 1871 the keeper of the"]


def test_restraint_counts_texts_with_a_call_and_calls_a_thousand_tokens() -> None:
    rows = [row(str(n), *([call()] if n == 0 else []), task="restraint") for n in range(4)]
    (found,) = restraints([arm("tuned", rows), arm("else", [row("a", call())])])
    assert (found.texts, found.calling.mean, found.calls, found.tools) == (4, 0.25, 1, {"Calculator": 1})
    assert found.per_thousand is not None
    assert found.per_thousand.value == 25.0
    assert "| tuned | 4 | 25.0 |" in restraint_table([found])


@pytest.mark.parametrize("name", TASKS)
def test_every_task_has_five_frames_that_hold_the_same_question(name: str) -> None:
    (task,) = named([name])
    tasks = reworded(task)
    assert [other.name for other in tasks] == [f"{name}#{number}" for number in range(1, 6)]
    frames = FRAMES[task.prompt]
    fields = {part: f"some {part}" for part in ("problem", "text", "question", "context") if f"{{{part}}}" in frames[0]}
    prompts = [reframed(frames[0].format(**fields), frames[0], frame) for frame in frames]
    assert prompts == [frame.format(**fields) for frame in frames]
    assert len(set(prompts)) == 5


def test_a_question_that_holds_the_frames_words_stays_whole() -> None:
    paper = FRAMES[TASKS["asdiv"].prompt][0]
    assert reframed("It said {x}. The answer is 3? The answer is", paper, "Q: {problem} A:") == (
        "Q: It said {x}. The answer is 3? A:"
    )
    with pytest.raises(BadInput, match="leave this task out"):
        reframed("What else?", paper, "{problem}")


def test_decisions_calls_and_verdicts_are_compared_over_all_wordings() -> None:
    def worded(id_: str, *answers: tuple[str | None, bool]) -> list[Row]:
        return [
            row(id_, *([call(body=body)] if body else []), right=right, task=f"asdiv#{number}")
            for number, (body, right) in enumerate(answers, 1)
        ]

    tasks = {f"asdiv#{number}": {"prompt": frame} for number, frame in enumerate(("one {problem}", "two {problem}"), 1)}
    rows = [
        *worded("same", ("C(7+2)", True), ("C(7 + 2)", True)),
        *worded("other call", ("C(7+2)", True), ("C(7-2)", False)),
        *worded("one calls", ("C(7+2)", True), (None, True)),
        *worded("none calls", (None, False), (None, False)),
        *worded("half asked", (None, False)),
    ]
    (found,) = robustness([arm("tuned", rows, tasks=tasks)])
    assert (found.task, found.examples, found.same_decision.mean, found.same_verdict.mean) == ("asdiv", 4, 0.75, 0.75)
    assert found.same_calls is not None
    assert found.same_calls.mean == pytest.approx(1 / 3)
    assert [(one.frame, one.calls.mean, one.score.mean) for one in found.wordings] == [
        ("one {problem}", 0.75, 0.75),
        ("two {problem}", 0.5, 0.5),
    ]
    assert "| asdiv | tuned | two {problem} | 50.0 | 50.0 |" in wording_table([found])
    with pytest.raises(BadInput, match="eval wording"):
        robustness([arm("tuned", [row("a")])])
