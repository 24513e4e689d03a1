"""What a client is told of its schemas that no mask enforces: a header of the reply.

    x-toolwise-not-masked: weather uniqueItems /properties/cities; (output) not /

Names and places come from the request's own schemas: whatever is not plain ASCII is written as in a URL, and what does
not fit the bound is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from toolwise.core.limits import LIMITS, Limits
from toolwise.notation.grammar.grammar import Downgrade

NOT_MASKED = "x-toolwise-not-masked"
_OUTPUT = "(output)"  # no tool can have this name here: parentheses would be written otherwise


def not_masked(lost: Sequence[Downgrade], limits: Limits = LIMITS) -> dict[str, str]:
    """The header, or none where nothing was lost."""
    return {NOT_MASKED: "; ".join(_said(lost, limits.told_bytes))} if lost else {}


def _said(lost: Sequence[Downgrade], left: int) -> Iterator[str]:
    for number, one in enumerate(lost):
        tool, place = quote(one.tool, safe="") or _OUTPUT, quote(one.pointer or "/", safe="/$")
        said = f"{tool} {quote(one.keyword, safe='$')} {place}"
        left -= len(said) + len("; ")
        if left < 0:
            yield f"and {len(lost) - number} more"
            return
        yield said
