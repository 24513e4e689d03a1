"""The benchmark of the server says what happened, also where it is bad."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("uvicorn")

from toolwise.core.chat import ChatRequest, ReplyEnded, StopReason, TextDelta
from toolwise.evals import bench_serve
from toolwise.evals.bench_serve import Found, Plan, table
from toolwise.models.scripted_chat import ScriptedChat
from toolwise.notation.wire import openai_chat, sse
from toolwise.notation.wire.base import Ident


def test_a_few_clients_get_what_each_would_get_alone_and_give_their_places_back():
    said = []
    plan = Plan("scripted", clients=3, seconds=1.5, tokens=3, hang_up=4)
    found = bench_serve.bench_serve(plan, ScriptedChat(), said.append)
    assert found.replies > 3
    assert found.hung_up > 0
    assert (found.lost, found.mixed, found.refused, found.left_over) == (0, 0, 0, 0)
    assert found.as_json()["overhead"] == pytest.approx(found.overhead)
    assert table(found).row_count >= 9


@pytest.mark.parametrize(
    ("pieces", "lost", "mixed"),
    [
        ([TextDelta("right"), ReplyEnded(StopReason.END)], 0, 0),
        ([TextDelta("wrong"), ReplyEnded(StopReason.END)], 0, 1),
        ([TextDelta("right")], 1, 0),
    ],
)
def test_a_stream_that_breaks_off_or_is_another_ones_is_counted(monkeypatch, pieces, lost, mixed):
    async def stream(*_):
        for piece in pieces:
            yield piece

    monkeypatch.setattr(bench_serve, "_stream", stream)
    plan = Plan("scripted", clients=1, seconds=1, tokens=1)
    found = Found(plan)
    until = bench_serve._CLOCK.monotonic() + 0.02
    asyncio.run(bench_serve._client(plan, found, 0, 0, "?", "right", until))
    assert found.replies > 0
    assert (found.lost, found.mixed) == (lost * found.replies, mixed * found.replies)


@pytest.mark.parametrize(("kept", "lost"), [(3, 0), (2, 1)])
def test_a_server_that_goes_away_before_it_says_that_it_is_done_has_lost_the_stream(monkeypatch, kept, lost):
    writer = openai_chat.writer(ChatRequest(()), Ident("1", "scripted", 0))
    events = [event for piece in (TextDelta("right"), ReplyEnded(StopReason.END)) for event in writer.push(piece)]

    async def exchange(*_):
        for event in events[:kept]:
            yield sse.encode(event)

    monkeypatch.setattr(bench_serve, "_exchange", exchange)
    found = Found(Plan("scripted", clients=1, seconds=1, tokens=1))
    until = bench_serve._CLOCK.monotonic() + 0.02
    asyncio.run(bench_serve._client(found.plan, found, 0, 0, "?", "right", until))
    assert found.replies > 0
    assert (found.lost, found.mixed) == (lost * found.replies, 0)
