"""Where in a turn's free text a call begins. Pure: text in, text out.

What may still become the trigger is held back, however the model spells it; the rest is let go as text.
"""

from __future__ import annotations

from toolwise.notation.chat.layout import Layout
from toolwise.notation.matcher import Matcher


class Trigger:
    """Finds where a call begins in the free `text` of a turn. Calls of bare JSON begin the turn or there are none."""

    def __init__(self, layout: Layout) -> None:
        self._bare = layout.bare
        self._matcher = Matcher([layout.trigger])
        self.text = ""

    def push(self, text: str) -> tuple[str, int | None]:
        """What is certain to be no call, and the character at which one began."""
        self.text += text
        fed = self._matcher.feed(text)
        if self._bare and fed.text.strip():
            held, self._matcher = self._matcher.flush().text, Matcher([])
            return fed.text + (fed.marker or "") + fed.rest + held, None
        return fed.text, None if fed.marker is None else len(self.text) - len(fed.rest) - len(fed.marker)

    def flush(self) -> str:
        return self._matcher.flush().text
