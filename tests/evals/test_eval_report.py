"""The report over several runs: what it counts, what it says in words, and that its JSON is all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval_runs import experiment, row, settings, write
from toolwise.core import jsonio
from toolwise.core.errors import BadInput
from toolwise.evals.compare import arms
from toolwise.evals.report import Report, as_json, from_json, summarise
from toolwise.evals.tables import as_markdown, findings, size, tables


def report(out: Path, examples: int = 3) -> Report:
    return summarise(arms([out]), examples)


def few(out: Path) -> Report:
    """Eight questions: the tool makes five right and one wrong, one call fails."""
    write(out / "base", [row(n, False) for n in range(8)], settings("b", k=0, taught="nothing"))
    write(
        out / "tuned", [row(n, n != 7, call=True, code="tool_error" if n == 6 else None) for n in range(8)], settings()
    )
    return write(out / "tuned-disabled", [row(n, n in (5, 7)) for n in range(8)], settings(k=0)) and report(out)


def table(found: Report, title: str) -> list[dict[str, str]]:
    (one,) = [one for one in tables(found) if one.title == title]
    return [dict(zip(one.head, cells, strict=True)) for cells in one.rows]


def test_each_arm_is_what_its_settings_say(tmp_path: Path) -> None:
    found = report(experiment(tmp_path, questions=4)[0].parent)
    assert {arm.label: (arm.kind, arm.top_k) for arm in found.arms} == {
        **{"base": ("base", 0), "plain": ("plain", 0), "tuned-disabled": ("disabled", 0)},
        **{"tuned-k1": ("calls", 1), "tuned-k3": ("calls", 3), "tuned": ("calls", 10)},
    }
    assert {arm.parameters for arm in found.arms} == {134_515_008}


def test_what_calls_are_worth_is_counted_question_by_question(tmp_path: Path) -> None:
    found = few(tmp_path)
    gains = [
        (gain.arm, gain.control, gain.only_arm, gain.only_control, gain.both, gain.neither) for gain in found.gains
    ]
    assert gains == [("tuned", "tuned-disabled", 6, 1, 1, 0), ("tuned", "base", 7, 0, 0, 1)]
    assert [gain.difference.mean for gain in found.gains] == [5 / 8, 7 / 8]


def test_examples_are_those_on_which_a_call_decided(tmp_path: Path) -> None:
    found = few(tmp_path)
    assert [(one.helped, one.control) for one in found.examples] == [
        *[(True, "tuned-disabled")] * 3,
        (False, "tuned-disabled"),
    ]
    wrong = found.examples[-1]
    assert (wrong.call, wrong.result, wrong.without) == ("Calculator(3 + 5)", "8", " It is 9.")
    assert summarise(arms([tmp_path]), 0).examples == ()


def test_calls_and_their_errors_are_counted(tmp_path: Path) -> None:
    assert table(few(tmp_path), "Calls") == [
        {"arm": "tuned", "calls": "8", "without an error": "87.5", "errors": "tool_error 1"}
    ]


def test_the_headline_has_arms_below_each_other_and_tasks_beside_each_other(tmp_path: Path) -> None:
    (experiment(tmp_path, questions=40))
    found = report(tmp_path)
    rows = {cells["arm"]: cells for cells in table(found, "Scores")}
    for line in found.lines:
        shown = f"{100 * line.score.mean:.1f} ({100 * line.score.low:.1f} to {100 * line.score.high:.1f})"
        assert rows[line.arm][line.task] == shown
    assert rows["plain"]["which"] == "trained on the same texts without calls"


def test_the_ablation_splits_scores_by_whether_the_model_called(tmp_path: Path) -> None:
    experiment(tmp_path, questions=40)
    found = report(tmp_path)
    rows = table(found, "By top k")
    assert [one["k"] for one in rows] == ["0", "1", "3", "10"] * 2
    assert (rows[0]["answers with calls"], rows[0]["score where called"]) == ("0.0", "–")
    assert (rows[3]["answers with calls"], rows[3]["score where not"]) == ("100.0", "–")
    assert not any(one.title == "By top k" for one in tables(few(tmp_path / "few")))


def test_cost_is_told_for_a_right_answer_too(tmp_path: Path) -> None:
    (tuned,) = [one for one in table(few(tmp_path), "Cost") if one["arm"] == "tuned"]
    assert tuned["tokens read"] == "60.0"
    assert tuned["tokens read a right answer"] == f"{60 / (7 / 8):.1f}"
    assert next(one for one in table(few(tmp_path / "again"), "Cost"))["seconds a right answer"] == "–"


def test_a_finding_says_in_words_whether_calls_help(tmp_path: Path) -> None:
    verdicts = []
    for name, right, without in (("helps", 30, 5), ("harms", 5, 30), ("open", 10, 9)):
        out = tmp_path / name
        asked = {"svamp": 40}
        write(out / "tuned", [row(n, n < right, call=True) for n in range(40)], settings(tasks=asked))
        write(out / "off", [row(n, 40 - n <= without) for n in range(40)], settings(tasks=asked, k=0))
        verdicts += [(one.verdict, one.said.partition(".")[0]) for one in findings(report(out))]
    assert verdicts == [
        *[("helps", "svamp: Calls help"), ("harms", "svamp: Calls harm")],
        ("open", "svamp: No effect of calls can be told"),
    ]


def test_findings_are_of_the_largest_k_and_of_a_threshold_that_is_alone(tmp_path: Path) -> None:
    write(tmp_path / "off", [row(n, False) for n in range(8)], settings(k=0))
    for label, k, threshold in (("k1", 1, None), ("k10", 10, None), ("t0.3", 10, 0.3), ("t0.5", 10, 0.5)):
        begun = settings(k=k)
        begun["decode"]["start_threshold"] = threshold
        write(tmp_path / label, [row(n, True, call=True) for n in range(8)], begun)

    def told(*labels: str) -> list[str]:
        found = findings(summarise(arms([tmp_path / label for label in ("off", *labels)])))
        return [one.said.split()[3] for one in found]

    assert told("k1", "k10", "t0.3") == ["k10", "t0.3"]
    assert told("k1", "t0.3", "t0.5") == ["k1"]


def test_arms_that_were_asked_other_questions_are_not_held_against_each_other(tmp_path: Path) -> None:
    write(tmp_path / "off", [row(n, True) for n in range(7)], settings(k=0))
    write(tmp_path / "tuned", [row(n, True) for n in range(8)], settings())
    found = report(tmp_path)
    assert found.gains == found.examples == ()
    assert next(cells["svamp"] for cells in table(found, "Scores")).endswith("7 of 8")


def test_an_arm_that_is_not_finished_stands_out_in_nothing(tmp_path: Path) -> None:
    write(tmp_path / "off", [row(n, n < 2) for n in range(8)], settings(k=0))
    write(tmp_path / "tuned", [row(0, True)], settings())
    (scores, *_) = tables(report(tmp_path))
    assert scores.rows[1][3] == "100.0 (100.0 to 100.0), 1 of 8"
    assert scores.best == {(0, 3)}


def test_a_model_of_another_size_is_no_control(tmp_path: Path) -> None:
    experiment(tmp_path, (100_000_000, 300_000_000), questions=10)
    found = report(tmp_path)
    assert all(gain.arm.split("-")[0] == gain.control.split("-")[0] for gain in found.gains)
    assert len(found.gains) == 2 * 2 * 3 * 3


def test_tables_made_again_of_the_json_are_the_same(tmp_path: Path) -> None:
    experiment(tmp_path, (100_000_000, 300_000_000), questions=20)
    found = report(tmp_path)
    again = from_json(jsonio.loads(jsonio.dumps(as_json(found))))
    assert again == found
    assert tables(again) == tables(found)
    assert as_markdown(again) == as_markdown(found)


@pytest.mark.parametrize("value", [None, [], {}, {"format": 1}, {"format": 0, "arms": []}])
def test_json_of_something_else_is_refused(value: object) -> None:
    with pytest.raises(BadInput, match="eval report --json"):
        from_json(value)


@pytest.mark.parametrize(
    ("parameters", "said"), [(134_515_008, "135M"), (1_711_376_384, "1.71B"), (9_000, "9K"), (None, "–")]
)
def test_sizes_are_said_as_people_say_them(parameters: int | None, said: str) -> None:
    assert size(parameters) == said
