"""What a model writes is told apart into text and calls, however it is cut into pieces."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwise.core.limits import Limits
from toolwise.notation.inline import PLAIN
from toolwise.notation.watch import CallWatcher, Halt, Met


def watch(pieces, *, stops=(), limits=None):
    """What comes out of a watcher, adjacent text joined; it is thrown away behind the first complete call."""
    watcher = CallWatcher(PLAIN, stops, **({"limits": limits} if limits else {}))
    out = []
    for piece in [*pieces, None]:
        for found in watcher.flush() if piece is None else watcher.push(piece):
            if isinstance(found, str) and out and isinstance(out[-1], str):
                out[-1] += found
            else:
                out.append(found)
            if isinstance(found, Halt) or (isinstance(found, Met) and found.complete):
                return out
    return out


@st.composite
def cuttings(draw, text):
    cuts = sorted(draw(st.sets(st.integers(1, len(text) - 1))))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@pytest.mark.case("J1")
@settings(max_examples=100, deadline=None)
@given(cuttings("so it is [Calculator(18 / 24) -> 0.75] 75%"))
def test_a_call_is_found_however_its_markers_are_split(pieces):
    assert watch(pieces) == ["so it is", Met("Calculator(18 / 24)", True, 8)]


@pytest.mark.case("J1")
@settings(max_examples=100, deadline=None)
@given(cuttings("a [1] b [citation needed] c [x"))
def test_brackets_that_are_no_calls_are_given_back_exactly(pieces):
    assert watch(pieces) == ["a [1] b [citation needed] c [x"]


@pytest.mark.case("J2")
@pytest.mark.parametrize("written", ["[Calculator(1+1) -> 5]", "[Calculator(1+1)-> 5", "[Calculator(1+1)]"])
def test_a_call_ends_at_its_arrow_or_its_close_and_what_follows_is_not_read(written):
    assert watch(["x " + written]) == ["x", Met("Calculator(1+1)", True, 1)]


def test_a_bracket_inside_the_arguments_does_not_end_the_call():
    assert watch([" [A([B(1)]) -> "]) == [Met("A([B(1)])", True, 0)]


@pytest.mark.case("A22")
def test_a_call_that_grows_over_the_bound_is_reported_and_its_text_released():
    text = " [Calculator(1+1" + "1" * 100
    out = watch([text], limits=Limits(call_chars=50))
    assert [type(o) for o in out] == [Met, str]
    assert not out[0].complete
    assert out[1] == text


def test_a_line_end_inside_a_call_breaks_it_off_and_releases_its_text():
    out = watch(["x [Calculator(1 +\nnew line"])
    assert out == ["x", Met("Calculator(1 +", False, 1), " [Calculator(1 +\nnew line"]


@pytest.mark.case("J3")
def test_a_call_that_is_open_when_the_writing_ends_is_reported_as_broken_off():
    assert watch(["x [Calculator(1 + "]) == ["x", Met("Calculator(1 + ", False, 1)]


def test_a_stop_string_ends_the_text_before_it():
    assert watch(["ab\n", "\ncd"], stops=("\n\n",)) == ["ab", Halt("\n\n")]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(alphabet=" [](A1->\n\\)", max_size=6), max_size=12))
def test_no_character_of_text_is_lost_or_invented(pieces):
    text = "".join(pieces)
    out = watch(pieces)
    shown = "".join(o for o in out if isinstance(o, str))
    ending = out[-1] if out and isinstance(out[-1], Met) else None
    if ending is None:
        assert shown == text
    else:
        assert text.startswith(shown)
        assert text[ending.began :].startswith(" [")
        assert shown == text[: ending.began]


@pytest.mark.parametrize("line_end", ["\n", "\r"])
def test_a_parenthesis_on_the_next_line_makes_no_call_of_a_bracket(line_end):
    text = f" [note{line_end}(see below)"
    assert watch([text]) == [text]


def test_a_space_behind_the_open_marker_makes_it_text_in_one_piece_too():
    text = " [ Calculator(1+1) -> 2]"
    assert watch([text]) == watch(list(text)) == [text]


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=" [](A1->\n\r\\", max_size=30))
def test_how_the_stream_is_cut_changes_nothing(text):
    small = Limits(call_chars=12)
    assert watch([text], limits=small) == watch(list(text), limits=small)
