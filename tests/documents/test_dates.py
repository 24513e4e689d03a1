"""Dates of documents: read where they are certain, None otherwise."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from toolwise.documents.dates import date_in_head, date_in_title, date_in_url, partial_date


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2023-01-30", "2023-01-30"),
        (" 2023-1-5 ", "2023-01-05"),
        ("2023/01/30", "2023-01-30"),
        ("2023-01-30T08:15:00Z", "2023-01-30"),
        ("2023-01-30 08:15", "2023-01-30"),
        ("2023-01", "2023-01"),
        ("1790", "1790"),
        (1790, "1790"),
        (date(2023, 1, 30), "2023-01-30"),
        (datetime(2023, 1, 30, 8, tzinfo=UTC), "2023-01-30"),
    ],
)
def test_a_date_field_becomes_a_partial_iso_date(value: object, expected: str) -> None:
    assert partial_date(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "yesterday",
        "3/4/2023",
        "2023-02-30",
        "2023-13",
        "0000",
        "2023-01/30",
        "20231",
        12345,
        -5,
        True,
        3.5,
        [],
    ],
)
def test_what_is_no_certain_date_is_none(value: object) -> None:
    assert partial_date(value) is None


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.org/2023/01/30/a-story", "2023-01-30"),
        ("https://example.org/news/2023/1/5/x.html", "2023-01-05"),
        ("https://example.org/story-2023-01-30.html", "2023-01-30"),
        ("https://example.org/2023/01/a-story", "2023-01"),
        ("https://example.org/2023/01", "2023-01"),
        ("https://example.org/2022/05/x-2023-01-30", "2023-01-30"),
        ("https://example.org/2023/02/30/2023/03/01/", "2023-03-01"),
        ("https://example.org/2023/", None),
        ("https://example.org/id/12023/01/301", None),
        ("https://example.org/1234/01/30/", None),
        ("", None),
    ],
)
def test_a_date_is_found_in_an_address(url: str, expected: str | None) -> None:
    assert date_in_url(url) == expected


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("October 10 - births", "--10-10"),
        ("Oct. 10th", "--10-10"),
        ("Minutes - 30 January 2023", "2023-01-30"),
        ("Minutes: January 30, 2023", "2023-01-30"),
        ("29 February", "--02-29"),
        ("January 2023", "2023-01"),
        ("2023-01-30 – Minutes", "2023-01-30"),
        ("September 11 attacks", None),  # the subject, not the day
        ("May 1968 events in France", None),
        ("May", None),
        ("30 February 2023", None),
        ("January 30, 2023 - February 2, 2023", None),
        ("", None),
    ],
)
def test_a_date_is_found_in_a_title_that_consists_of_it(title: str, expected: str | None) -> None:
    assert date_in_title(title) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("January 30, 2023\n\nThe council met.", "2023-01-30"),
        ("Minutes - 30 January 2023\nThe council met.", "2023-01-30"),
        ("OSLO, Jan. 30, 2023 (NTB) - The council met.", "2023-01-30"),
        ("30 January 2023 — The council met.", "2023-01-30"),
        ("(January 30, 2023) -- The council met.", "2023-01-30"),
        ("On July 4, 1776, the colonies declared something.", None),  # what the text speaks of
        ("July 4, 1776, was a Thursday - so they say.", None),
        ("October 10\nMany were born.", None),  # no year: a day of every year
        ("January 30, 2023 was cold.", None),
        ("The council met.\nJanuary 30, 2023", None),
        ("", None),
    ],
)
def test_a_date_is_found_in_the_head_of_a_text_and_not_in_its_sentences(text: str, expected: str | None) -> None:
    assert date_in_head(text) == expected
