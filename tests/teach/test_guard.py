"""What a call may not know: the words and numbers that the text has only behind it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwise.teach.corpus.spelled import spelled
from toolwise.teach.guard import already_said, copies, looks_ahead, repeats

TEXT = "3 crates of 14 bottles, so 42 in all, or 25% of 168; 14 more."
TOWN = "The museum of the town is located in Bergen, a port; it shows photolithography."


class Common:
    """Knows some words as one token each; every other word is two."""

    begin: tuple[int, ...] = ()
    control: frozenset[int] = frozenset()
    end: frozenset[int] = frozenset()
    words = frozenset(["the", "museum", "of", "town", "is", "located", "in", "a", "port", "it", "shows", "where"])

    def encode(self, text: str) -> tuple[int, ...]:
        return (0,) if text.strip().casefold() in self.words else (0, 1)

    def decode(self, ids: Sequence[int]) -> str:
        raise NotImplementedError


def ahead(arguments: object, text: str, before: str, known: str = "") -> bool:
    return looks_ahead(arguments, text, text.index(before), Common(), known=known)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("14 * 3", False),
        ("14*3", False),
        ("42", True),
        ("14 + 42", True),
        ("84 / 2", False),
        ("100 - 25", True),
        ("3x42", True),
        ("3x14", False),
        ("city", False),
    ],
)
def test_a_call_looks_ahead_when_a_number_of_it_stands_only_behind_it(expression, expected):
    assert ahead({"expression": expression}, TEXT, " 42") is expected


@pytest.mark.parametrize(
    ("argument", "behind", "expected"),
    [
        ("1000", "1,000 coins", True),
        ("1,000", "1000 coins", True),
        ("1e3", "1000 coins", True),
        ("1000", "1\u00a0000 coins", True),
        ("0.5", "50% of it", True),
        ("50%", "0.5 of it", True),
        ("50", "50% of it", True),
        ("500", "50% of it", False),
        ("40", "forty coins", True),
        ("forty", "40 coins", True),
        ("142", "a hundred and forty-two coins", True),
        ("40", "forty-two coins", False),
        ("3000000", "3 million people", True),
        ("2500000", "2.5 million people", True),
        ("24", "two dozen eggs", True),
        ("20", "20kg of it", True),
        ("20", "the 20th of it", True),
        ("５０", "50 coins", True),
        ("1", "one of them", False),  # hardly ever a number, and a constant of many calculations
        ("30", "2023-01-30", False),
    ],
)
def test_another_spelling_of_a_number_does_not_hide_it(argument, behind, expected):
    before = "In the end they paid "
    assert looks_ahead({"expression": argument}, before + behind, len(before), Common()) is expected
    assert not looks_ahead({"expression": argument}, f"{behind}: {before}", len(behind), Common())
    assert not looks_ahead({"expression": argument}, before + behind, len(before), Common(), known=behind)


@pytest.mark.parametrize(
    ("argument", "behind"),
    [
        ("Sao Paulo", "São Paulo"),
        ("São Paulo", "Sao Paulo"),
        ("Zürich", "Zu\u0308rich"),
        ("Ber\u200bgen", "Bergen"),
        ("Ｂｅｒｇｅｎ", "Bergen"),
        ("STRASSE", "Straße"),
        ("R2D2", "R2D2"),
    ],
)
def test_another_spelling_of_a_word_does_not_hide_it(argument, behind):
    before = "At last they saw "
    assert looks_ahead({"question": argument}, before + behind, len(before), Common())
    assert not looks_ahead({"question": argument}, f"{behind}: {before}{behind}", len(f"{behind}: {before}"), Common())


@given(st.integers(min_value=10, max_value=10**12 - 1))
def test_a_number_in_words_is_the_number(number):
    assert Fraction(number) in {value for _, value in spelled(f"all in all {in_words(number)} of them")}


SMALL = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen
"""
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"


