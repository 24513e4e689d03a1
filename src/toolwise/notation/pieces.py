"""A call as the pieces that are tokenised one by one: the same in scoring, training and decoding."""

from __future__ import annotations

from toolwise.notation.markers import PLAIN, Notation, escape
from toolwise.notation.segments import Segment


def call_segments(
    body: str, result: str | None, notation: Notation = PLAIN, *, mask_result: bool = False
) -> list[Segment]:
    """open, body, arrow, " " + result, close; together they spell `inline.write_call(body, result)`.

    `mask_result` takes the loss off what the runtime writes: all that stands behind the arrow.
    """
    if result is None:
        return [Segment(notation.open), Segment(body), Segment(notation.close)]
    written = " " + escape(result, notation, after=notation.close) if result else ""
    behind = [Segment(text, loss=not mask_result) for text in (written, notation.close) if text]
    return [Segment(notation.open), Segment(body), Segment(notation.arrow), *behind]
