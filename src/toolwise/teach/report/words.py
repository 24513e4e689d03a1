"""How a report says things, the same on every page: visible text, numbers, the sentence about a threshold.

Text from documents, models and tools may hold characters that steer a terminal, turn the reading direction or hide.
`visible` leaves none of them in force. Not covered: telling such a character from its escape spelled out in the text,
and letters that look alike.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

from toolwise.teach.records import Candidate
from toolwise.teach.report.values import CONTEXT, KeptAt, Report, Shown, Threshold, ToolReport

# They join or part letters of Persian, Indic scripts and emoji, and can do nothing else.
_JOINERS = "\u200c\u200d"

#: What the three losses and the gains mean; shown wherever the numbers are.
GLOSSARY: Mapping[str, str] = {
    "loss": "How hard the next five tokens of the original text are to predict, in nats: the lower, the easier.",
    "none / call / result": "That loss with nothing in front, with the call alone, and with the call and its result.",
    "gain": "min(none, call) - result: how much the result helped. A call is kept when this reaches the threshold.",
    "control gain": "The gain of the same call with a result taken from another call: what chance alone gives.",
}


def visible(text: str, chars: int | None = None) -> str:
    """The text on one line with nothing in it that acts: what does not print is written as an escape.

    At most `chars` characters of the text, then an ellipsis. Line breaks become arrows, other spaces plain ones.
    """
    cut = text if chars is None or len(text) <= chars else text[:chars]
    return "".join(map(_visible, cut)) + ("…" if len(cut) < len(text) else "")


def _visible(character: str) -> str:
    if character.isprintable() or character in _JOINERS:
        return character
    if character == "\n":
        return "↵"
    if unicodedata.category(character) == "Zs":
        return " "
    return character.encode("unicode_escape").decode()


def call_text(row: Candidate, chars: int = 80) -> str:
    """The call as it would stand in the text; body and result are cut, and made visible."""
    if not row.body:
        return "[…]"
    body = visible(row.body, chars)
    if row.result is None:
        return f"[{body}…" if row.reason == "unclosed" else f"[{body}]"
    return f"[{body} -> {visible(row.result, chars)}]"


def around(shown: Shown) -> tuple[str, str]:
    """What stands before and after the call, visible; where the text goes on, an ellipsis for the word cut in two."""
    before, after = visible(shown.before), visible(shown.after)
    if shown.candidate.offset > CONTEXT:
        before = "…" + (before.partition(" ")[2] or before)
    if len(shown.after) == CONTEXT:
        after = (after.rpartition(" ")[0] or after) + "…"
    return before, after


def nats(value: float | None, *, sign: bool = False) -> str:
    """A loss or gain with two decimals; a dash where there is none."""
    if value is None:
        return "–"
    rounded = round(value, 2) + 0.0  # no negative zero
    return f"{rounded:+.2f}" if sign else f"{rounded:.2f}"


def share(part: float) -> str:
    """0.0312 -> `3.1%`."""
    return f"{part:.1%}"


def status(report: Report) -> str:
    """Finished or not, and how far."""
    if report.finished:
        return f"finished: {report.annotated:,} of {report.passages:,} passages are annotated"
    return (
        f"partial: {report.annotated:,} of {report.passages:,} passages are annotated so far; "
        "thresholds and kept calls may still change"
    )


def yield_of(tool: ToolReport) -> str:
    """What the tool's run comes to, in one sentence."""
    return (
        f"{tool.kept:,} of {tool.proposed:,} proposed calls were kept: {tool.kept_per_thousand:.1f} per 1,000 "
        f"passages; {share(tool.share_with_call)} of the passages hold one."
    )


def threshold_of(found: Threshold) -> str:
    """The threshold, and how it came about."""
    passed = f"{found.passing:,} of {found.controls:,} control calls pass it"
    if found.price:
        passed += f". For its cost a call must gain {nats(found.price)} more"
    if found.alpha is None:
        return f"A call is kept from a gain of {nats(found.value)} nats on; this number was given. {passed}."
    asked = f"at most {share(found.alpha)} of the control calls may pass"
    if found.value is None:
        return f"No threshold could be measured ({asked}), since there were no control calls."
    how = "the lowest that is allowed, and enough" if found.value == found.floor else "this was measured"
    return f"A call is kept from a gain of {nats(found.value)} nats on; {how}: {asked}. {passed}."


def at_thresholds(found: Sequence[KeptAt]) -> list[tuple[str, list[str]]]:
    """What thresholds keep, a line for each of what is counted."""
    return [
        ("calls kept", [f"{at.kept:,}" for at in found]),
        ("passages with one", [f"{at.passages:,}" for at in found]),
        ("controls that pass", [share(at.passing / at.controls) if at.controls else "–" for at in found]),
    ]
