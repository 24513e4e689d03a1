"""What a call may not know: the words and numbers that the text has only behind it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

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
