"""Markers in a stream: how the stream is cut changes nothing, and what is found is what a slow search finds."""

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolwise.core.errors import BadInput
from toolwise.notation.matcher import Fed, Matcher

marker_sets = st.lists(st.text("abc", min_size=1, max_size=4), max_size=4)
streams = st.text("abc", max_size=12)


def run(markers, pieces):
    """Everything that a stream yields: ("text", ...) and ("marker", ...) events, neighbouring texts joined."""
    matcher = Matcher(markers)
    events = []

    def take(fed):
        while True:
            if fed.text and events and events[-1][0] == "text":
                events[-1] = ("text", events[-1][1] + fed.text)
            elif fed.text:
                events.append(("text", fed.text))
            if fed.marker is None:
                return
            events.append(("marker", fed.marker))
            fed = matcher.feed(fed.rest)

    for piece in pieces:
        take(matcher.feed(piece))
    while (last := matcher.flush()) != Fed(""):
        take(last)
    return events


def slow(markers, text):
    """The same from the whole text, by `str.find`."""
    events = []
    while text:
        hits = [(text.find(marker), -len(marker)) for marker in markers if marker in text]
        start, length = min(hits, default=(len(text), 0))
        if start:
            events.append(("text", text[:start]))
        if hits:
            events.append(("marker", text[start : start - length]))
        text = text[start - length :]
    return events


def cut(text, places):
    places = sorted({0, len(text), *(place for place in places if place <= len(text))})
    return [text[a:b] for a, b in pairwise(places)]


@pytest.mark.case("J1")
@settings(max_examples=500, deadline=None)
@given(marker_sets, streams, st.lists(st.integers(0, 12), max_size=8))
@example(["ab", "abcb"], "abcabcb", [1, 2, 3, 4, 5, 6])
def test_any_cutting_of_the_stream_gives_what_a_search_of_the_whole_gives(markers, text, places):
    assert run(markers, cut(text, places)) == slow(markers, text)


@settings(max_examples=300, deadline=None)
@given(marker_sets, streams)
def test_nothing_is_held_back_longer_than_needed(markers, text):
    matcher = Matcher(markers)
    out = ""
    for size, character in enumerate(text, 1):
        fed = matcher.feed(character)
        if fed.marker:
            return
        out += fed.text
        held = text[len(out) : size]
        assert out + held == text[:size]
        assert not held or any(len(held) < len(marker) and marker.startswith(held) for marker in markers)


@pytest.mark.case("J1")
def test_a_marker_split_in_every_way_is_found():
    text = "so <API>x"
    for mask in range(2 ** (len(text) - 1)):
        places = [i + 1 for i in range(len(text) - 1) if mask >> i & 1]
        assert run(["<API>"], cut(text, places)) == [("text", "so "), ("marker", "<API>"), ("text", "x")]


@pytest.mark.case("J1")
def test_a_false_start_does_not_swallow_the_true_one():
    assert run(["112"], "1112") == [("text", "1"), ("marker", "112")]
    assert run(["1,1,2"], "1,1,1,2") == [("text", "1,"), ("marker", "1,1,2")]
    assert run(["<API>"], ["<<", "API>"]) == [("text", "<"), ("marker", "<API>")]


@pytest.mark.case("J1")
def test_text_that_was_held_back_is_released_exactly():
    matcher = Matcher(["<API>"])
    assert matcher.feed("a <A") == Fed("a ")
    assert matcher.feed("P") == Fed("")
    assert matcher.feed("!") == Fed("<AP!")
    assert matcher.feed("<API") == Fed("")
    assert matcher.flush() == Fed("<API")
    assert matcher.flush() == Fed("")


def test_what_follows_a_marker_is_handed_back_unread():
    matcher = Matcher(["]", " ->"])
    assert matcher.feed("x -> 5] y") == Fed("x", " ->", " 5] y")
    assert matcher.feed("new") == Fed("new")


def test_of_markers_that_start_together_the_longest_wins_even_when_it_comes_late():
    matcher = Matcher(["ab", "abcd"])
    assert matcher.feed("xab") == Fed("x")
    assert matcher.feed("c") == Fed("")
    assert matcher.feed("x") == Fed("", "ab", "cx")
    assert matcher.feed("abc") == Fed("")
    assert matcher.flush() == Fed("", "ab", "c")


def test_without_markers_everything_passes():
    assert Matcher([]).feed("abc") == Fed("abc")


def test_an_empty_marker_is_refused():
    with pytest.raises(BadInput):
        Matcher(["a", ""])
