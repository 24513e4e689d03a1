"""A turn and its pieces are the same turn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolwise.core.chat import (
    CallDelta,
    ChatCall,
    ChatReply,
    ChatRequest,
    ReplyEnded,
    StopReason,
    TextDelta,
    TokenUsage,
    ToolChoice,
    ToolSpec,
    gathered,
    pieces,
)

CALLS = st.builds(ChatCall, st.text(), st.text(), st.text(), st.booleans())
USAGE = st.builds(TokenUsage, st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
REPLIES = st.builds(ChatReply, st.text(), st.lists(CALLS, max_size=3).map(tuple), st.sampled_from(StopReason), USAGE)


@given(REPLIES)
def test_the_pieces_of_a_turn_make_the_turn(reply: ChatReply) -> None:
    assert gathered(pieces(reply)) == reply


def test_pieces_of_calls_may_come_in_turns() -> None:
    first, second = CallDelta(0, '{"a"', "x", "A"), CallDelta(1, "{", "y", "B")
    rest = [CallDelta(0, ": 1}"), TextDelta("so"), CallDelta(1, "}"), ReplyEnded(StopReason.CALLS)]
    calls = (ChatCall("x", "A", '{"a": 1}'), ChatCall("y", "B", "{}"))
    assert gathered([first, second, *rest]) == ChatReply("so", calls, StopReason.CALLS)


def test_a_stream_that_breaks_off_is_a_turn_that_was_cut() -> None:
    assert gathered([TextDelta("so"), CallDelta(0, "{}", "x", "A")]).stop is StopReason.LENGTH


def test_only_the_chosen_tools_may_be_called() -> None:
    tools = (ToolSpec("A", "", {}), ToolSpec("B", "", {}))
    assert ChatRequest((), tools=tools).callable == tools
    assert ChatRequest((), tools=tools, choice=ToolChoice("required", ("B",))).callable == tools[1:]
    assert ChatRequest((), tools=tools, choice=ToolChoice("none")).callable == ()
