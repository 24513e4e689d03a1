"""Cutting: the passages of a document add up to it, fit the model, and end where sentences end."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwise.core.errors import BadInput
from toolwise.core.types import Document
from toolwise.teach.corpus import cut


class Characters:
    """One token for each so many characters; `a` may cost more than the others."""

    begin: tuple[int, ...] = ()
    control: frozenset[int] = frozenset()
    end: frozenset[int] = frozenset()

    def __init__(self, each: int = 1, a: int = 1) -> None:
        self.each = each
        self.a = a
        self.encoded = 0

    def encode(self, text: str) -> tuple[int, ...]:
        self.encoded += len(text)
        return (0,) * ((len(text) + self.each - 1) // self.each + (self.a - 1) * text.count("a"))

    def decode(self, ids: Sequence[int]) -> str:
        raise NotImplementedError


def texts(text: str, max_tokens: int, tokenizer: Characters | None = None) -> list[str]:
    return [passage.text for passage in cut(Document("d", text), tokenizer or Characters(), max_tokens)]


@given(st.text(st.sampled_from("ab.!? \n\"。'A1") | st.characters(exclude_categories=["Cs"])), st.integers(3, 40))
def test_passages_add_up_to_the_document_and_fit(text: str, max_tokens: int) -> None:
    for tokenizer in (Characters(), Characters(each=3), Characters(each=4, a=3)):
        passages = cut(Document("d", text), tokenizer, max_tokens)
        assert "".join(passage.text for passage in passages) == text
        assert all(passage.text for passage in passages)
        assert all(len(tokenizer.encode(passage.text)) <= max_tokens for passage in passages)
        assert all(text.startswith(passage.text, passage.start) for passage in passages)


def test_passages_carry_what_their_document_is() -> None:
    document = Document("d", "One. Two.", date="2023-01", url="https://example.org", language="en", metadata={"a": 1})
    first, second = cut(document, Characters(), 6)
    assert (first.id, first.document, first.start, first.text) == ("d#0", "d", 0, "One. ")
    assert (second.id, second.document, second.start, second.text) == ("d#1", "d", 5, "Two.")
    assert {(one.date, one.url, one.language) for one in (first, second)} == {("2023-01", "https://example.org", "en")}


def test_an_empty_document_has_no_passages() -> None:
    assert cut(Document("d", ""), Characters(), 5) == []


@pytest.mark.parametrize(
    ("text", "max_tokens", "expected"),
    [
        ("First one. And two.\n\nThe second paragraph.", 30, ["First one. And two.\n\n", "The second paragraph."]),
        ("A.\n\nThis is long. This too. Here.", 25, ["A.\n\nThis is long. ", "This too. Here."]),
        ("One is here. Two is here. Three.", 20, ["One is here. ", "Two is here. Three."]),
        ('He said "Go!" Then he left.', 20, ['He said "Go!" ', "Then he left."]),
        ("line one\nline two\nline three", 20, ["line one\nline two\n", "line three"]),
        ("这是第一句。这是第二句。", 8, ["这是第一句。", "这是第二句。"]),
        ("It was cut by Mr. Smith of the J. Doe Co. Ltd", 30, ["It was cut by Mr. Smith of ", "the J. Doe Co. Ltd"]),
        ("some of it, e.g.  this and that", 20, ["some of it, e.g.  ", "this and that"]),
        ("It is 3.5 times that. More", 24, ["It is 3.5 times that. ", "More"]),
        ("one sentence that is long", 15, ["one sentence ", "that is long"]),
        ("unbreakable", 5, ["unbre", "akabl", "e"]),
        ("      ", 4, ["    ", "  "]),
    ],
)
def test_cuts_fall_at_paragraphs_else_sentences_else_spaces_else_anywhere(
    text: str, max_tokens: int, expected: list[str]
) -> None:
    assert texts(text, max_tokens) == expected


def test_a_long_document_is_cut_in_linear_time_and_well_filled() -> None:
    sentence = "This is a sentence of some length, as they stand in books; it says nothing. "
    tokenizer = Characters(each=4)
    begin = time.process_time()
    text = sentence * (8_000_000 // len(sentence))
    passages = cut(Document("d", text), tokenizer, 256)
    assert time.process_time() - begin < 8
    assert tokenizer.encoded < 2 * len(text)
    assert len(passages) < 1.2 * len(text) / (256 * 4)


@pytest.mark.parametrize("text", ["." * 300_000, '."' * 150_000, "\n" * 300_000, " " * 300_000, "a" * 300_000])
def test_odd_runs_are_cut_in_linear_time(text: str) -> None:
    tokenizer = Characters(each=4)
    assert "".join(texts(text, 64, tokenizer)) == text
    assert tokenizer.encoded < 3 * len(text)


def test_a_dense_stretch_behind_a_thin_one_costs_little() -> None:
    class Runs(Characters):
        def encode(self, text: str) -> tuple[int, ...]:
            self.encoded += len(text)
            return (0,) * (text.count("a") + len(text) // 1000)

    tokenizer = Runs()
    text = (" " * 50_000 + "a" * 500) * 10
    assert "".join(texts(text, 32, tokenizer)) == text
    assert tokenizer.encoded < 20 * len(text)


def test_a_character_that_cannot_fit_is_refused() -> None:
    with pytest.raises(BadInput, match="more than 3 tokens"):
        texts("xxa", 3, Characters(a=9))
    with pytest.raises(BadInput, match="at least 1"):
        texts("text", 0)
