"""BFCL over chat models whose answers are known, on questions of our own in its shape."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolwise.core.chat import ChatCall, ChatDelta, ChatReply, ChatRequest, StopReason, ToolSpec, pieces
from toolwise.core.errors import BadInput, ModelUnavailable, SettingsDiffer
from toolwise.core.schema import Validator
from toolwise.evals.answers import ANSWERS, answers
from toolwise.evals.bfcl import CATEGORIES, Asking, Example, bfcl_checker, judged, lines, package, run, sample, table
from toolwise.evals.bfcl.data import digests, read, tool_spec
from toolwise.evals.bfcl.judge import Calls
from toolwise.models.scripted_chat import ScriptedChat

SUM = {
    "name": "math.sum",
    "description": "Adds.",
    "parameters": {
        "type": "dict",
        "properties": {
            "numbers": {"type": "array", "items": {"type": "float"}, "description": "What is added."},
            "round": {"type": "tuple", "items": {"type": "integer"}},
            "how": {"type": "dict", "properties": {"exact": {"type": "boolean"}}},
            "note": {"type": "any", "default": "none"},
        },
        "required": ["numbers"],
    },
}
SUM_TOO = {**SUM, "name": "math_sum", "description": "Adds differently."}
JAVA = {
    "name": "Box.fill",
    "description": "Fills a box.",
    "parameters": {
        "type": "dict",
        "properties": {
            "sizes": {"type": "ArrayList", "items": {"type": "long"}, "description": "Of each."},
            "what": {"type": "any", "description": "Goes in."},
        },
        "required": ["sizes", "what"],
    },
}
ONE, TWO = {"numbers": [[1.5, 2.5]]}, {"numbers": [[3]]}


def question(number: int, category: str, text: str, functions: list[Any], *right: Any) -> dict[str, Any]:
    """`text` is what the scripted model is told to do."""
    asked = {"id": f"{category}_{number}", "question": [[{"role": "user", "content": text}]], "function": functions}
    return asked | ({"ground_truth": list(right)} if right else {})


QUESTIONS = {
    "simple_python": [
        question(0, "simple_python", 'call math_sum {"numbers": [1.5, 2.5]}', [SUM], {"math.sum": ONE}),
        question(1, "simple_python", 'call math_sum {"numbers": [3]}', [SUM], {"math.sum": TWO}),
    ],
    "simple_java": [
        question(
            *(0, "simple_java", 'call Box_fill {"sizes": "new ArrayList<>(Arrays.asList(1L))", "what": "tea"}', [JAVA]),
            {"Box.fill": {"sizes": [[1]], "what": ["tea"]}},
        )
    ],
    "parallel": [
        question(
            *(0, "parallel", 'call math_sum {"numbers": [3]}\ncall math_sum {"numbers": [1.5, 2.5]}', [SUM]),
            *({"math.sum": ONE}, {"math.sum": TWO}),
        )
    ],
    "irrelevance": [question(number, "irrelevance", "Tell me a joke.", [SUM]) for number in range(3)],
    "live_relevance": [question(0, "live_relevance", "call math_sum {}", [SUM])],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder like that of BFCL's package, without its checker."""
    folder = tmp_path / "bfcl_eval" / "data"
    (folder / "possible_answer").mkdir(parents=True)
    for category, asked in QUESTIONS.items():
        told = [{key: value for key, value in one.items() if key != "ground_truth"} for one in asked]
        right = [{"id": one["id"], "ground_truth": one["ground_truth"]} for one in asked if "ground_truth" in one]
        name = f"BFCL_v4_{category}.json"
        (folder / name).write_text("\n".join(map(json.dumps, told)))
        if right:
            (folder / "possible_answer" / name).write_text("\n".join(map(json.dumps, right)))
    return folder


def exact(example: Example, calls: Calls) -> str:
    """A checker as plain as it can be: every call is one of those that are right, whatever their order."""
    wanted = [
        (name, json.dumps({k: v[0] for k, v in of.items()}))
        for one in example.answers or ()
        for name, of in one.items()
    ]
    made = [(name, json.dumps(arguments)) for call in calls for name, arguments in call.items()]
    return "" if sorted(made) == sorted(wanted) else "other calls"


