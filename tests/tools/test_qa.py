"""The tool QA: what a model reads of an answer, and what becomes of questions that nobody should answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_texts import SMALL_SHARDS, write_lines

from toolwise import Call, CallContext, Principal, Registry, Result, offline_gate
from toolwise.core.errors import BadInput, ToolUnavailable
from toolwise.core.limits import LIMITS
from toolwise.core.types import Effect, Tool
from toolwise.notation.inline import read_arguments, read_body, write_body
from toolwise.tools.index import Hit, Index, build_index
from toolwise.tools.qa import Answer, make_qa, passage_of, repeats, shown


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("qa")
    build_index([write_lines(folder / "texts.jsonl")], folder / "out", limits=SMALL_SHARDS)
    return Index.open(folder / "out")


@dataclass
class ScriptedReader:
    """Says what a test wants of the first passage, and keeps what it was asked."""

    says: Callable[[Hit], str | None] = lambda hit: hit.text.split()[0]
    identity: str = "scripted"
    asked: list[tuple[str, Sequence[Hit]]] = field(default_factory=list)

    def read(self, question: str, passages: Sequence[Hit]) -> Answer | None:
        self.asked.append((question, passages))
        text = self.says(passages[0])
        return None if text is None else Answer(text, passages[0], 1.0)


def call(tool: Tool, question: Any) -> Result:
    with offline_gate(Registry([tool])) as gate:
        return gate.execute(Call("1", "QA", {"question": question}), CallContext(Principal("ann"), "run"))


def hit(text: str, title: str = "") -> Hit:
    return Hit("1", title, text, 1.0, None, None)


# What a model reads


def test_a_result_is_the_answer_and_the_title_that_it_stands_under(index: Index) -> None:
    result = call(make_qa(index, ScriptedReader(lambda hit: "a fjord")), "Where does Oslo lie?")
    assert (result.code, result.text) == ("ok", "a fjord (Oslo)")


def test_an_answer_without_a_title_stands_alone(index: Index) -> None:
    assert call(make_qa(index, ScriptedReader(lambda hit: "salt")), "What does the herring letter tell?").text == "salt"


def test_a_result_holds_no_square_bracket() -> None:
    assert shown("[sic] ->", "A [b]") == "(sic) -> (A (b))"


def test_a_title_that_steers_a_terminal_does_so_in_no_result(tmp_path: Path) -> None:
    sly = {"id": "1", "title": "Oslo\x1b[2J\u202e [x]", "text": "Herring is a fish."}
    build_index([write_lines(tmp_path / "texts.jsonl", [sly])], tmp_path / "out")
    assert call(make_qa(Index.open(tmp_path / "out"), ScriptedReader()), "herring").text == "Herring (Oslo (2J (x))"


def test_the_tool_takes_one_text_that_is_written_as_it_is(index: Index) -> None:
    tool = make_qa(index, ScriptedReader())
    assert (tool.name, tool.effect, tool.bounded) == ("QA", Effect.READ, True)
    body = write_body(tool, {"question": "Who (or what) flows?"})
    assert body == "QA(Who (or what) flows?)"
    assert read_arguments(read_body(body)[1], tool) == {"question": "Who (or what) flows?"}


def test_a_reader_gets_the_best_passages_cut_to_their_bound_and_the_question_on_one_line(index: Index) -> None:
    reader = ScriptedReader()
    call(
        make_qa(index, reader, passages=2, limits=replace(LIMITS, read_chars=20)),
        "What is\n the hilly\x07capital of Norway?",
    )
    [(question, passages)] = reader.asked
    assert question == "What is the hilly capital of Norway?"
    assert [passage.text for passage in passages] == ["Bergen is a rainy to", "Oslo is the capital "]


# No answer


@pytest.mark.parametrize("says", [None, "", " \n", "long " * 30])
def test_no_answer_and_none_that_is_one_is_a_failure_that_says_so(index: Index, says: str | None) -> None:
    result = call(make_qa(index, ScriptedReader(lambda hit: says)), "What is the capital of Norway?")
    assert result.code == "tool_failed"
    assert "give no answer to this question" in result.text


def test_a_question_without_passages_costs_no_reading(index: Index) -> None:
    reader = ScriptedReader()
    assert call(make_qa(index, reader), "Quetzalcoatlus?").code == "tool_failed"
    assert not reader.asked


def test_a_reader_that_cannot_read_says_why(index: Index) -> None:
    def fail(hit: Hit) -> str:
        raise ToolUnavailable("the reader sleeps")

    result = call(make_qa(index, ScriptedReader(fail)), "What is the capital of Norway?")
    assert (result.code, result.text) == ("tool_unavailable", "Error (tool_unavailable): the reader sleeps")


# Questions that nobody should answer


@pytest.mark.parametrize("question", ["", " ", "\x00\x1b\n", "?!", "\u200b\u202e", "🙂"])
def test_a_question_without_a_word_is_the_models_mistake(index: Index, question: str) -> None:
    reader = ScriptedReader()
    assert call(make_qa(index, reader), question).code == "invalid_arguments"
    assert not reader.asked


@pytest.mark.parametrize("question", ["who " * 10_000, "w" * 1_000_000, "\x00" * 501, "Oslo " * 101])
def test_a_question_that_is_too_long_is_refused_before_it_is_read(index: Index, question: str) -> None:
    reader = ScriptedReader()
    assert call(make_qa(index, reader), question).code in ("limit", "invalid_arguments")
    assert not reader.asked


@pytest.mark.parametrize("question", [7, None, ["Who?"], {"of": "Oslo"}])
def test_what_is_no_text_is_no_question(index: Index, question: Any) -> None:
    assert call(make_qa(index, ScriptedReader()), question).code == "invalid_arguments"


@given(st.text(max_size=60), st.text(max_size=60))
@settings(max_examples=60)
def test_whatever_is_asked_and_said_is_one_line_or_one_error(index: Index, question: str, said: str) -> None:
    result = call(make_qa(index, ScriptedReader(lambda hit: said)), f"Oslo {question}")
    assert result.code in ("ok", "tool_failed", "invalid_arguments")
    if result.ok:
        assert not set(result.text) & set("[]\n\r\u2028")
        assert len(result.text) <= LIMITS.answer_chars + LIMITS.title_chars + 3


@pytest.mark.parametrize("passages", [0, -1, LIMITS.read_passages + 1])
def test_a_number_of_passages_that_is_none_is_refused(index: Index, passages: int) -> None:
    with pytest.raises(BadInput, match="QA reads 1 to 10 passages"):
        make_qa(index, ScriptedReader(), passages=passages)


# Where an answer stands


@pytest.mark.parametrize(
    ("answer", "stands"),
    [
        *[("Black Forest", True), ("black  forest.", True), ("a Black", False), ("Forest", True), ("Fores", False)],
        *[
            ("FOREST of Germany", True),
            ("Zurich", True),
            ("Zürich", True),
            ("none", False),
            ("", False),
            ("...", False),
        ],
        ("Danube", True),
    ],
)
def test_an_answer_stands_in_a_passage_word_for_word(answer: str, stands: bool) -> None:
    passages = [hit("It rains."), hit("It rises in the Black Forest of Germany, not in Zürich.", "Danube")]
    assert passage_of(answer, passages) is (passages[1] if stands else None)


def test_the_first_passage_counts_in_which_it_stands(tmp_path: Path) -> None:
    passages = [hit("Oslo", "1"), hit("Oslo", "2")]
    assert passage_of("oslo", passages) is passages[0]


def test_an_answer_repeats_a_question_when_the_question_has_all_its_words() -> None:
    assert repeats("the Danube", "Where does THE danube rise?")
    assert not repeats("the Danube's source", "Where does the Danube rise?")
    assert not repeats("Dan", "Where does the Danube rise?")
