"""Rules: what is a number, which passages are tried, which calls look ahead."""

from __future__ import annotations

import time
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from word_tokenizer import Words

from toolwise.core.errors import BadInput
from toolwise.teach.corpus.numbers import numbers
from toolwise.teach.corpus.rules import always, calculator, calendar, rule_named
from toolwise.teach.records import Passage


def passage(text: str, id: str = "d#0", date: str | None = None) -> Passage:
    return Passage(id, "d", 0, text, date)


def reason(text: str, id: str = "d#0", share: float = 0.0) -> str | None:
    return calculator(share=share)(passage(text, id), Words())


def values(text: str) -> list[Fraction]:
    return [number.value for number in numbers(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it cost 42 crowns", ["42"]),
        ("It was 42.", ["42"]),
        ("0 and 0.50 and .75", ["0", "0.50", ".75"]),
        ("$1,234.50, €7 and US$5", ["1,234.50", "7", "5"]),
        ("658,893 / 11.4%", ["658,893", "11.4%"]),
        ("48/2=24, then 100-20-30=50", ["48", "2", "24", "100", "20", "30", "50"]),
        ("3x + 4", ["4"]),
        ("pages 10-20 and 10–20", ["10", "20", "10", "20"]),
        ("a 5-year plan", ["5"]),
        ("it fell to -3.5 (or −4)", ["-3.5", "−4"]),
        ("10 - 3, 10 -3, 10-3, (1) -3", ["10", "3", "10", "3", "10", "3", "1", "3"]),
        ("-3 at the start", ["-3"]),
        ("list:\n-3 eggs", ["3"]),
        ("-$5", ["5"]),
    ],
)
def test_numbers_are_found_as_written(text: str, expected: list[str]) -> None:
    assert [number.text for number in numbers(text)] == expected


@pytest.mark.parametrize(
    "text",
    [
        "2023-01-30",
        "2023-01-30T10:30:00Z",
        "2023-01",
        "30/01/2023",
        "1/30/23",
        "at 10:30",
        "v1.2.3 and 192.168.0.1 and 1.2.3",
        "A4, 3rd, 20kg, 1990s, covid-19, F-16A, x_5, 0x1F, 1e5",
        "#12",
        "https://example.org/2023/01/30/99?page=7",
        "1,23",
        "1,00,000",
        "1'234",
        "1\u00a0234",
        "007",
        "no.5",
        "٣٣",
        "9" * 101,
    ],
)
def test_what_only_looks_like_a_number_is_none(text: str) -> None:
    assert numbers(text) == []


def test_a_value_is_exact() -> None:
    assert values("0.1 and 11.4% and 1,000,000.25 and -3") == [
        Fraction(1, 10),
        Fraction(114, 1000),
        Fraction(4_000_001, 4),
        Fraction(-3),
    ]


@given(st.text(st.sampled_from("0123456789.,-−%$ /:=a(\n'\u00a0٣")))
def test_numbers_of_any_text_lie_in_order_where_they_say(text: str) -> None:
    at = 0
    for number in numbers(text):
        assert at <= number.start < number.end
        assert text[number.start : number.end] == number.text
        at = number.end


@given(st.lists(st.decimals(-(10**9), 10**9, places=2)))
def test_numbers_between_words_are_all_found(written: list[object]) -> None:
    text = " and ".join(f"{value:,}" for value in written)
    assert [str(value) for value in values(text)] == [str(Fraction(str(value))) for value in written]


@pytest.mark.parametrize("piece", ["1", "1,", "1.", "-", "a-", ".", " ", "٣", "a1"])
def test_long_runs_take_no_long_time(piece: str) -> None:
    begin = time.process_time()
    numbers(piece * 200_000)
    assert time.process_time() - begin < 2


