"""Find a marker in a stream of text pieces, holding back what may be its start.

The marker that starts first wins, and of those that start together the longest; how the stream is cut into pieces
changes nothing. What is held back is always shorter than the longest marker.

Not covered: escapes, nesting, or what a marker means. Text that was forced into a stream is not to be fed at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from toolwise.core.errors import BadInput


@dataclass(frozen=True, slots=True)
class Fed:
    """What one step yields: text that is certain to hold no marker, then the completed marker or None.

    `rest` is what followed a completed marker: unread, to be fed again or to be thrown away.
    """

    text: str
    marker: str | None = None
    rest: str = ""


class Matcher:
    """Looks for any of `markers`, which are not empty. Raises BadInput for an empty one."""

    def __init__(self, markers: Sequence[str]) -> None:
        if not all(markers):
            raise BadInput("A marker must not be empty.")
        self._markers = tuple(sorted(set(markers), key=len, reverse=True))
        # Leftmost start, and at one start the longest: what an alternation does when the longest stands first.
        self._any = re.compile("|".join(map(re.escape, self._markers)) or r"(?!)")
        self._reach = max(map(len, self._markers), default=1) - 1
        self._held = ""

    def feed(self, piece: str) -> Fed:
        """The next piece of the stream. Linear in the length of the piece."""
        text = self._held + piece
        found = self._any.search(text)
        pending = self._pending(text)
        if found and found.start() < pending:
            return self._found(text, found)
        self._held = text[pending:]
        return Fed(text[:pending])

    def flush(self) -> Fed:
        """The stream has ended: what was held back, where a marker is found if only a longer one was still awaited."""
        text, self._held = self._held, ""
        found = self._any.search(text)
        return self._found(text, found) if found else Fed(text)

    def _found(self, text: str, found: re.Match[str]) -> Fed:
        self._held = ""
        return Fed(text[: found.start()], found[0], text[found.end() :])

    def _pending(self, text: str) -> int:
        """Where the first marker that more text could complete would start; the length of the text for none."""
        starts = range(max(0, len(text) - self._reach), len(text))
        return next((i for i in starts if self._may_start(text[i:])), len(text))

    def _may_start(self, tail: str) -> bool:
        return any(len(marker) > len(tail) and marker.startswith(tail) for marker in self._markers)
