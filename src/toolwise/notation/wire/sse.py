"""Server-sent events: bytes <-> events, however the bytes are cut (HTML standard, section 9.2).

Covered: every kind of line end, also one that is cut in two; characters that are cut in two; comments, which keep a
line open; an event of several lines. One that the stream ends in the middle of is dropped, as the standard says.

Not covered: `id` and `retry`, for no API here lets a client come back into a stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from toolwise.core.errors import ModelUnavailable
from toolwise.core.limits import LIMITS, Limits
from toolwise.notation.wire.base import Event

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\r|\n")
_TEXT_LINE_END = re.compile(r"\r\n|\r|\n")


def encode(event: Event) -> bytes:
    """The bytes of one event. Its name has no line ends; those in its data become `\\n`."""
    name = f"event: {event.name}\n" if event.name else ""
    data = "".join(f"data: {line}\n" for line in _TEXT_LINE_END.split(event.data))
    return f"{name}{data}\n".encode()


def decode(chunks: Iterable[bytes], limits: Limits = LIMITS) -> Iterator[Event]:
    """The events in a stream, each as soon as it is there. Raises as `Decoder.push` does."""
    decoder = Decoder(limits)
    for chunk in chunks:
        yield from decoder.push(chunk)


class Decoder:
    """Bytes as they come -> events."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._most = limits.event_bytes
        self._line = bytearray()  # that has no end yet
        self._after_return = False  # the last byte was \r: a \n that follows ends no other line
        self._first = True
        self._data: list[bytes] = []
        self._size = 0
        self._name = b""

    def push(self, chunk: bytes) -> list[Event]:
        """Raises ModelUnavailable for an event beyond `limits.event_bytes`, or one that is not UTF-8."""
        events = []
        for line in self._lines(chunk):
            if line:
                self._read(line)
            elif self._data:
                events.append(Event(_text(b"\n".join(self._data)), _text(self._name)))
            if not line:
                self._data, self._size, self._name = [], 0, b""
        self._check_size(self._size + len(self._line))
        return events

    def _lines(self, chunk: bytes) -> list[bytes]:
        if self._after_return and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_return = False
        self._line += chunk
        if b"\n" not in chunk and b"\r" not in chunk:
            return []
        self._after_return = chunk.endswith(b"\r")
        *lines, rest = _LINE_END.split(bytes(self._line))
        self._line = bytearray(rest)
        if self._first:
            lines[0] = lines[0].removeprefix(_BYTE_ORDER_MARK)
            self._first = False
        return lines

    def _read(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._size += len(value) + 1
            self._check_size(self._size)
            self._data.append(value)
        elif field == b"event":
            self._name = value

    def _check_size(self, size: int) -> None:
        if size > self._most:
            raise ModelUnavailable(f"The server sent an event of more than {self._most} bytes.")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ModelUnavailable("The server sent an event that is not UTF-8.") from None
