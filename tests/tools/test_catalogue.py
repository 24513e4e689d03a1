"""Which of many tools fit a text, and looking for others."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from toolwise.core.chat import ToolSpec
from toolwise.core.errors import BadInput, InvalidArguments, LimitExceeded, ToolFailed
from toolwise.core.types import Effect
from toolwise.tools.catalogue import FIND, Catalogue, Floats


def spec(name: str, description: str, **parameters: str) -> ToolSpec:
    properties = {key: {"type": "string", "description": said} for key, said in parameters.items()}
    return ToolSpec(name, description, {"type": "object", "properties": properties})


TOOLS = (
    spec("getWeatherForecast", "What the sky will do.", city="Name of the town."),
    spec("send_email", "Sends a message to somebody.", recipient="Who gets it."),
    spec("math.factorial", "The product of all numbers up to one.", number="A whole number."),
    spec("HTTPFetch2", "Reads a page.", url="Where it is."),
    spec("plain", ""),
)


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue(TOOLS)


def names(found: Sequence[ToolSpec]) -> list[str]:
    return [one.name for one in found]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("the weather, please", "getWeatherForecast"),
        ("forecasts", "getWeatherForecast"),
        ("send emails", "send_email"),
        ("factorial of 5", "math.factorial"),
        ("use http", "HTTPFetch2"),
        ("fetch it", "HTTPFetch2"),
        ("my recipients", "send_email"),
        ("which town?", "getWeatherForecast"),
        ("plain", "plain"),
    ],
)
def test_a_tool_is_found_by_its_name_its_description_and_its_parameters(
    catalogue: Catalogue, text: str, name: str
) -> None:
    assert names(catalogue.choose(text, 1)) == [name]


@pytest.mark.parametrize("text", ["", "   ", "...", "zyx", "\ud800", "🙂", "x" * 100_000, "a " * 100_000])
def test_a_text_that_shares_no_word_chooses_nothing(catalogue: Catalogue, text: str) -> None:
    assert [one for one in names(catalogue.choose(text, 5)) if text.strip(" a")] == []


def test_the_beginning_and_the_end_of_a_long_text_count(catalogue: Catalogue) -> None:
    filler = "lorem ipsum " * 5_000
    assert names(catalogue.choose(f"factorial {filler}", 3)) == ["math.factorial"]
    assert names(catalogue.choose(f"{filler} factorial", 3)) == ["math.factorial"]
    assert names(catalogue.choose(f"{filler} factorial {filler}", 3)) == []


def test_at_most_so_many_are_chosen_and_fewer_are_the_first_of_more(catalogue: Catalogue) -> None:
    text = "send a message about the weather, the factorial and the page"
    most = names(catalogue.choose(text, 4))
    assert len(set(most)) == 4
    for fewer in range(5):
        assert names(catalogue.choose(text, fewer)) == most[:fewer]


def test_equal_tools_stand_in_the_order_of_the_catalogue() -> None:
    same = [spec(f"tool{letter}", "does it") for letter in "cab"]
    assert names(Catalogue(same).choose("does it", 3)) == ["toolc", "toola", "toolb"]


def test_bm25_is_what_the_book_says() -> None:
    """Against the formula, term by term, on random words."""
    draw = random.Random(1)
    words = [f"word{letter}" for letter in "abcdefghij"]
    tools = [spec(f"n{number}", " ".join(draw.choices(words, k=draw.randint(1, 12)))) for number in range(30)]
    texts = [[f"n{number}"[0], str(number), *one.description.split()] for number, one in enumerate(tools)]
    mean = sum(map(len, texts)) / len(texts)

    def score(query: list[str], text: list[str]) -> float:
        total, times = 0.0, {term: sum(term in other for other in texts) for term in query}
        rare = {term for term, holding in times.items() if holding * 2 <= len(texts)}
        for term in rare or set(query):
            holding = times[term]
            tf, idf = text.count(term), np.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            total += idf * tf / (tf + 1.5 * (1 - 0.75 + 0.75 * len(text) / mean))
        return float(total)

    for _ in range(20):
        query = draw.choices(words, k=3)
        found = names(Catalogue(tools).choose(" ".join(query), 30))
        scores = {one.name: score(query, text) for one, text in zip(tools, texts, strict=True)}
        assert {name for name, value in scores.items() if value > 0} == set(found)
        got = [scores[name] for name in found]
        assert got == pytest.approx(sorted(got, reverse=True), rel=1e-5)


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(BadInput, match=r"Two tools are called .plain."):
        Catalogue([*TOOLS, spec("plain", "another")])


@pytest.mark.parametrize("tools", [(), (ToolSpec("x", "", {}),), (ToolSpec("_", "", {"properties": [1]}),)])
def test_a_catalogue_may_be_empty_or_say_nothing(tools: tuple[ToolSpec, ...]) -> None:
    assert Catalogue(tools).choose("anything", 3) == ()


class Near:
    """Says that a query about storms is near the weather, and all else near nothing."""

    def vectors(self, texts: Sequence[str], *, query: bool = False) -> Floats:
        return np.array([[float("storm" in t or "Weather" in t.replace(" ", "")), 0.1] for t in texts], np.float32)


def test_an_encoder_finds_what_shares_no_word_and_takes_nothing_away() -> None:
    catalogue = Catalogue(TOOLS, Near())
    assert names(catalogue.choose("stormy", 1)) == ["getWeatherForecast"]
    assert set(names(catalogue.choose("stormy, and my email", 2))) == {"getWeatherForecast", "send_email"}
    assert Catalogue(TOOLS).choose("stormy", 1) == ()
    assert catalogue.choose("  ", 3) == ()


def test_find_tools_answers_a_line_a_tool(catalogue: Catalogue) -> None:
    finder = catalogue.finder(2)
    assert (finder.name, finder.effect, finder.bounded) == (FIND, Effect.PURE, True)
    assert finder.run(query="email") == "send_email: Sends a message to somebody."
    both = catalogue.find("email about the weather", 2).splitlines()
    assert sorted(both) == [
        "getWeatherForecast: What the sky will do.",
        "send_email: Sends a message to somebody.",
    ]


def test_what_a_description_holds_cannot_make_a_second_line_or_steer_a_terminal() -> None:
    evil = spec("evil", "first\x1b[31m\u2028second\nthird " + "x" * 1_000)
    said = Catalogue([evil]).find("evil", 1)
    assert len(said.splitlines()) == 1
    assert "\x1b" not in said
    assert len(Catalogue([spec("evil", "x" * 1_000)]).find("evil", 1)) < 220


def test_find_tools_refuses_what_cannot_be_looked_for(catalogue: Catalogue) -> None:
    with pytest.raises(InvalidArguments):
        catalogue.find("  ", 2)
    with pytest.raises(LimitExceeded):
        catalogue.find("x" * 1_001, 2)
    with pytest.raises(ToolFailed, match="no tool fits"):
        catalogue.find("zyx", 2)
