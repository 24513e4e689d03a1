"""Questions asked of scripted models, and of a small network many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from task_files import write_task_files
from tiny_models import network, tokenizer
from toolwise.core.errors import BadInput
from toolwise.decode.engine import DecodeSettings
from toolwise.evals.answers import Row
from toolwise.evals.asking import Asking, ask
from toolwise.evals.run import Way, draw, gates, run, run_settings, with_room
from toolwise.evals.tasks import Example, Task, data_source, named
from toolwise.models.base import LanguageModel
from toolwise.models.hf import HFModel
from toolwise.models.scripted import Script, ScriptedModel, ScriptedTokenizer, follow
from toolwise.models.tokenizers import HFTokenizer
from toolwise.models.toolbox import Toolbox, toolbox

GREEDY = DecodeSettings(start_top_k=1)
BOX = toolbox(("Calculator", "Calendar"))
(ASDIV,) = named(["asdiv"])


def written(script: Script, example: Example, task: Task = ASDIV, box: Toolbox = BOX, **decode: Any) -> Row:
    """The row of one example that a script answers."""
    with gates(box, [task]) as opened:
        asking = Asking(replace(GREEDY, **decode), "2023-01-30")
        return ask(ScriptedModel(script), example, task, opened[task.name], asking, "answer-1")


def sum_of(id_: str = "a1", prompt: str = "The answer is", answer: str = "9") -> Example:
    return Example(id_, prompt, (answer,), {"type": "sum"})


def test_a_row_tells_the_whole_answer() -> None:
    script = follow(("answer is", " [Calculator(7 + 2) ->"), ("-> 9]", " 9 lamps.\nAnd then"))
    row = written(script, sum_of())
    assert row | {"seconds": 0} == {
        **{"id": "a1", "task": "asdiv", "prompt": "The answer is", "answers": ["9"], "about": {"type": "sum"}},
        **{"written": " [Calculator(7 + 2) -> 9] 9 lamps.\nA", "text": " 9 lamps.\nA", "right": True, "read": "9"},
        "calls": [{"body": "Calculator(7 + 2)", "name": "Calculator", "at": 0, "result": "9", "code": None}],
        **{"stop": "enough", "sampled": row["sampled"], "fed": row["fed"], "seconds": 0},
    }
    assert 0 < row["sampled"] < row["fed"]


def test_decoding_ends_where_no_more_text_can_change_the_verdict() -> None:
    row = written(follow(("answer is", " 9 lamps. " + "And so on. " * 8)), sum_of())
    assert (row["right"], row["stop"], row["text"]) == (True, "enough", " 9 lamps. A")
    row = written(follow(("answer is", " 9 lamps = 8.")), sum_of())
    assert (row["right"], row["read"], row["stop"]) == (False, "8", "end")


def test_a_number_that_was_cut_off_is_not_read_and_one_that_the_model_ended_is() -> None:
    assert written(follow(("answer is", " 9")), sum_of())["right"]
    row = written(follow(("answer is", " nine or " * 11 + "9")), sum_of())
    assert (row["stop"], row["right"], row["read"]) == ("length", False, None)


def test_a_call_that_fails_or_is_broken_off_is_told_with_its_code() -> None:
    row = written(follow(("answer is", " [Calculator(7 + ) ->"), ("]", " 9.")), sum_of())
    (call,) = row["calls"]
    assert (call["name"], call["code"]) == ("Calculator", "invalid_arguments")
    assert call["result"] in row["written"]
    row = written(follow(("answer is", " 9 [Calculator(7 +")), sum_of())
    assert [(call["at"], call["code"]) for call in row["calls"]] == [(2, "truncated_call")]
    assert (row["written"], row["text"], row["right"]) == (" 9 [Calculator(7 +", " 9", True)


def test_disabled_calls_are_not_made_and_their_text_is_not_run() -> None:
    row = written(follow(("answer is", " [Calculator(7 + 2) ->"), ("", " 9.")), sum_of(), enabled=False)
    assert row["calls"] == []


@pytest.mark.parametrize(("today", "said"), [("2020-02-29", "Saturday, February 29, 2020"), (None, "January 30, 2023")])
def test_the_calendar_says_the_examples_own_day(today: str | None, said: str) -> None:
    script = follow(("answer is", " [Calendar() ->"), ("]", " 9."))
    (call,) = written(script, replace(sum_of(), today=today))["calls"]
    assert said in call["result"]


def test_a_task_has_those_tools_off_that_hold_its_answers() -> None:
    (nq,) = named(["nq"])
    without = replace(nq, without=("Calculator",))
    script = follow(("answer is", " [Calculator(7 + 2) ->"), ("]", " 9."))
    (call,) = written(script, sum_of(), without)["calls"]
    assert call["code"] == "unknown_tool"


class Known:
    """A script that writes what it knows of each prompt."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def __call__(self, text: str) -> str:
        prompt = max((one for one in self._texts if text.startswith(one)), key=len)
        said = self._texts[prompt]
        return said[len(text) - len(prompt) :] if said.startswith(text[len(prompt) :]) else ""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return write_task_files(folder)


