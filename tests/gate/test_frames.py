"""What a process says is read back exactly, or refused by an error of ours, whatever it says."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwise.core.errors import ToolFailed
from toolwise.core.limits import LIMITS
from toolwise.gate import frames
from toolwise.gate.outcome import Outcome, most_frame_bytes, pack, unpack


@given(st.lists(st.binary(max_size=50), max_size=5), st.binary(max_size=9))
def test_the_parts_of_a_frame_come_back(parts: list[bytes], rest: bytes) -> None:
    frame = frames.pack(*parts)
    assert frames.frame_bytes(frame + rest) == len(frame) == frames.packed_bytes(*map(len, parts))
    assert frames.unpack(frame, len(parts)) == parts
    for other in {0, 1, 2, 3} - {len(parts)}:
        with pytest.raises(frames.FrameError):
            frames.unpack(frame, other)


def test_a_frame_is_not_known_before_its_head_is_there() -> None:
    frame = frames.pack(b"a", b"")
    sizes = [frames.frame_bytes(frame[:end]) for end in range(len(frame) + 1)]
    assert sizes == [None] * frames.HEAD_BYTES + [len(frame)] * (len(frame) + 1 - frames.HEAD_BYTES)


def test_a_packed_outcome_is_read_back() -> None:
    outcome = Outcome("tool_failed", "né", 2**63, "trace…")
    assert unpack(pack(outcome)) == outcome


def test_the_longest_outcome_is_as_long_as_the_bound_says() -> None:
    longest = Outcome("storage_unavailable", "x" * LIMITS.result_bytes, 0, "\U0001f600" * LIMITS.audit_chars)
    assert len(pack(longest)) == most_frame_bytes(LIMITS)


@given(st.binary(max_size=60) | st.lists(st.binary(max_size=20), max_size=5).map(lambda parts: frames.pack(*parts)))
def test_a_process_that_answers_anything_has_failed_or_said_something(frame: bytes) -> None:
    with contextlib.suppress(ToolFailed):
        assert unpack(frame).code == "ok"


@given(st.data())
def test_an_answer_that_was_cut_or_changed_never_raises_anything_else(data: st.DataObject) -> None:
    frame = bytearray(pack(Outcome("ok", "text", 4, "detail")))
    frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ToolFailed):
        assert isinstance(unpack(frame[: data.draw(st.integers(0, len(frame)))]), Outcome)
