"""Names of tools on the wire: those that every API takes, one for each tool, and back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwise.core.chat import (
    CallDelta,
    ChatCall,
    ChatReply,
    ChatRequest,
    Message,
    Role,
    StopReason,
    TextDelta,
    ToolChoice,
    ToolSpec,
)
from toolwise.core.errors import BadInput
from toolwise.notation.wire.names import WireNames, wire_names

NAMES = st.lists(st.text("ab_.:/", min_size=1, max_size=5) | st.text("a.", min_size=62, max_size=64), unique=True)


def asked(*names: str, calls: tuple[ChatCall, ...] = ()) -> ChatRequest:
    messages = (Message(Role.USER, "hi"), *([Message(Role.ASSISTANT, "", calls)] if calls else []))
    return ChatRequest(messages, tools=tuple(ToolSpec(name, "", {}) for name in names))


def on_wire(*names: str) -> list[str]:
    return [tool.name for tool in wire_names(asked(*names)).sent(asked(*names)).tools]


@pytest.mark.case("R15")
def test_a_point_in_a_name_costs_nobody_anything() -> None:
    request = asked("calendar.update", "search", calls=(ChatCall("1", "calendar.update", "{}"),))
    request = ChatRequest(request.messages, tools=request.tools, choice=ToolChoice("required", ("calendar.update",)))
    names = wire_names(request)
    sent = names.sent(request)
    assert [tool.name for tool in sent.tools] == ["calendar_update", "search"]
    assert sent.choice.names == ("calendar_update",)
    assert sent.messages[1].calls[0].name == "calendar_update"
    assert names.meant(CallDelta(0, "", "1", "calendar_update")) == CallDelta(0, "", "1", "calendar.update")
    reply = ChatReply("", (ChatCall("1", "calendar_update", "{}"), ChatCall("2", "search", "{}")), StopReason.CALLS)
    assert [call.name for call in names.meant_reply(reply).calls] == ["calendar.update", "search"]


@given(NAMES, st.randoms())
def test_every_tool_has_a_name_of_its_own_that_apis_take_whatever_the_order(names: list[str], random: object) -> None:
    sent = on_wire(*names)
    assert len(set(sent)) == len(names)
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in sent)
    back = WireNames(names)
    assert [back.meant(CallDelta(0, name=name)) for name in sent] == [CallDelta(0, name=name) for name in names]
    shuffled = names.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert dict(zip(shuffled, on_wire(*shuffled), strict=True)) == dict(zip(names, sent, strict=True))


def test_a_name_that_fits_is_never_changed_for_another_one() -> None:
    assert on_wire("a_b", "a.b")[0] == "a_b"


def test_a_name_that_was_chosen_to_be_taken_for_another_is_refused() -> None:
    [_, other] = on_wire("a_b", "a.b")
    with pytest.raises(BadInput):
        on_wire("a_b", "a.b", other)


def test_what_needs_no_change_is_not_copied() -> None:
    request = asked("search", calls=(ChatCall("1", "search", "{}"),))
    assert wire_names(request).sent(request) is request


def test_a_name_that_was_not_sent_and_text_stay_as_they_are() -> None:
    names = WireNames(["a.b"])
    assert names.meant(CallDelta(0, name="other")) == CallDelta(0, name="other")
    assert names.meant(TextDelta("a_b")) == TextDelta("a_b")


def test_a_call_of_a_tool_that_is_no_longer_there_does_not_break_the_request() -> None:
    request = asked("search", calls=(ChatCall("1", "calendar.update", "{}"),))
    assert wire_names(request).sent(request).messages[1].calls[0].name == "calendar_update"