@pytest.mark.parametrize(
    "text",
    [
        "14 crates of 3 bottles, 42 in all",
        "there were 42 bottles: 3 crates of 14",
        "17.5 and 4.25 make 21.75",
        "from 50 down by 8 to 42",
        "84 shared by 2 is 42",
        "22 out of 7 is about 3.14",
        "19.99 with 7% of tax is 1.40 more",
        "30 of 120 is 25%",
    ],
)
def test_a_passage_with_a_result_of_two_other_numbers_is_tried(text: str) -> None:
    assert reason(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "the sum = 5",
        "that equals $5",
        "it is equal to 5",
        "a total of 5",
        "an Average of €5",
    ],
)
def test_a_passage_that_announces_a_number_is_tried(text: str) -> None:
    assert reason(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no digits here = at all, a total of none", "no_numbers"),
        ("", "no_numbers"),
        ("on 2023-01-30 at 10:30 in room A4", "no_numbers"),
        ("12 and 30", "few_numbers"),
        ("12 and 30 and 99", "no_arithmetic"),
        ("5 and 1 and 5", "no_arithmetic"),
        ("5 and 0 and 5", "no_arithmetic"),
        ("12 and 30, " + "word " * 101 + "42", "no_arithmetic"),
    ],
)
def test_other_passages_are_left_out_with_a_reason(text: str, expected: str) -> None:
    assert reason(text) == expected


def test_the_three_numbers_stand_within_a_hundred_tokens() -> None:
    assert reason("12 and 30, " + "word " * 90 + "42") is None


def test_of_the_rest_a_share_is_drawn_by_seed_and_id_alone() -> None:
    def drawn(seed: int, share: float) -> set[int]:
        rule = calculator(seed, share)
        return {n for n in range(600) if rule(passage("12 and 30 and 99", f"d#{n}"), Words()) is None}

    assert drawn(0, 0.1) == drawn(0, 0.1)
    assert drawn(0, 0.1) != drawn(1, 0.1)
    assert 30 < len(drawn(0, 0.1)) < 100
    assert 0 < len(drawn(0, 0.01)) < 20
    assert drawn(0, 0.01) < drawn(0, 0.1)


def by_trying(found: list[Fraction], places: list[int]) -> bool:
    """The rule over the numbers of one window, slowly: every triple, with fractions."""

    def is_result(x: int, y: int, z: int, result: Fraction) -> bool:
        scale = 10 ** places[z]
        rounds = places[z] > 0 and z > min(x, y) and floor(result * scale + Fraction(1, 2)) == found[z] * scale
        return result == found[z] or rounds

    def results(x: Fraction, y: Fraction) -> Iterator[Fraction]:
        if x != 0 and y != 0:
            yield x + y
        if y not in (0, x):
            yield x - y
        if x not in (0, 1) and y not in (0, 1):
            yield x * y
        if x != 0 and y not in (0, 1, x):
            yield x / y

    return any(
        is_result(x, y, z, result)
        for x, y, z in permutations(range(len(found)), 3)
        for result in results(found[x], found[y])
    )


@given(st.lists(st.tuples(st.integers(-300, 300), st.integers(0, 2)), min_size=3, max_size=6))
def test_results_are_found_as_by_trying_every_triple(drawn: list[tuple[int, int]]) -> None:
    written = [str(Decimal(value).scaleb(-places)) for value, places in drawn]
    expected = by_trying([Fraction(text) for text in written], [places for _, places in drawn])
    assert (reason(" and ".join(written)) is None) == expected


def test_a_table_of_numbers_is_judged_in_time() -> None:
    table = " ".join(str(1000 + n * n) + ".5" for n in range(128))
    begin = time.process_time()
    reason(table)
    assert time.process_time() - begin < 3


def test_the_calendar_asks_for_a_date_and_always_for_nothing() -> None:
    assert calendar(passage("text"), Words()) == "no_date"
    assert calendar(passage("text", date="2023-01"), Words()) is None
    assert always(passage(""), Words()) is None


def test_rules_have_names() -> None:
    assert rule_named("always") is always
    assert rule_named("calendar") is calendar
    assert rule_named("calculator", seed=3)(passage("1 and 2 and 3"), Words()) is None
    with pytest.raises(BadInput, match="calculator"):
        rule_named("other")