NAMES = ("asdiv", "svamp", "mawps", "lama", "nq", "triviaqa", "templama", "xquad", "date-understanding")


def rows_of(data: Path, out: Path, text: str, at_once: int = 4, names: Sequence[str] = NAMES) -> list[Row]:
    tasks, way = named(names), Way(GREEDY, "2023-01-30", at_once=at_once)
    questions = draw(tasks, data_source(str(data)), None, 0)
    model = ScriptedModel(Known({example.prompt: text.format(example.answers[0]) for _, example in questions}))
    with gates(BOX, tasks) as opened:
        return run(out, run_settings("m", BOX, questions, way), questions, lambda: model, opened, way)


def timeless(rows: Sequence[Row]) -> list[Row]:
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def test_a_perfect_model_gets_all_of_every_task_and_an_empty_one_none(data: Path, tmp_path: Path) -> None:
    assert all(row["right"] for row in rows_of(data, tmp_path / "perfect", " {}.\nAnd so on. And on."))
    assert not any(row["right"] for row in rows_of(data, tmp_path / "empty", ""))


def test_rows_are_the_same_however_many_are_asked_at_a_time(data: Path, tmp_path: Path) -> None:
    one = rows_of(data, tmp_path / "one", " {}.\nAnd", at_once=1)
    many = rows_of(data, tmp_path / "many", " {}.\nAnd", at_once=16)
    assert timeless(one) == timeless(many)


@pytest.fixture(scope="module")
def small() -> LanguageModel:
    """A network of random weights, which writes nonsense: the same one, alone and in company."""
    return HFModel(network(), HFTokenizer(tokenizer()), name="tiny", fingerprint="tiny")


def small_rows(model: LanguageModel, out: Path, at_once: int, calls: bool) -> list[Row]:
    examples = [sum_of(str(n), f"{'Ann has hats. ' * (n % 5)}Tom has {n} hats. The answer is") for n in range(24)]
    decode = DecodeSettings(start_top_k=300 if calls else 1)
    task, way = replace(ASDIV, max_tokens=24), Way(decode, "2023-01-30", strict=calls, at_once=at_once)
    questions = replace(draw([], data_source("."), None, 0), tasks=(task,), drawn={"asdiv": tuple(examples)})
    with gates(BOX, [task]) as opened:
        return run(out, {}, questions, lambda: model, opened, way)


@pytest.mark.parametrize("calls", [False, True])
def test_a_network_answers_in_company_as_it_does_alone(small: LanguageModel, tmp_path: Path, calls: bool) -> None:
    alone = small_rows(small, tmp_path / "alone", 1, calls)
    before = small.usage.forwards
    many = small_rows(small, tmp_path / "many", 12, calls)
    assert timeless(alone) == timeless(many)
    assert len({row["written"] for row in alone}) > 1
    assert all(row["calls"] for row in alone) == calls
    assert small.usage.forwards - before < sum(row["sampled"] for row in many) / 2


def test_a_question_without_room_in_the_model_is_wrong_and_says_so(small: LanguageModel, tmp_path: Path) -> None:
    longest = 2_048
    with gates(BOX, [ASDIV]) as opened:
        asking = Asking(GREEDY, "2023-01-30")
        row = ask(small, sum_of(prompt="x" * (longest + 1)), ASDIV, opened["asdiv"], asking, "answer-1")
        assert (row["right"], row["stop"], row["sampled"]) == (False, "too_long", 0)
        with pytest.raises(BadInput):
            ask(small, sum_of(prompt=""), ASDIV, opened["asdiv"], asking, "answer-2")


def test_a_marker_that_is_not_one_token_is_refused_before_the_first_question(data: Path, tmp_path: Path) -> None:
    tasks, way = named(["asdiv"]), Way(GREEDY, "2023-01-30")
    questions = draw(tasks, data_source(str(data)), None, 0)
    model = ScriptedModel(follow(), ScriptedTokenizer(pieces=("]",)))
    with gates(BOX, tasks) as opened, pytest.raises(BadInput, match="one token"):
        run(tmp_path / "out", {}, questions, lambda: model, opened, way)


def test_long_questions_are_asked_fewer_at_a_time(data: Path) -> None:
    tasks, way = named(["asdiv"]), Way(GREEDY, "2023-01-30", at_once=16)
    questions = draw(tasks, data_source(str(data)), None, 0)
    assert with_room(way, questions, ScriptedTokenizer()).at_once == 16
    assert with_room(way, questions, ScriptedTokenizer(), held=1_000).at_once == 2
    assert with_room(way, questions, ScriptedTokenizer(), held=10).at_once == 1
