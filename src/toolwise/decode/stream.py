"""Tokens -> text as it becomes whole: a character split over tokens is held back until its last byte is there."""

from __future__ import annotations

from collections.abc import Sequence

from toolwise.notation.segments import Tokenizer


class TextStream:
    """`push` returns the text that a token completes; `flush` what is left, replacement characters included."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._pending: list[int] = []

    @property
    def whole(self) -> bool:
        """Whether no character is only half there."""
        return not self._pending

    def push(self, token: int) -> str:
        self._pending.append(token)
        text = self._tokenizer.decode(self._pending)
        # Four bytes make the longest character: what is still broken after four tokens will not become whole.
        if text.endswith("\ufffd") and len(self._pending) < 4:
            return ""
        self._pending.clear()
        return text

    def flush(self) -> str:
        text = self._tokenizer.decode(self._pending)
        self._pending.clear()
        return text


def agreed(a: Sequence[int], b: Sequence[int]) -> int:
    """How many ids in front are the same."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
