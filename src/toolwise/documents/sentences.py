"""Where sentences end.

Not covered: abbreviations other than the usual English ones, behind which an end may be seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

#: A sentence's end with the white space behind it: a stop, in other scripts too, or a line's end.
SENTENCE_END = re.compile(
    r"""
        (?<!\b[A-Z]) (?<!\b(?:Mr|Dr|St|No)) (?<!\b(?:Mrs|Sen|Rep|Gen))   # no sentence ends behind A. or Mr.
        [.!?…]["'”’)\]]*+\s++(?![a-z])                                    # nor in front of a small letter
      | [。！？]["”’」』）]*\s*
      | \n\s*
    """,
    re.VERBOSE,
)


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """[start, end) of each sentence with the white space behind it; together they are the text."""
    start = 0
    for match in SENTENCE_END.finditer(text):
        yield start, match.end()
        start = match.end()
    if start < len(text):
        yield start, len(text)
