"""What was written is read in every wire format, whole and streamed, however the bytes are cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from formats import ASKED, FORMATS, Format, answered, as_streamed, as_whole, every_format, read_again, through_json
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwise.core import jsonio
from toolwise.core.chat import ChatCall, ChatReply, StopReason, gathered
from toolwise.notation.wire.sse import encode
from wire_talk import IDENT, cut_pieces, cuts, read, told, written

EXAMPLES = Path(__file__).parent / "examples"
RECORDED = [(format, file) for format in FORMATS for file in sorted((EXAMPLES / format.name).glob("*.json"))]
LARGE = '{"n":9007199254740993,"m":123456789012345678901234567890,"x":1.0}'


@pytest.mark.case("A20")
@every_format
@given(data=st.data())
def test_a_request_that_was_written_is_read_as_it_was(format: Format, data: st.DataObject) -> None:
    request = data.draw(format.requests)
    assert format.wire.read_request(through_json(format.wire.write_request(request))) == request


@pytest.mark.case("A20")
@every_format
@given(data=st.data())
def test_a_reply_that_was_written_is_read_as_it_was(format: Format, data: st.DataObject) -> None:
    reply = data.draw(format.replies)
    assert as_whole(format, reply) == reply


@every_format
@given(data=st.data())
def test_any_chunking_of_a_stream_gives_the_same_as_no_streaming(format: Format, data: st.DataObject) -> None:
    reply = data.draw(format.replies)
    events = written(format.wire.writer(ASKED, IDENT), data.draw(cut_pieces(reply)))
    chunks = data.draw(cuts(b"".join(encode(event) for event in events)))
    assert gathered(read(format.wire.reader(), chunks)) == as_whole(format, reply)


@pytest.mark.case("A12")
@every_format
def test_an_integer_beyond_a_double_is_exact_in_requests_replies_and_streams(format: Format) -> None:
    call = ChatCall("a", "f", LARGE)
    reply = ChatReply("", (call,), StopReason.CALLS)
    assert as_whole(format, reply) == as_streamed(format, reply) == reply
    assert read_again(format, *answered(call)) == tuple(answered(call))


@pytest.mark.parametrize(("format", "file"), RECORDED, ids=[f"{one.name}-{file.stem}" for one, file in RECORDED])
@settings(max_examples=20)
@given(data=st.data())
def test_the_recorded_examples_are_read_as_they_say(format: Format, file: Path, data: st.DataObject) -> None:
    example, wire = jsonio.loads(file.read_text(encoding="utf-8")), format.wire
    if "request" in example:
        asked = wire.read_request(example["request"])
        messages = [
            [m.role.value, m.text, [c.arguments for c in m.calls], m.call_id, m.is_error] for m in asked.messages
        ]
        assert messages == example["messages"]
        assert [tool.parameters for tool in asked.tools] == example.get(
            "parameters", [t.parameters for t in asked.tools]
        )
        return
    if "reply" in example:
        reply = wire.read_reply(example["reply"])
    else:
        chunks = data.draw(cuts(b"".join(encode(event) for event in told(example["events"]))))
        reply = gathered(read(wire.reader(), chunks))
    calls = [[call.name, call.arguments, call.complete] for call in reply.calls]
    usage = [reply.usage.prompt, reply.usage.completion, reply.usage.cached]
    assert [reply.text, calls, reply.stop.value, usage] == example["means"]
