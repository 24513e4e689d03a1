"""Server-sent events: the same events whatever the chunks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwise.core.errors import ModelUnavailable
from toolwise.core.limits import LIMITS
from toolwise.notation.wire.base import Event
from toolwise.notation.wire.sse import Decoder, decode, encode

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\r"))
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"))
EVENTS = st.lists(st.builds(Event, TEXTS, NAMES), max_size=5)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places} | {len(data)})
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@given(EVENTS, st.lists(st.integers(0), max_size=20))
def test_what_was_written_is_read_however_the_bytes_are_cut(events: list[Event], places: list[int]) -> None:
    data = b"".join(encode(event) for event in events)
    assert list(decode(cut(data, places))) == events


def slow(data: bytes) -> list[Event]:
    """The standard, word by word, over the whole text."""
    text = data.decode().removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    events, lines, name = [], list[str](), ""
    for line in text.split("\n")[:-1]:
        if line == "":
            if lines:
                events.append(Event("\n".join(lines), name))
            lines, name = [], ""
        elif not line.startswith(":"):
            field, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if field == "data":
                lines.append(value)
            elif field == "event":
                name = value
    return events


@given(st.text(st.sampled_from("data:event\r\n\n: é\ufeff"), max_size=80), st.lists(st.integers(0), max_size=20))
def test_any_bytes_are_read_as_the_standard_says(text: str, places: list[int]) -> None:
    data = b"data: first\n\n" + text.encode()
    assert list(decode(cut(data, places))) == slow(data)
    assert list(decode(data[i : i + 1] for i in range(len(data)))) == slow(data)


def test_comments_and_a_byte_order_mark_are_passed_over() -> None:
    assert list(decode([b"\xef\xbb\xbfdata: a\r\n: wait\r", b"\n\r\n: wait\n\n"])) == [Event("a")]


def test_an_event_without_its_end_is_dropped() -> None:
    assert list(decode([b"data: a\n\ndata: b\n"])) == [Event("a")]


@pytest.mark.parametrize("stream", [b"x" * 101, b"data: " + b"x" * 101 + b"\n\n", b"data: x\n" * 60, b"\xe9" * 101])
def test_an_event_without_end_is_refused_in_bounded_memory(stream: bytes) -> None:
    with pytest.raises(ModelUnavailable):
        list(decode([stream], replace(LIMITS, event_bytes=100)))


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(ModelUnavailable):
        Decoder().push(b"data: \xe9\n\n")


def test_a_long_event_in_single_bytes_takes_linear_time() -> None:
    data = encode(Event("x" * 200_000))
    assert len(list(decode(data[i : i + 1] for i in range(len(data))))) == 1
