"""Calling against need: a sweep over thresholds gives what decoding with each of them would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tiny_models import network, tokenizer
from toolwise.core.errors import BadInput
from toolwise.decode.engine import DecodeSettings
from toolwise.evals.answers import Row
from toolwise.evals.asking import Asking, ask
from toolwise.evals.calibration import answer_at, checked, choose, curve, needs_call, sweep
from toolwise.evals.run import Way, draw, gates, run
from toolwise.evals.tasks import Example, data_source, named
from toolwise.models.base import Floats, LanguageModel
from toolwise.models.hf import HFModel
from toolwise.models.scripted import Script, ScriptedModel, follow
from toolwise.models.tokenizers import HFTokenizer
from toolwise.models.toolbox import toolbox
from toolwise.notation.segments import Ids

BOX = toolbox(("Calculator",))
(ASDIV,) = named(["asdiv"])
THRESHOLDS = (0.0, 0.001, 0.01, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)


class Hesitant(ScriptedModel):
    """A script, but the marker's probability is another one behind each text."""

    def _next(self, ids: Ids) -> Floats:
        row = super()._next(ids)
        share = (sum(ids) % 97 + 1) / 120 if ids[-1] != self.tokenizer.encode(" [")[0] else 1e-6
        marker = self.tokenizer.encode(" [")[0]
        row += np.float32(np.log(1 - share) - np.log(np.exp(np.delete(row, marker)).sum()))
        row[marker] = np.log(share)
        return row


SUM = follow((" [", "Calculator(7 + 2) ->"), ("-> 9]", " 9 lamps, yes."), ("answer is", " about eight lamps or so."))
BRACKETS = follow((" [", "1] or"), ("answer is", " eight lamps or 9."))
SPELLED: Script = lambda text: tuple(b" [Calculator(1 + 1) ->") if text.endswith("is") else ""  # noqa: E731


@pytest.fixture(scope="module")
def tiny() -> LanguageModel:
    return HFModel(network(), HFTokenizer(tokenizer()), name="tiny", fingerprint="tiny")


def told(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("written", "text", "calls", "right", "read", "stop", "sampled", "fed")}


def example(prompt: str) -> Example:
    return Example("a1", prompt, ("9",))


@pytest.mark.parametrize("max_calls", [1, 2])
@pytest.mark.parametrize("script", [SUM, BRACKETS, SPELLED, None])
def test_a_sweep_is_what_decoding_with_each_threshold_gives(
    tiny: LanguageModel, script: Script | None, max_calls: int
) -> None:
    model = tiny if script is None else Hesitant(script)
    task, decode = replace(ASDIV, max_tokens=24), DecodeSettings(max_calls=max_calls)
    with gates(BOX, [task]) as opened:
        for number in range(5):
            asked = example(f"{number} lamps. The answer is")
            how = (model, asked, task, opened["asdiv"])
            row = sweep(*how, Asking(decode, "2023"), f"{number}", THRESHOLDS)
            for threshold in THRESHOLDS:
                alone = Asking(replace(decode, start_threshold=threshold), "2023")
                assert told(answer_at(row, threshold)) == told(ask(*how, alone, f"{number} {threshold}")), threshold
            disabled = Asking(replace(decode, enabled=False), "2023")
            assert told(answer_at(row, None)) == told(ask(*how, disabled, f"{number} disabled"))


def test_what_answers_have_in_common_is_computed_once() -> None:
    with gates(BOX, [ASDIV]) as opened:
        row = sweep(
            Hesitant(SUM), example("3. The answer is"), ASDIV, opened["asdiv"], Asking(DecodeSettings(), "2023"), "r"
        )
    answers = [row["disabled"], *row["enabled"]]
    assert len(answers) > 2
    assert row["computed"] < sum(answer["sampled"] for answer in answers)


def row_of(id_: str, disabled: bool, *spans: tuple[float | None, float | None, bool, bool]) -> Row:
    """A row by hand; a span is (above, up_to, right, called)."""
    enabled = [
        {"above": above, "up_to": up_to, "right": right, "calls": [{}] if called else []}
        for above, up_to, right, called in spans
    ]
    return {"id": id_, "task": "asdiv", "disabled": {"right": disabled, "calls": []}, "enabled": enabled}


