"""The scripted chat model does as it is told by whoever reaches a server with it, and is not to be told to death."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice

import pytest

from toolwise.core.chat import ChatRequest, Message, Role, TextDelta
from toolwise.core.clock import FakeClock
from toolwise.models.scripted_chat import ScriptedChat


def told(order: str, clock: FakeClock | None = None) -> list[str]:
    model = ScriptedChat(clock=clock or FakeClock(datetime(2027, 1, 1, tzinfo=UTC)))
    reply = model.reply(ChatRequest((Message(Role.USER, order),), max_tokens=10**9))
    return [delta.text for delta in islice(reply, 3) if isinstance(delta, TextDelta)]


def test_a_billion_words_are_made_one_by_one() -> None:
    assert told("long 999999999") == ["word0", " word1", " word2"]


@pytest.mark.parametrize("order", ["long " + "9" * 5_000, "long x", "long"])
def test_a_number_of_words_that_is_none_is_an_ordinary_line(order: str) -> None:
    assert told(order)[:2] == ["You", " said:"]


def test_no_piece_keeps_a_place_for_longer_than_a_few_seconds() -> None:
    clock = FakeClock(datetime(2027, 1, 1, tzinfo=UTC))
    assert told("pace 99999999999\nsay hi", clock) == ["hi"]
    assert clock.monotonic() == 10