class Always:
    """One reply, or one error, to everything."""

    name = "always"

    def __init__(self, reply: ChatReply | Exception) -> None:
        self.reply_, self.asked = reply, 0

    def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
        self.asked += 1
        if isinstance(self.reply_, Exception):
            raise self.reply_
        yield from pieces(self.reply_)


DEAD = Always(ModelUnavailable("Nobody is there."))


def asked(
    data: Path, out: Path, model: Any, categories: tuple[str, ...] = ("simple_python", "parallel", "irrelevance")
) -> Any:
    return run(out, {}, sample(data, categories, None, 0), lambda: model, exact, Asking())


def shares(rows: Any) -> Mapping[str, float]:
    return {line.category: line.right for line in lines(rows)}


def test_a_perfect_model_gets_everything_right(data: Path, tmp_path: Path) -> None:
    """Names with a point go over the wire under another one, and come back."""
    rows = asked(data, tmp_path / "out", ScriptedChat(), ("simple_python", "parallel", "irrelevance", "live_relevance"))
    assert shares(rows) == {"simple_python": 1.0, "parallel": 1.0, "irrelevance": 1.0, "live_relevance": 1.0}
    assert [row["why"] for row in rows] == [""] * 7


def test_a_model_that_says_nothing_is_right_only_where_nothing_is_to_be_called(data: Path, tmp_path: Path) -> None:
    rows = asked(
        data, tmp_path / "out", Always(ChatReply()), ("simple_python", "parallel", "irrelevance", "live_relevance")
    )
    assert shares(rows) == {"simple_python": 0.0, "parallel": 0.0, "irrelevance": 1.0, "live_relevance": 0.0}


def test_a_dead_server_is_right_nowhere_and_its_failures_are_counted_apart(data: Path, tmp_path: Path) -> None:
    rows = asked(data, tmp_path / "out", DEAD)
    assert shares(rows) == {"simple_python": 0.0, "parallel": 0.0, "irrelevance": 0.0}
    assert [line.failed for line in lines(rows)] == [2, 1, 3]
    assert {row["failed"] for row in rows} == {"model_unavailable"}


