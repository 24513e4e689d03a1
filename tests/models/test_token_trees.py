"""Requests that begin alike share a row of the batch (models/packing.py)."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.models.test_conformance import TOKENIZER, reference, tiny

from toolwise.models.base import ScoreRequest
from toolwise.models.packing import batches, trees

ROTARY = "llama: rotary positions, grouped heads"


def requests_at_places_of(text: str, said: list[str]) -> list[ScoreRequest]:
    """Each said at every fifth place of the text, and the four tokens behind it scored."""
    ids = TOKENIZER.encode(text)
    calls = [TOKENIZER.encode(one) for one in said]
    return [
        ScoreRequest(ids[:at] + call + ids[at : at + 4], at + len(call))
        for at in range(5, len(ids) - 4, 5)
        for call in calls
    ]


@st.composite
def some_requests(draw: st.DrawFn) -> list[ScoreRequest]:
    lines = draw(st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=12), min_size=1, max_size=12))
    return [ScoreRequest(tuple(ids), draw(st.integers(1, len(ids) - 1))) for ids in lines]


@given(some_requests(), st.integers(1, 30))
def test_every_request_is_a_way_through_one_tree(requests: list[ScoreRequest], most: int) -> None:
    found = list(trees(requests, most))
    assert {r for tree in found for r in tree.reads} == set(requests)
    for tree in found:
        assert len(tree.ids) <= most or len(tree.reads) == 1
        sees = tree.visible()
        for request, nodes in tree.reads.items():
            for at, node in enumerate(nodes, request.start):
                way = np.flatnonzero(sees[node])
                assert tuple(tree.ids[i] for i in way) == request.ids[:at]
                assert [tree.depths[i] for i in way] == list(range(at))


@given(some_requests(), st.integers(1, 40), st.integers(1, 40))
def test_batches_hold_every_tree_within_their_bounds(requests: list[ScoreRequest], tokens: int, rows: int) -> None:
    found = list(batches(requests, tokens, rows))
    assert {r for batch in found for tree in batch for r in tree.reads} == set(requests)
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(len(tree.ids) for tree in batch) <= tokens
        assert len(batch) == 1 or len(batch) * max(len(tree.read) for tree in batch) <= rows


def test_what_candidates_of_one_text_begin_with_is_read_once() -> None:
    model = tiny(ROTARY)
    requests = requests_at_places_of("one text of many words, and calls at many places", [" [A ->", " [B -> 1]"])
    model.score(requests)
    alone = sum(len(request.ids) - 1 for request in requests)
    assert model.usage.positions < alone / 2


def test_packed_losses_are_those_of_each_request_alone() -> None:
    model = tiny(ROTARY)
    requests = requests_at_places_of("one text of many words, and calls at many places", [" [A ->", " [B -> 1]"])
    for packed, alone in zip(model.score(requests), reference(model).score(requests), strict=True):
        np.testing.assert_allclose(packed, alone, atol=1e-4)