ROWS = [
    row_of("needed", False, (0.3, None, False, False), (None, 0.3, True, True)),
    row_of("needed more", False, (0.6, None, False, False), (None, 0.6, True, True)),
    row_of("harmful", True, (0.3, None, True, False), (None, 0.3, False, True)),
    row_of("useless", False, (0.05, None, False, False), (None, 0.05, False, True)),
]


def test_the_curve_says_how_often_it_called_and_how_often_that_was_needed() -> None:
    assert [needs_call(row) for row in ROWS] == [True, True, False, False]
    disabled, high, middle, low = curve(ROWS, (0.01, 0.2, 0.5))
    assert (disabled.called.mean, disabled.score.mean, disabled.precision, disabled.calls_per_right) == (
        0,
        0.25,
        None,
        0,
    )
    assert disabled.recall is not None
    assert disabled.recall.mean == 0
    assert high.precision is not None
    assert high.recall is not None
    assert high.f1 == pytest.approx(2 / 3)
    assert (high.called.mean, high.score.mean, high.precision.mean, high.recall.mean) == (0.25, 0.5, 1.0, 0.5)
    assert middle.precision is not None
    assert middle.recall is not None
    assert middle.harmed == pytest.approx(1 / 3)
    assert (middle.called.mean, middle.score.mean, middle.gain.mean) == (0.75, 0.5, 0.25)
    assert (middle.precision.mean, middle.recall.mean) == (pytest.approx(2 / 3), 1.0)
    assert (low.calls, low.calls_per_right) == (4, 2.0)


def test_of_equally_good_thresholds_the_one_with_fewer_calls_is_chosen() -> None:
    assert choose(ROWS, (0.01, 0.2, 0.5), "score").threshold == 0.5
    assert choose(ROWS, (0.01, 0.2, 0.5), "f1").threshold == 0.2
    assert choose(ROWS, (0.01, 0.02), "score").threshold == 0.02


def test_a_rule_is_judged_on_questions_that_it_did_not_choose_on() -> None:
    rows = [row_of(str(n), n % 2 == 0, (0.5, None, n % 2 == 0, False), (None, 0.5, n % 2 == 1, True)) for n in range(8)]
    found = choose(rows, (0.1, 0.9), "score")
    assert found.held_out is not None
    assert found.held_out.mean == 0  # each half wants what is wrong for the other


def test_a_threshold_that_was_not_asked_at_is_refused() -> None:
    row = row_of("gap", False, (0.5, 0.7, False, False))
    assert answer_at(row, 0.6) is row["enabled"][0]
    for threshold in (0.5, 0.71):
        with pytest.raises(BadInput, match="Nothing was asked"):
            answer_at(row, threshold)
    with pytest.raises(BadInput):
        checked([0.1, 1.1])
    with pytest.raises(BadInput, match="no questions"):
        curve([], [0.1])


def test_many_questions_are_swept_together_and_a_killed_run_goes_on(tiny: LanguageModel, tmp_path: Path) -> None:
    examples = tuple(replace(example(f"{n} lamps. The answer is"), id=str(n)) for n in range(12))
    task, way = replace(ASDIV, max_tokens=16), Way(DecodeSettings(), "2023", at_once=6)
    questions = replace(draw([], data_source("."), None, 0), tasks=(task,), drawn={"asdiv": examples})
    swept = partial(sweep, thresholds=THRESHOLDS)

    def rows(out: Path, way: Way) -> list[Row]:
        with gates(BOX, [task]) as opened:
            found = run(out, {}, questions, lambda: tiny, opened, way, ask=swept)
        return [
            {key: value for key, value in row.items() if key not in ("seconds", "computed", "enabled")} for row in found
        ]

    assert rows(tmp_path / "many", way) == rows(tmp_path / "one", replace(way, at_once=1))
    file = tmp_path / "many" / "answers.jsonl"
    whole = file.read_text()
    file.write_text(whole[:-20])
    rows(tmp_path / "many", way)
    assert file.read_text().splitlines()[:-1] == whole.splitlines()[:-1]