def in_words(number: int) -> str:
    for value, name in ((10**9, "billion"), (10**6, "million"), (10**3, "thousand"), (100, "hundred")):
        if number >= value:
            rest = f" {in_words(number % value)}" if number % value else ""
            return f"{in_words(number // value)} {name}{rest}"
    if number < 20:
        return SMALL.split()[number]
    return TENS.split()[number // 10 - 2] + (f"-{SMALL.split()[number % 10]}" if number % 10 else "")


@pytest.mark.parametrize(
    "text", ["9" * 5_000 + "kg", "9" * 5_000 + " million", "hundred " * 5_000, "1e99999", "9,999" * 5_000]
)
def test_no_number_is_too_large_to_be_looked_at(text):
    looks_ahead({"q": text}, text, 3, Common())


def test_a_number_cut_by_the_position_stands_behind_it():
    text = "3 crates of 14 make 42"
    assert looks_ahead("42 - 3", text, len(text) - 1, Common())
    assert not looks_ahead("42 - 3", text, len(text), Common())


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where is the museum located?", False),  # common words are what questions are made of
        ("the museum of Bergen", True),
        ("the museum of BERGEN", True),
        ("Bergensk", False),  # another word
        ("photolithography", True),
        ("Oslo", False),  # the text says nothing of it
    ],
)
def test_a_call_looks_ahead_when_a_rare_word_of_it_stands_only_behind_it(question, expected):
    assert ahead({"question": question}, TOWN, " Bergen") is expected


def test_every_argument_is_looked_at_however_deep_it_stands():
    assert ahead({"places": [{"name": "Bergen"}], "most": 3}, TOWN, " Bergen")
    assert ahead({"count": 42}, TEXT, " 42")
    assert not ahead({"Bergen": True, "none": None}, TOWN, " Bergen")  # a key is the tool's own word


def test_what_an_earlier_call_gave_is_known():
    assert not ahead({"place": "Bergen"}, TOWN, " Bergen", known="Bergen is a town.")
    assert not ahead({"expression": "42 / 2"}, TEXT, " 42", known="42")


@pytest.mark.parametrize(
    ("result", "arguments", "expected"),
    [
        ("42", {"expression": "42"}, True),
        ("42", {"expression": "6 * 7"}, False),
        ("La casa.", {"text": "la  casa"}, True),
        ("5", {"principal": 5, "years": 2}, True),
        ("1,000", {"amount": "1000"}, True),
        ("42.0", {"amount": 42}, True),
        ("42", {"amount": "42 or 43"}, False),
        ("", {}, False),
    ],
)
def test_a_result_that_gives_back_an_argument_repeats_it(result, arguments, expected):
    assert repeats(result, arguments) is expected


@pytest.mark.parametrize(
    ("result", "before", "expected"),
    [
        ("640", "The interest was 640", True),
        ("640", "The interest of $640 ", True),
        ("4800", "Over 6 years that came to 4,800", True),
        ("the House", "It means the house,", False),
        ("The house.", "It means the house", True),
        ("40", "The interest was 640", False),
        ("64", "The interest was 640", False),
        ("640", "640 was the interest, which", False),
        ("", "nothing", False),
    ],
)
def test_a_result_that_the_text_has_just_said_comes_too_late(result, before, expected):
    assert already_said(result, f"{before} and so on", len(before)) is expected


WORDS = "Oslo is the capital of Norway and lies at the end of a long fjord with many islands. It was founded long ago."


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("Oslo: it lies at the end of a long fjord.", True),
        ("Oslo: IT LIES, at the end; of a long fjord!", True),
        ("Oslo: it lies at the head of a long fjord.", False),
        ("Oslo is the capital of Norway", False),  # what stands before the call
        ("founded long ago", False),
        ("", False),
    ],
)
def test_a_result_with_the_very_words_that_follow_copies_the_text(result, expected):
    assert copies(result, WORDS, WORDS.index(" and lies"), 6) is expected


def test_only_the_words_that_follow_soon_are_looked_at():
    far = f"{'word ' * 50}the end of a long fjord with many islands"
    assert not copies("the end of a long fjord with many islands", far, 0, 6)
    assert copies("the end of a long fjord with many islands", far, far.index("the end"), 6)