def test_what_got_no_answer_is_asked_again_and_nothing_else_is(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked(data, out, Always(BadInput("no")), ("irrelevance",))
    silent = Always(ChatReply("No tool fits."))
    assert shares(asked(data, out, silent, ("irrelevance",))) == {"irrelevance": 1.0}
    assert silent.asked == 3
    assert shares(asked(data, out, DEAD, ("irrelevance",))) == {"irrelevance": 1.0}


def test_a_run_that_was_killed_goes_on_behind_its_last_whole_line(data: Path, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    rows = asked(data, whole, ScriptedChat())
    asked(data, cut, ScriptedChat())
    text = (cut / ANSWERS).read_bytes()
    (cut / ANSWERS).write_bytes(text[: len(text) // 2])
    assert 0 < len(list(answers(cut))) < len(rows)
    assert asked(data, cut, ScriptedChat()) == rows
    assert (cut / ANSWERS).read_text() == (whole / ANSWERS).read_text()


def test_a_folder_of_other_settings_is_refused(data: Path, tmp_path: Path) -> None:
    examples = sample(data, ("irrelevance",), None, 0)
    run(tmp_path / "out", {"strict": "never"}, examples, ScriptedChat, exact, Asking())
    with pytest.raises(SettingsDiffer, match="strict"):
        run(tmp_path / "out", {"strict": "always"}, examples, ScriptedChat, exact, Asking())


def test_many_at_once_give_the_same(data: Path, tmp_path: Path) -> None:
    examples = sample(data, ("simple_python", "irrelevance"), None, 0)
    one = run(tmp_path / "one", {}, examples, ScriptedChat, exact, Asking())
    assert run(tmp_path / "many", {}, examples, ScriptedChat, exact, Asking(at_once=4)) == one


def test_an_answer_is_kept_with_all_that_led_to_it(data: Path, tmp_path: Path) -> None:
    (row,) = asked(data, tmp_path / "out", Always(ChatReply("Hm.")), ("live_relevance",))
    assert row["prompt"] == [{"role": "user", "text": "call math_sum {}"}]
    assert row["tools"][0]["name"] == "math.sum"
    assert row["reply"] | {"usage": 0} == {"text": "Hm.", "calls": [], "stop": "end", "usage": 0}
    assert (row["right"], row["why"], row["failed"]) == (False, "no call", None)


def made(*calls: tuple[str, str], stop: StopReason = StopReason.CALLS, complete: bool = True) -> ChatReply:
    return ChatReply("", tuple(ChatCall("1", name, said, complete) for name, said in calls), stop)


GOOD = ("math.sum", '{"numbers": [1.5, 2.5]}')


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (made(GOOD), ""),
        (made(), "no call"),
        (made(GOOD, GOOD), "other calls"),
        (made(("math.sum", '{"numbers": [1.5, 2.5}')), "a call that cannot be read"),
        (made(("math.sum", '{"numbers": [1.5, 2.5], "numbers": []}')), "a call that cannot be read"),
        (made(("math.sum", "[1]")), "a call that cannot be read"),
        (made(("", "math.sum(1.5, 2)")), "a call that cannot be read"),
        (made(GOOD, complete=False), "a call that cannot be read"),
        (made(GOOD, stop=StopReason.LENGTH), "calls in a turn that ended with length"),
        (made(GOOD, stop=StopReason.REFUSED), "calls in a turn that ended with refused"),
    ],
)
def test_only_what_would_be_executed_counts_as_a_call(data: Path, reply: ChatReply, why: str) -> None:
    example = next(one for one in read(data, "simple_python") if one.id.endswith("0"))
    found = judged(example, reply, exact)
    assert (found.right, found.why) == (not why, why)
    idle = replace(example, category="irrelevance", answers=None)
    assert judged(idle, reply, exact).right == (why not in ("", "other calls"))


def test_types_are_those_of_json_schema(data: Path) -> None:
    parameters = tool_spec(SUM).parameters
    kinds = {name: part["type"] for name, part in parameters["properties"].items()}
    assert kinds == {"numbers": "array", "round": "array", "how": "object", "note": "string"}
    assert parameters["properties"]["numbers"]["items"]["type"] == "number"
    validator = Validator(parameters)
    validator.validate({"numbers": [1.5, 2.5], "how": {"exact": True}})
    assert SUM["parameters"]["type"] == "dict"  # the data is left as it is, since the checker reads it


def test_of_java_every_parameter_is_a_text_that_says_what_it_is_the_text_of() -> None:
    spec = tool_spec(JAVA, "java")
    assert spec.description == "Fills a box. Note that the provided function is in Java 8 SDK syntax."
    sizes = spec.parameters["properties"]["sizes"]
    assert sizes == {
        "type": "string",
        "description": "Of each. This is Java ArrayList type parameter in string representation."
        " The list elements are of type long; they are not in string representation.",
    }


def test_two_names_that_differ_in_a_point_are_told_apart(data: Path, tmp_path: Path) -> None:
    """`math.sum` and `math_sum` in one request: the second keeps its name, and each comes back as it was."""
    sent: list[tuple[str, ...]] = []

    class First:
        name = "first"

        def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
            sent.append(tuple(tool.name for tool in request.tools))
            yield from pieces(made((request.tools[0].name, '{"numbers": [1.5, 2.5]}')))

    example = read(data, "simple_python")[0]
    both = replace(example, functions=[SUM, SUM_TOO])
    (row,) = run(tmp_path / "out", {}, [both], First, exact, Asking())
    assert row["right"]
    assert sent[0][1] == "math_sum" != sent[0][0]
    assert "." not in sent[0][0]


def test_a_sample_is_the_same_for_a_seed_and_a_smaller_one_begins_it(data: Path) -> None:
    categories = ("irrelevance", "simple_python")
    ids = [[one.id for one in sample(data, categories, most, 7)] for most in (1, 2, None)]
    assert [len(one) for one in ids] == [2, 4, 5]
    assert ids[2][:4] == ids[1]
    assert ids[1][:2] == ids[0]
    assert len({tuple(one.id for one in sample(data, ("irrelevance",), None, seed)) for seed in range(20)}) > 1


@pytest.mark.parametrize("line", ["{}", '{"id": "a"}', '{"id": "a", "question": [], "function": []}', "[]", "{"])
def test_data_of_another_shape_is_refused_with_its_place(data: Path, line: str) -> None:
    (data / "BFCL_v4_irrelevance.json").write_text(line)
    with pytest.raises(BadInput, match=r"BFCL_v4_irrelevance\.json"):
        read(data, "irrelevance")


def test_unknown_categories_and_folders_are_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="simple_python"):
        read(data, "simple")
    with pytest.raises(BadInput, match="bfcl_eval"):
        digests(tmp_path, ("irrelevance",))
    with pytest.raises(BadInput, match="no checker"):
        bfcl_checker(data.parent)


@pytest.mark.parametrize(
    ("reply", "began", "fit"),
    [
        (made(GOOD), 2, 2),
        (made(), 0, 0),
        (made(("math.sum", '{"numbers": "many"}')), 2, 0),
        (made(("math.sum", "{}")), 2, 0),
        (made(("math.sub", "{}")), 2, 0),
        (made(("math.sum", "[]")), 2, 0),
        (made(GOOD, ("", "math.sum(")), 2, 0),
        (made(GOOD, stop=StopReason.LENGTH), 2, 0),
    ],
)
def test_calls_that_fit_are_counted_whether_they_are_right_or_not(
    data: Path, tmp_path: Path, reply: ChatReply, began: int, fit: int
) -> None:
    (line,) = lines(asked(data, tmp_path / "out", Always(reply), ("simple_python",)))
    assert (line.began, line.fit) == (began, fit)


def test_the_table_has_a_line_for_each_category_that_was_asked(data: Path, tmp_path: Path) -> None:
    shown = table(asked(data, tmp_path / "out", DEAD)).splitlines()
    assert [line.split(" | ")[0] for line in shown[2:]] == ["| simple_python", "| parallel", "| irrelevance"]
    assert shown[2] == "| simple_python | 2 | 0.0% | 0.0% to 0.0% | 2 | 0 | 0 | 0 |"


@pytest.fixture(scope="module")
def real() -> Path:
    """BFCL's own package, where it is installed."""
    pytest.importorskip("bfcl_eval", reason="pip install --no-deps bfcl-eval==2026.3.23")
    return package(None)


def test_bfcls_own_checker_agrees_on_questions_of_ours(real: Path, data: Path, tmp_path: Path) -> None:
    categories = ("simple_python", "simple_java", "parallel", "irrelevance")
    examples = sample(data, categories, None, 0)
    rows = run(tmp_path / "out", {}, examples, ScriptedChat, bfcl_checker(real), Asking())
    assert set(shares(rows).values()) == {1.0}
    wrong = Always(made(("math_sum", '{"numbers": [9]}')))
    rows = run(tmp_path / "wrong", {}, examples, lambda: wrong, bfcl_checker(real), Asking())
    assert set(shares(rows).values()) == {0.0}
    assert any(row["why"].startswith("value_error:list/tuple: Invalid value for parameter 'numbers'") for row in rows)


def test_bfcls_own_answers_are_right_to_its_own_checker(real: Path) -> None:
    """The first right value of every parameter, asked of all the data that comes with it."""
    check, wrong, asked = bfcl_checker(real), 0, 0
    for category in CATEGORIES:
        for example in read(real / "data", category):
            assert all(isinstance(tool, ToolSpec) for tool in example.tools)
            if example.answers is None or example.language != "python":
                continue
            asked += 1
            wrong += bool(check(example, [_first(answer) for answer in example.answers]))
    assert asked > 2_000
    assert wrong / asked < 0.02, wrong


def _first(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """An empty text stands first where a parameter may be left out, and alone where it is the value."""
    return {
        name: {key: _plain(values[0]) for key, values in parameters.items() if values and values != ["", *values[1:]]}
        for name, parameters in answer.items()
    }


def _plain(value: Any) -> Any:
    """Inside a right value that is an object, each part has right values of its own."""
    if isinstance(value, dict):
        parts = {key: part if isinstance(part, list) else [part] for key, part in value.items()}
        return {key: _plain(part[0]) for key, part in parts.items() if part and part[0] != ""}
    return [_plain(part) for part in value] if isinstance(value, list) else value
