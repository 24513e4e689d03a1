"""How answers are read: each rule on answers that are easy to read wrongly, and while they are still being written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolwise.evals.tasks.base import Rule, Verdict
from toolwise.evals.tasks.numbers import number_in
from toolwise.evals.tasks.rules import FirstDate, FirstNumber, InFirstWords

FIVE, NUMBER, DATE = InFirstWords(5), FirstNumber(), FirstDate()

#: What an answer is made of, and what makes it hard to read.
PIECES = [
    *("Paris", "paris", "PARIS", "New", "York", "the", "The", "a", "U.S.", "US", "São", "Sao", "O'Neil", "-", "–", "x"),
    *("5", "12", "0", ",", ".", " ", "  ", "\n", "=", "==", ">=", "+", "*", "/", "$", "%", "½", "2", "1/2", "e", "E3"),
    *(
        "05",
        "30",
        "2021",
        "05/30/2021",
        "apples",
        " apples",
        ". ",
        "! ",
        "?",
        "(",
        ")",
        "\u2212",
        "\u00a0",
        "\u0301",
        "²",
    ),
]
texts = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
RULES = [
    (FIVE, ("Paris", "New York", "12", "US", "the")),
    (InFirstWords(2), ("12,000", "Sao", "5")),
    (NUMBER, ("12",)),
    (NUMBER, ("25/12",)),
    (DATE, ("05/30/2021", "12/5/2021")),
]
each_rule = pytest.mark.parametrize(("rule", "answers"), RULES)


def right(rule: Rule, answer: str | Sequence[str], text: str) -> bool:
    return rule.judge([answer] if isinstance(answer, str) else answer, text, finished=True).right


def read(rule: Rule, text: str) -> str | None:
    return rule.judge(["1"], text, finished=True).read


# What holds for every rule


@each_rule
@given(text=texts, more=texts, finished=st.booleans())
def test_a_settled_verdict_is_that_of_any_longer_text(
    rule: Rule, answers: Sequence[str], text: str, more: str, finished: bool
) -> None:
    early = rule.judge(answers, text, finished=False)
    if early.settled:
        late = rule.judge(answers, text + more, finished)
        assert (late.right, late.read) == (early.right, early.read)


@each_rule
@given(text=texts)
def test_reading_along_ends_with_the_verdict_on_the_whole_text(rule: Rule, answers: Sequence[str], text: str) -> None:
    whole = rule.judge(answers, text, finished=True)
    seen = (rule.judge(answers, text[:end], finished=False) for end in range(len(text) + 1))
    first = next((verdict for verdict in seen if verdict.settled), None)
    assert first is None or (first.right, first.read) == (whole.right, whole.read)
    assert whole.settled


@each_rule
@given(text=texts)
def test_nothing_is_right_that_was_not_read(rule: Rule, answers: Sequence[str], text: str) -> None:
    for finished in (False, True):
        verdict = rule.judge(answers, text, finished)
        assert not (verdict.right and verdict.read is None)


@pytest.mark.parametrize(
    ("rule", "answer", "text", "settled"),
    [
        (FIVE, "Paris", " Paris", False),  # Parisians
        (FIVE, "Paris", " Paris ", True),
        (FIVE, "Paris", " It is in Rome, I", False),
        (FIVE, "Paris", " It is in Rome, I think", True),
        (NUMBER, "12", " 12", False),  # 12,000
        (NUMBER, "12", " 12 apples", False),  # 12 apples + 3 apples = 15 apples
        (NUMBER, "12", " 12 apples. Then", True),
        (NUMBER, "12", " 12\nThen", True),
        (NUMBER, "12", " 5 + 7 = 12", False),
        (NUMBER, "12", " 5 + 7 = 12.", False),
        (NUMBER, "12", " 5 + 7 = 12 a", True),
        (DATE, "05/30/2021", " 05/30/2021", False),
        (DATE, "05/30/2021", " 05/30/2021.", True),
    ],
)
def test_decoding_may_end_as_soon_as_the_answer_has(rule: Rule, answer: str, text: str, settled: bool) -> None:
    assert rule.judge([answer], text, finished=False).settled is settled


# In the first words


def plainly(answer: str, text: str, count: int) -> bool:
    """The same for words of letters, with punctuation only around them."""
    words = [re.sub(r"[^a-z]", "", word.lower()) for word in text.split()]
    first = [word for word in words if word][:count]
    return f" {answer.lower()} " in f" {' '.join(first)} "


plain_words = st.lists(st.sampled_from(["Rome", "rome,", "Old", "(old", "town.", "by", "-", "sea", "Sea!"]), max_size=9)


@given(words=plain_words, answer=st.sampled_from(["Rome", "old Rome", "Sea", "by"]), count=st.integers(1, 6))
def test_plain_words_are_read_as_a_person_would(words: list[str], answer: str, count: int) -> None:
    text = " ".join(words)
    assert InFirstWords(count).judge([answer], text, finished=True).right == plainly(answer, text, count)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Paris", " Paris"),
        ("Paris", "paris, France."),
        ("Paris", ' the city of "PARIS".'),
        ("Paris", " **Paris**"),
        ("Paris", " (Paris)"),
        ("Paris", " Paris's mayor"),
        ("Paris", " Paris/Berlin"),
        ("Paris", " Paris–Berlin, and more"),
        ("Paris", " -- it is - Paris - where"),  # a dash is no word
        ("The Beatles", " Beatles"),
        ("Beatles", " the Beatles"),
        ("Queen of the South", " Queen of South"),
        ("A", " blood group A"),
        ("US", " the U.S. of America"),
        ("U.S.", " US"),
        ("Jean Paul", " Jean-Paul Sartre"),
        ("Jean-Paul", " Jean Paul Sartre"),
        ("O'Neil", " ONeil"),
        ("O\u2019Neil", " O'Neil"),
        ("AT&T", " at AT&T, in"),
        ("São Paulo", " Sao Paulo"),
        ("Sao Paulo", " Sa\u0303o Paulo"),  # the accent as a character of its own
        ("Sao Paulo", " São-Paulo"),
        ("Köln", " K\u00d6LN"),
        ("Strasse", " Straße"),
        ("film", " \ufb01lm"),  # a ligature
        ("12", " \uff11\uff12 apples"),  # full-width digits
        ("1000", " 1,000 people"),
        ("1,000", " 1000"),
        ("5", " 5.0"),
        ("5.50", " $5.5"),
        ("50%", " 50 percent"),
        ("50", " about 50%."),
        ("$50", " 50 dollars"),
        ("1998", " in 1998-99"),
        ("-5", " -5 degrees"),
        ("May 5, 1998", " on May 5 1998"),
    ],
)
def test_an_answer_that_stands_in_the_first_words_is_right(answer: str, text: str) -> None:
    assert right(FIVE, answer, text)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Paris", " Parisians"),
        ("Paris", " I would say it is Paris"),  # the sixth
        ("New York City", " one two three New York City"),  # its end is the sixth
        ("New York", " York New"),
        ("New York", " New, but not York"),
        ("12", " 120"),
        ("12", " 12.5"),
        ("1", " 1,000"),
        ("000", " 1,000"),
        ("10", " 1-0"),
        ("5", " -5"),
        ("5", " .5"),
        ("5", " \u22125"),
        ("52", " 5\u00b2"),
        ("7", " 007"),
        ("", " anything"),
        ("---", " ---"),
        ("!", " Wow! "),
    ],
)
def test_what_only_looks_like_the_answer_is_wrong(answer: str, text: str) -> None:
    assert not right(FIVE, answer, text)


def test_any_of_the_answers_will_do() -> None:
    assert right(FIVE, ["Bern", "Lutetia", "Paris"], " Lutetia")
    assert not right(FIVE, [], " Lutetia")


def test_what_was_read_ends_with_the_answer_or_with_the_last_word_that_counts() -> None:
    assert FIVE.judge(["Paris"], " It is  Paris,\nFrance, yes", True) == Verdict(True, "It is Paris,", True)
    assert FIVE.judge(["Rome"], " It is  Paris,\nFrance, yes", True) == Verdict(False, "It is Paris, France, yes", True)
    assert FIVE.judge(["Rome"], " - ", True) == Verdict(False, None, True)


def test_a_word_that_was_cut_off_is_not_read() -> None:
    assert FIVE.judge(["Par"], " in Par", finished=False) == Verdict(False, "in", False)
    assert FIVE.judge(["Par"], " in Par", finished=True) == Verdict(True, "in Par", True)


# The first number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (" 12", "12"),
        (" 12.", "12"),
        (" 12 apples.", "12"),
        (" twelve, that is 12.", "12"),
        ("\n\n12\n\nQuestion: 7 + 5", "12"),
        (" $12.50.", "12.50"),
        (" 1,234,567 people", "1,234,567"),
        (" 1,2 and 3", "1"),  # a list
        (" 12%", "12"),
        (" .5 of it", ".5"),
        (" $.50", ".50"),
        (" -8", "-8"),
        (" -$8", "-8"),
        (" $-8", "-8"),
        (" \u22128", "-8"),
        (" a loss of (-8)", "-8"),
        (" 5-3", "5"),
        (" 5-3 = 2", "2"),
        (" B12 and 4 pills", "4"),
        (" Model_3 has 4 wheels", "4"),
        (" 3rd", "3"),
        (" 1/2", "1/2"),
        (" 2 1/2 hours", "2 1/2"),
        (" 2 7/2 hours", "2"),
        (" 2\u00bd hours", "2\u00bd"),
        (" 10/2", "10"),  # a division that was not done
        (" 5/30/2021", "5"),
        (" 1e3", "1e3"),
        (" \uff11\uff12", "\uff11\uff12"),
        (" 5\u00b2", "5"),
        (" no number", None),
        ("", None),
        ("=", None),
    ],
)
def test_the_first_number_is_read(text: str, number: str | None) -> None:
    assert read(NUMBER, text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (" 5+3=8.", "8"),
        (" 5 + 3 = 8", "8"),
        (" 5 apples + 3 apples = 8 apples", "8"),
        (" $5.00 + $3.00 = $8.00", "8.00"),
        (" There are 5 and 3, so 5 + 3 = 8.", "8"),
        (" 5 ft. + 3 ft. = 8 ft.", "8"),
        (" 5 + 3 =\n\n8", "8"),
        (" 5 + 3\n= 8", "8"),
        (" 3 - 11 = -8", "-8"),
        (" 50% of 16 = 8", "8"),
        (" x = 8", "8"),
        (" = 8", "8"),
        (" 5 + 3 == 8", "8"),
        (" 2 * 4 = 8 = 4 + 4", "8"),
        (" 8. Since 5 + 4 = 9", "8"),  # another sentence
        (" 8\n5 + 4 = 9", "8"),
        (" Well. 8! That is 5 + 4 = 9.", "8"),
        (" Let x = y. 5 + 3 = 8", "8"),
        (" 8 >= 5", "8"),
        (" 8 => done with 5", "8"),
        (" 8 != 5", "8"),
        (" 5 + 3 = eight", "5"),  # no number stands behind it
        (" 5 + 3 = ?\n8", "5"),
    ],
)
def test_in_an_equation_the_number_behind_the_equals_sign_is_read(text: str, number: str) -> None:
    assert read(NUMBER, text) == number


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        *[("8", said) for said in (" 8", " 8.0", " 8.", " 08", " $8", " +8", " 8e0")],
        *[("1234", said) for said in (" 1,234", " 1234.00", " 1234")],
        *[("5/2", said) for said in (" 2.5", " 5/2", " 2 1/2", " 2\u00bd", " 2.50")],
        *[("25/3", said) for said in (" 8.33", " 8.333", " 25/3", " 8 1/3")],
        *[("2.50", said) for said in (" 2.5", " $2.50")],
        ("0.125", " 0.13"),
        ("-8", " -8"),
    ],
)
def test_the_same_number_in_another_form_is_right(answer: str, text: str) -> None:
    assert right(NUMBER, answer, text)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        *[("8", said) for said in (" 80", " -8", " 8.5", " 8,000", " 8 1/2", " 1/8", " eight", " 7, or 8")],
        *[("25/3", said) for said in (" 8", " 8.3", " 8.34", " 8.334")],
        *[("2.5", said) for said in (" 2.51", " 2.495", " 2")],
        ("0.25", " 25%"),
        ("1000", " 1"),
    ],
)
def test_another_number_is_wrong(answer: str, text: str) -> None:
    assert not right(NUMBER, answer, text)


@pytest.mark.parametrize("text", [" 12", " 12.", " 12,", " 12.5", " 12 ", " 12 1", " 12/", " 5 + 7 = 12"])
def test_a_number_at_a_cut_is_not_read(text: str) -> None:
    assert NUMBER.judge(["12"], text, finished=False) == Verdict(False, None, False)


@pytest.mark.parametrize("text", [" 12 a", " 12\n", " 12, a", " 12. A", " $12)", " 12%", " 5 + 7 = 12 a"])
def test_a_number_that_ended_before_a_cut_is_read(text: str) -> None:
    verdict = NUMBER.judge(["12"], text, finished=False)
    assert (verdict.right, verdict.read) == (True, "12")


@given(st.fractions(min_value=-(10**9), max_value=10**9, max_denominator=1), st.integers(0, 4))
@example(Fraction(0), 0)
def test_whole_numbers_are_read_however_they_are_written(number: Fraction, zeros: int) -> None:
    whole = number.numerator
    for written in (f"{whole}", f"{whole:,}", f"{whole}{'.' if zeros else ''}{'0' * zeros}"):
        found = number_in(f" {written} apples", 0, len(written) + 8)
        assert found is not None
        assert (found.value, found.written) == (number, written)
    assert right(NUMBER, str(whole), f" {whole:,}.")


@given(st.integers(1, 10**6), st.integers(2, 99))
def test_every_fraction_is_read_but_a_division_without_a_rest(over: int, under: int) -> None:
    found = number_in(f"{over}/{under}", 0, 20)
    assert found is not None
    assert found.value == (over if over % under == 0 else Fraction(over, under))


# The first date


@pytest.mark.parametrize("text", [" 05/30/2021", "5/30/2021.", " It is 05/30/2021, not 05/31/2021", "(05/30/2021)"])
def test_the_first_date_is_read(text: str) -> None:
    assert right(DATE, "05/30/2021", text)


@pytest.mark.parametrize(
    "text",
    [
        *("05/31/2021, no: 05/30/2021", "30/05/2021", "05/30/21", "05/30/20210", "105/30/2021", "May 30, 2021", "2021"),
        *("05-30-2021", "5 30 2021", ""),
    ],
)
def test_another_date_or_another_way_to_write_it_is_wrong(text: str) -> None:
    assert not right(DATE, "05/30/2021", text)


def test_a_date_at_a_cut_is_not_read() -> None:
    assert DATE.judge(["05/30/2021"], " 05/30/2021", finished=False) == Verdict(False, None, False)


# What they say of themselves


def test_a_rule_says_in_words_what_it_does() -> None:
    assert [rule.said for rule in (FIVE, NUMBER, DATE)] == [
        "an answer stands in the first 5 words",
        'the first number is the answer; in an equation, the first one behind the "="',
        "the first date, written as MM/DD/YYYY, is the answer",
    ]
