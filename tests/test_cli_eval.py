"""`toolwise eval TASK...` as a user meets it, over scripted models."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from command_line import Toolwise, refused, runner
from task_files import write_rows, write_task_files
from toolwise.core.errors import ModelUnavailable
from toolwise.evals.answers import ANSWERS
from toolwise.evals.tasks import data_source, named
from toolwise.models.about import About
from toolwise.models.scripted import Script, ScriptedModel, ScriptedTokenizer

SUMS = [
    {"id": f"v{n}", "body": f"A boat brings {n} candles.", "question": f"How many with {n} more?", "answer": 2.0 * n}
    for n in range(3, 9)
]


def answering(folder: Path, write: Callable[[str, str], str]) -> Script:
    """A script that knows every question in the folder; `write` makes its text of a prompt and the right answer."""
    tasks = named(["svamp", "lama-squad"])
    known = {
        example.prompt: write(example.prompt, example.answers[0])
        for task in tasks
        for example in task.load(data_source(str(folder))).examples
    }

    def script(text: str) -> str:
        prompt = max((one for one in known if text.startswith(one)), key=len)
        said = known[prompt]
        return said[len(text) - len(prompt) :] if said.startswith(text[len(prompt) :]) else ""

    return script


def calling(prompt: str, answer: str) -> str:
    """A call that gives the right answer, where the answer is a number; otherwise the answer alone."""
    if not answer.isdigit():
        return f" {answer}, I think."
    half = int(answer) // 2
    return f" [Calculator({half} + {half}) -> {answer}] {answer} candles.\nAnd"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    write_task_files(folder)
    write_rows(folder / "svamp.jsonl", SUMS)
    return folder


@pytest.fixture
def models(data: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Script]:
    """Models by name; whose name begins with `base` was not taught calls."""
    scripts = {
        "tuned": answering(data, calling),
        "base": answering(data, lambda prompt, answer: " I do not know."),
        "empty": answering(data, lambda prompt, answer: ""),
    }

    def load(name: str, threads: int | None = None) -> ScriptedModel:
        if name not in scripts:
            raise ModelUnavailable("There is no such model.")
        return ScriptedModel(scripts[name], name=name)

    monkeypatch.setattr("toolwise.models.load.load_model", load)
    monkeypatch.setattr(
        "toolwise.evals.arms.describe_model", lambda name: (ScriptedTokenizer(), load(name).fingerprint)
    )
    monkeypatch.setattr(
        "toolwise.evals.arms.about_model",
        lambda name: About(134_515_008, "nothing" if name.startswith("base") else "calls"),
    )
    return scripts


@pytest.fixture
def toolwise(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, models: Mapping[str, Script]
) -> Toolwise:
    monkeypatch.chdir(tmp_path)
    return runner(monkeypatch, capsys)


def lines(toolwise: Toolwise, *args: object) -> list[dict[str, Any]]:
    done = toolwise("eval", *args, "--json")
    assert done.code == 0, done
    found: list[dict[str, Any]] = json.loads(done.out)
    return found


def ask(toolwise: Toolwise, *args: object) -> list[dict[str, Any]]:
    return lines(toolwise, "svamp", "lama-squad", "--data", "data", "--top-k", "1", "--out", "out", *args)


def test_a_perfect_model_gets_all_and_an_empty_one_none(toolwise: Toolwise) -> None:
    found = ask(toolwise, "-m", "tuned", "-m", "empty")
    assert [(line["task"], line["arm"], line["asked"], line["score"]["mean"]) for line in found] == [
        *[("svamp", "tuned-k1", 6, 1.0), ("svamp", "empty-k1", 6, 0.0)],
        *[("lama-squad", "tuned-k1", 1, 1.0), ("lama-squad", "empty-k1", 1, 0.0)],
    ]
    assert [line["calls"] for line in found] == [1.0, 0.0, 0.0, 0.0]
    assert [line["gain"] and line["gain"]["mean"] for line in found] == [None, -1.0, None, -1.0]


def test_every_control_is_an_arm_with_a_folder_of_its_own(toolwise: Toolwise, tmp_path: Path) -> None:
    found = ask(toolwise, "-m", "base", "-m", "ours=tuned", "--top-k", "0,1")
    svamp = {line["arm"]: line for line in found if line["task"] == "svamp"}
    assert list(svamp) == ["base", "ours-disabled", "ours-k1"]
    assert [line["calls"] for line in svamp.values()] == [0.0, 0.0, 1.0]
    assert svamp["ours-k1"]["gain"]["mean"] == 1.0
    assert {folder.name for folder in (tmp_path / "out").iterdir()} == set(svamp)
    disabled = ask(toolwise, "-m", "ours=tuned", "--disabled")
    assert [line["arm"] for line in disabled] == ["ours-disabled"] * 2


def test_the_same_command_goes_on_and_other_settings_are_refused(
    toolwise: Toolwise, tmp_path: Path, models: dict[str, Script]
) -> None:
    found = ask(toolwise, "-m", "tuned")
    file = tmp_path / "out" / "tuned-k1" / ANSWERS
    rows = file.read_text().splitlines(keepends=True)
    file.write_text("".join(rows[:3]) + rows[3][:20])
    models["tuned"] = lambda text: ""  # what is left is answered by nothing
    again = ask(toolwise, "-m", "tuned")
    assert [line["score"]["mean"] for line in again] == [0.5, 0.0]
    file.write_text("".join(rows))
    assert ask(toolwise, "-m", "tuned") == found
    refused(
        toolwise("eval", "svamp", "--data", "data", "-m", "tuned", "--top-k", "1", "--out", "out"),
        *("settings_differ", "begun with other settings: tasks.lama-squad"),
    )


def test_a_table_can_be_made_again_of_the_answers_alone(toolwise: Toolwise, data: Path) -> None:
    found = ask(toolwise, "-m", "base", "-m", "tuned")
    for file in data.iterdir():
        file.unlink()
    assert lines(toolwise, "compare", "out/base", "out/tuned-k1") == found
    assert lines(toolwise, "compare", "out") == found


def test_for_people_it_is_a_table_in_markdown(toolwise: Toolwise) -> None:
    ask(toolwise, "-m", "base", "-m", "tuned")
    done = toolwise("eval", "compare", "out")
    assert done.out.splitlines()[2:4] == [
        "| svamp | base | 6 | 0.0 | 0.0 to 0.0 | 0.0 | – | 0.0 | – | – |",
        "| svamp | tuned-k1 | 6 | 100.0 | 100.0 to 100.0 | 100.0 | 100.0 | – | +100.0 | +100.0 to +100.0 |",
    ]


def test_one_report_over_all_arms_can_be_made_again_of_its_json(toolwise: Toolwise, tmp_path: Path) -> None:
    ask(toolwise, "-m", "base", "-m", "tuned")
    shown = toolwise("eval", "report", "out", "--html", "one.html")
    assert "- svamp: Calls help. tuned-k1 has 100.0 % right, +100.0 (+100.0 to +100.0) points over base." in shown.out
    (tmp_path / "report.json").write_text(toolwise("eval", "report", "out", "--json").out)
    assert toolwise("eval", "report", "report.json", "--html", "again.html") == shown
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "one.html").read_bytes()
    (tmp_path / "other.json").write_text("{}")
    refused(toolwise("eval", "report", "other.json"), "bad_input", "name folders of runs")


def test_an_unfinished_run_says_so_and_is_compared_with_nothing(toolwise: Toolwise, tmp_path: Path) -> None:
    ask(toolwise, "-m", "base", "-m", "tuned")
    file = tmp_path / "out" / "tuned-k1" / ANSWERS
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:2]))
    done = toolwise("eval", "compare", "out")
    assert "| svamp | tuned-k1 | 2 of 6 | 100.0 | 100.0 to 100.0 | 100.0 | 100.0 | – | – | – |" in done.out


def test_a_sample_is_drawn_by_lot_and_its_folder_is_named_after_it(toolwise: Toolwise, tmp_path: Path) -> None:
    done = toolwise("eval", "svamp", "--data", "data", "-m", "tuned", "--top-k", "1", "--examples", "2", "--seed", "7")
    assert (done.code, "| svamp | tuned-k1 | 2 | 100.0 |" in done.out) == (0, True)
    assert (tmp_path / "eval-svamp-2-seed7" / "tuned-k1" / ANSWERS).exists()


def test_options_may_stand_before_the_tasks_and_the_word_task_too(toolwise: Toolwise) -> None:
    one = lines(toolwise, "--data", "data", "-m", "base", "--out", "out", "svamp")
    assert lines(toolwise, "task", "svamp", "--data", "data", "-m", "base", "--out", "out") == one


def test_the_tasks_are_listed(toolwise: Toolwise) -> None:
    listed = {one["task"]: one for one in lines(toolwise, "tasks")}
    assert listed["asdiv"]["prompt"] == "{text} {question} The answer is"
    assert listed["nq"]["off"] == "QA"
    assert "first 20 words" in toolwise("eval", "tasks").out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("nothing", "--data", "data"), "There is no task 'nothing'; use lama-squad"),
        (("svamp", "--data", "nowhere"), "There is no folder 'nowhere'"),
        (("svamp", "--data", "data", "--top-k", "a"), "such as 0,1,3,10"),
        (("svamp", "--data", "data", "--top-k", "-1"), "such as 0,1,3,10"),
        (("svamp", "--data", "data", "--today", "Monday"), "--today 'Monday'"),
        (("svamp", "--data", "data", "--tools", "Calculater"), "did you mean Calculator"),
        (("svamp", "--data", "data", "-m", "a/model", "-m", "b/model"), "as in --model one=a/model"),
        (("compare", "data"), "name a folder that `toolwise eval TASK --out` filled"),
    ],
)
def test_what_cannot_be_used_is_one_line_that_says_what_to_do(
    toolwise: Toolwise, args: tuple[str, ...], words: str
) -> None:
    refused(toolwise("eval", *args), "bad_input", words)


def test_a_folder_of_other_answers_is_not_compared(toolwise: Toolwise, tmp_path: Path) -> None:
    from toolwise.evals.answers import fill

    fill(tmp_path / "other", {}, {1: 1}, lambda: lambda _: {"id": 1}, lambda row: row["id"])
    refused(toolwise("eval", "compare", "other"), "bad_input", "answers to something else")
