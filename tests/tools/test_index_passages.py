"""Passages: whole sentences, never more than so many words, nothing lost, whatever the text is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwise.core.limits import LIMITS
from toolwise.core.types import Document
from toolwise.tools.index.passages import cut
from toolwise.tools.index.words import WORD

SENTENCE = "The mill by the river grinds rye and barley for the farms around it. "  # 14 words


def texts(text: str, words: int = 100, **bounds: int) -> list[str]:
    return [passage.text for passage in cut(Document("d", text), words, replace(LIMITS, **bounds))]


def words_of(text: str) -> list[str]:
    return WORD.findall(text)


def test_a_passage_has_the_name_the_title_and_the_fields_of_its_document() -> None:
    document = Document(
        "rye", SENTENCE * 9, date="2020", url="https://example.org", metadata={"title": " Rye \n bread "}
    )
    passages = list(cut(document, 100))
    assert [passage.id for passage in passages] == ["rye#0", "rye#1"]
    assert {(one.title, one.date, one.url) for one in passages} == {("Rye bread", "2020", "https://example.org")}
    assert next(cut(Document("rye", SENTENCE, metadata={"title": ["no", "text"]}), 100)).title == ""
    assert len(next(cut(Document("rye", SENTENCE, metadata={"title": "x" * 9_999}), 100)).title) == LIMITS.title_chars


@pytest.mark.parametrize(("sentences", "parts"), [(1, [1]), (7, [7]), (8, [4, 4]), (15, [5, 5, 5]), (22, [6, 6, 6, 4])])
def test_the_passages_of_a_document_are_about_equally_long(sentences: int, parts: list[int]) -> None:
    assert [len(words_of(text)) // 14 for text in texts(SENTENCE * sentences)] == parts


def test_a_sentence_longer_than_a_passage_is_cut_in_front_of_words() -> None:
    assert texts("one two three four five six seven", words=3) == ["one two three", "four five six", "seven"]


def test_a_line_of_data_is_cut_anywhere() -> None:
    assert [len(text) for text in texts("x" * 10_000)] == [4_000, 4_000, 2_000]


def test_signs_alone_are_no_passage_however_many_they_are() -> None:
    assert texts("*" * 100_000 + "\n") == []
    (kept,) = texts("*" * 10_000 + " word " + "*" * 10_000)
    assert "word" in kept


def test_chinese_and_japanese_are_counted_by_character() -> None:
    assert texts("東京は日本の首都です。人口は多いです。", words=10) == ["東京は日本の首都です。", "人口は多いです。"]


@given(st.text(alphabet=st.sampled_from("ab1 .!?\n\t。é東*"), max_size=300), st.integers(1, 12), st.integers(1, 40))
@settings(max_examples=200)
def test_every_word_stands_in_exactly_one_passage(text: str, words: int, chars: int) -> None:
    passages = texts(text, words=words, passage_chars=chars)
    assert all(len(words_of(one)) <= words and 0 < len(one) <= chars and one == one.strip() for one in passages)
    letters = "".join(char for char in text if WORD.match(char))
    assert "".join("".join(words_of(one)) for one in passages) == letters
