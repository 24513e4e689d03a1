"""Conversations as clients and servers of OpenAI's two formats write them, and what they mean here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwise.core import jsonio
from toolwise.core.chat import gathered
from toolwise.notation.wire import openai_chat, openai_responses
from toolwise.notation.wire.sse import encode
from wire_talk import cuts, read, told

EXAMPLES = Path(__file__).parent / "examples"
FILES = sorted(file for name in ("openai_chat", "openai_responses") for file in (EXAMPLES / name).glob("*.json"))
WIRES: dict[str, Any] = {"openai_chat": openai_chat, "openai_responses": openai_responses}


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
@settings(max_examples=20)
@given(data=st.data())
def test_the_recorded_examples_are_read_as_they_say(file: Path, data: st.DataObject) -> None:
    example, wire = jsonio.loads(file.read_text(encoding="utf-8")), WIRES[file.parent.name]
    if "request" in example:
        messages = wire.read_request(example["request"]).messages
        assert [[m.role.value, m.text, [c.arguments for c in m.calls], m.call_id, m.is_error] for m in messages] == (
            example["messages"]
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
