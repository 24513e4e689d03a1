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
    head = [Segment(notation.open, marker=True), Segment(body)]
    if result is None:
        return [*head, Segment(notation.close, marker=True)]
    learned = not mask_result
    written = [Segment(" " + escape(result, notation, after=notation.close), learned)] if result else []
    return [*head, Segment(notation.arrow, marker=True), *written, Segment(notation.close, learned, marker=True)]
