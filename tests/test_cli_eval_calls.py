"""`toolwise eval calibrate` and its kin as a user meets them, over scripted models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command_line import Toolwise, refused, runner
from task_files import write_rows
from toolwise.evals.answers import ANSWERS
from toolwise.models.about import About
from toolwise.models.base import Floats
from toolwise.models.pulled import NOTE
from toolwise.models.scripted import ScriptedModel, ScriptedTokenizer, follow
from toolwise.notation.segments import Ids

SUMS = [
    {"id": f"v{n}", "body": f"A boat brings {n} candles.", "question": f"How many with {n} more?", "answer": 2.0 * n}
    for n in range(3, 9)
]


class Doubling(ScriptedModel):
    """Calls rightly for what it is asked, and is the surer of it the more candles there are; otherwise says 8."""

    def __init__(self) -> None:
        super().__init__(self._says, name="doubling")

    def _says(self, text: str) -> str:
        if "brings" not in text:
            return follow((" [", "Calculator(1 + 1) ->"))(text)
        count, tail = text.partition("brings ")[2].partition(" ")[0], text.partition("answer is")[2]
        call = f" [Calculator({count} + {count}) -> {2 * int(count or 0)}] {2 * int(count or 0)} candles.\nAnd"
        return next((said[len(tail) :] for said in (" 8 candles.\nAnd", call) if said.startswith(tail)), "")

    def _next(self, ids: Ids) -> Floats:
        row = super()._next(ids)
        text = self.tokenizer.decode(ids)
        if text.endswith("answer is"):
            sure = int(text.partition("brings ")[2].partition(" ")[0]) / 10
            row += np.float32(np.log(1 - sure))
            row[self.tokenizer.encode(" [")[0]] = np.log(sure)
        return row


@pytest.fixture
def toolwise(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Toolwise:
    (tmp_path / "data").mkdir()
    write_rows(tmp_path / "data" / "svamp.jsonl", SUMS)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    told = (ScriptedTokenizer(), Doubling().fingerprint)
    monkeypatch.setattr("toolwise.models.load.load_model", lambda name, threads=None: Doubling())
    monkeypatch.setattr("toolwise.models.load.describe_model", lambda name: told)
    monkeypatch.setattr("toolwise.evals.arms.describe_model", lambda name: told)
    monkeypatch.setattr("toolwise.evals.arms.about_model", lambda name: About(1, "calls"))
    return runner(monkeypatch, capsys)


def asked(toolwise: Toolwise, *args: object) -> Any:
    done = toolwise("eval", *args, "--json")
    assert done.code == 0, done
    return json.loads(done.out)


CALIBRATE = (
    "calibrate",
    "svamp",
    "--data",
    "data",
    "-m",
    "model",
    "--out",
    "curve",
    "--thresholds",
    "0.1,0.25,0.45,0.75",
)


def test_a_curve_and_its_best_threshold(toolwise: Toolwise) -> None:
    found = asked(toolwise, *CALIBRATE)
    shown = [[point["threshold"], 6 * point["called"]["mean"], 6 * point["score"]["mean"]] for point in found["curve"]]
    assert shown == [[None, 0, 1], [0.75, 1, 2], [0.45, 4, 5], [0.25, 6, 6], [0.1, 6, 6]]
    assert found["chosen"]["threshold"] == 0.25
    assert list(found["tasks"]) == ["svamp"]
    table = toolwise("eval", *CALIBRATE).out
    assert "| **0.25** | 100.0 | 100.0 | 100.0 to 100.0 | +83.3 |" in table
    assert "Best by score: 0.25" in table


def test_what_was_chosen_is_kept_with_the_model_and_used(toolwise: Toolwise, tmp_path: Path) -> None:
    refused(
        toolwise("eval", "svamp", "--data", "data", "-m", "model", "--start-threshold", "chosen"),
        *("bad_input", "calibrate TASK --store"),
    )
    asked(toolwise, *CALIBRATE, "--choose", "f1", "--store")
    kept = json.loads((tmp_path / "model" / NOTE).read_text())["calling"]
    assert kept["start_threshold"] == 0.25
    assert (kept["chosen"]["rule"], kept["chosen"]["tasks"]["svamp"]["examples"]) == ("f1", 6)
    lines = asked(
        *(toolwise, "svamp", "--data", "data", "-m", "model", "--start-threshold", "chosen,0.45", "--out", "out")
    )
    assert [(line["arm"], line["score"]["mean"]) for line in lines] == [
        ("model-chosen", 1.0),
        ("model-t0.45", pytest.approx(5 / 6)),
    ]


def test_a_calibration_goes_on_where_it_was_and_knows_its_thresholds(toolwise: Toolwise, tmp_path: Path) -> None:
    whole = asked(toolwise, *CALIBRATE)
    file = tmp_path / "curve" / ANSWERS
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:2]) + '{"id"')
    assert asked(toolwise, *CALIBRATE) == whole
    refused(toolwise("eval", *CALIBRATE[:-1], "0.5"), "settings_differ")
    refused(toolwise("eval", *CALIBRATE[:-1], "2"), "bad_input", "in 0..1")
    refused(toolwise("eval", *CALIBRATE, "--choose", "best"), "bad_input", "score or f1")
    refused(toolwise("eval", "compare", "curve"), "bad_input", "answers to something else")


def test_restraint_is_an_arm_for_each_way_to_start(toolwise: Toolwise, tmp_path: Path) -> None:
    text = "The keeper of the lighthouse climbed up and down until nobody could count the steps."
    (tmp_path / "texts.txt").write_text(text)
    how = ("restraint", "texts.txt", "-m", "model", "--out", "calm", "--tokens", "40", "--top-k", "1")
    found = asked(toolwise, *how, "--start-threshold", "0")
    assert [(one["arm"], one["texts"], one["calling"]["mean"]) for one in found] == [
        ("model-k1", 1, 0.0),
        ("model-t0", 1, 1.0),
    ]
    assert "| model-t0 | 1 | 100.0 |" in toolwise("eval", *how, "--start-threshold", "0").out
    (tmp_path / "short.txt").write_text("Too short.")
    refused(toolwise("eval", "restraint", "short.txt", "-m", "model", "--out", "none"), "bad_input", "long enough")


def test_wording_asks_each_question_five_times(toolwise: Toolwise) -> None:
    (found,) = asked(
        *(toolwise, "wording", "svamp", "--data", "data", "-m", "model", "--start-threshold", "0.45", "--out", "words")
    )
    assert (found["examples"], len(found["wordings"])) == (6, 5)
    assert found["wordings"][0] == found["wordings"][0] | {"frame": "{problem} The answer is"}
    assert found["wordings"][0]["calls"]["mean"] == pytest.approx(4 / 6)
    assert found["wordings"][4]["calls"]["mean"] == 0  # this script knows no other words
    assert found["same_decision"]["mean"] == pytest.approx(2 / 6)


def test_quality_and_cost_are_made_of_the_answers_alone(toolwise: Toolwise) -> None:
    how = ("svamp", "--data", "data", "-m", "model", "--top-k", "0", "--start-threshold", "0.45", "--out", "out")
    asked(toolwise, *how)
    (found,) = asked(toolwise, "quality", "out")
    assert (found["calls"], found["used"]["mean"], found["better"]["mean"], found["worse"]["mean"]) == (4, 1, 1, 0)
    assert asked(toolwise, "quality", "out/model-t0.45", "--against", "out/model-disabled") == [found]
    prices = ("--price-call", "0.5", "--price-chosen", "1")
    disabled, called = asked(toolwise, "cost", "out", *prices)
    assert (disabled["calls"]["answer"]["mean"], called["calls"]["answer"]["mean"]) == (0, pytest.approx(4 / 6))
    assert called["money"]["right_answer"]["value"] == pytest.approx(
        (4 * 0.5 + 6 * called["chosen"]["answer"]["mean"] / 1000) / 5
    )
    assert asked(toolwise, "cost", "out", "--tools", "Calculator")[1]["money"]["answer"]["mean"] == 0
    refused(toolwise("eval", "cost", "out", "--price-call", "Search=a"), "bad_input", "not a price")
    refused(toolwise("eval", "quality", "out/model-disabled"), "bad_input", "might the model call")


def test_generate_starts_calls_at_the_threshold_that_the_model_carries(toolwise: Toolwise, tmp_path: Path) -> None:
    prompt = "A boat brings 4 candles. How many with 4 more? The answer is"

    def called(*options: str) -> bool:
        done = toolwise("generate", prompt, "-m", "model", "--json", *options)
        assert done.code == 0, done
        return "Calculator(4 + 4)" in done.out

    note = tmp_path / "model" / NOTE
    assert not called("--top-k", "1")
    note.write_text('{"calling": {"start_threshold": 0.3}}')
    assert called()
    note.write_text('{"calling": {"start_threshold": 0.5}}')
    assert not called()
    assert called("--start-threshold", "0.3")
    assert not called("--top-k", "1")
    refused(
        toolwise("generate", prompt, "-m", "model", "--top-k", "1", "--start-threshold", "0.3"),
        *("bad_input", "not both"),
    )
    note.write_text('{"calling": {}}')
    refused(toolwise("generate", prompt, "-m", "model"), "model_unavailable", "choose it again")
