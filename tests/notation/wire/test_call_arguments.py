"""A call's arguments, piece by piece."""

from __future__ import annotations

from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwise.notation.wire.turn import Arguments, arguments_text
from wire_talk import ARGUMENTS, cuts


def told(pieces: list[str]) -> str:
    arguments = Arguments()
    return "".join([*(arguments.push(piece) for piece in pieces), arguments.end()])


@given(st.data(), ARGUMENTS | st.sampled_from(["", "null", "nu", "nullable", "[1]", " null", "no"]))
def test_pieces_are_the_same_as_the_whole_however_it_is_cut(data: st.DataObject, text: str) -> None:
    assert told(data.draw(cuts(text))) == arguments_text(text)


def test_what_cannot_be_nothing_any_more_is_told_at_once() -> None:
    arguments = Arguments()
    assert [arguments.push(piece) for piece in (" ", "n", "o", "!", " ", " ")] == ["", "", " no", "!", " ", " "]


@pytest.mark.parametrize("begun", ["", "nul", "null"])
def test_blanks_without_end_take_linear_time(begun: str) -> None:
    before = perf_counter()
    assert told([begun, *(" " for _ in range(200_000))]).strip() in ("{}", "nul")
    assert perf_counter() - before < 2  # the square of it, where all are looked at with each
