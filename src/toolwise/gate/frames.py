"""Byte strings as one frame on a stream: the length of the rest, then each part with its own length before it.

Covers: a stream that gives a frame in pieces, and bytes from a process that lies about lengths: whatever is read back
is either as many parts as were asked for or FrameError. Not covered: how much is read; the reader bounds that.
"""

from __future__ import annotations

import struct

_LENGTH = struct.Struct("!I")
HEAD_BYTES = _LENGTH.size


class FrameError(ValueError):
    """These bytes are no frame of so many parts."""


def pack(*parts: bytes) -> bytes:
    """The parts as one frame."""
    body = b"".join(piece for part in parts for piece in (_LENGTH.pack(len(part)), part))
    return _LENGTH.pack(len(body)) + body


def packed_bytes(*lengths: int) -> int:
    """How long the frame of parts of these lengths is."""
    return HEAD_BYTES + sum(HEAD_BYTES + length for length in lengths)


def frame_bytes(received: bytes | bytearray) -> int | None:
    """How long the frame is that begins so; None while its head has not arrived."""
    if len(received) < HEAD_BYTES:
        return None
    return HEAD_BYTES + int(_LENGTH.unpack_from(received)[0])


def unpack(frame: bytes | bytearray, count: int) -> list[bytes]:
    """The parts of a whole frame. Raises FrameError unless there are exactly `count` of them."""
    parts: list[bytes] = []
    start = HEAD_BYTES
    with memoryview(frame) as view:
        while start < len(view) and len(parts) < count:
            if start + HEAD_BYTES > len(view):
                raise FrameError
            end = start + HEAD_BYTES + int(_LENGTH.unpack_from(view, start)[0])
            parts.append(bytes(view[start + HEAD_BYTES : end]))
            start = end
    if start != len(frame) or len(parts) != count:
        raise FrameError
    return parts
