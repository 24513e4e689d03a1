"""Why a passage was not tried or a call not kept: every code that the stages write, with a sentence that explains it.

In the order in which the stages meet them. A new reason is one line here; a test looks for codes that have none.
"""

from __future__ import annotations

from collections.abc import Mapping

#: Stage -> code -> what it means, for somebody who sees it for the first time.
STAGES: Mapping[str, Mapping[str, str]] = {
    "not tried": {
        "no_numbers": "The passage holds no number, so there is nothing to calculate with.",
        "few_numbers": "The passage holds fewer than three numbers and announces no result, by an equals sign for one.",
        "no_arithmetic": "The passage holds numbers, but none results from two others nearby; nor was it drawn by lot.",
        "no_position": "No position was likely enough for a call, and no expression came out at a number.",
        "no_foreign": "No ten words of another language stand between English ones, so there is nothing to translate.",
        "too_many_calls": "With the calls of earlier rounds the passage is longer than a model should be given.",
        "no_date": "The document has no date, so a calendar could not answer for the day on which it was written.",
    },
    "proposed": {
        "unclosed": "The model began a call and did not end it within its tokens or its line.",
        "unknown_tool": "The model wrote a call of another tool than the one it was asked for.",
        "unparsable": "What the model wrote does not read as a call of this tool.",
        "look_ahead": "The call uses a number or a rare word that the text names only later: it was read off there.",
    },
    "executed": {
        "duplicate": "The same call was proposed at the same place already.",
        "tool_error": "The tool refused the call or could not answer it; a division by zero, for example.",
        "too_long": "The result is longer than what a model can be taught to use; have the tool say less.",
        "less_likely": "Another call has the same result at this place, and the model would sooner write that one.",
        "repeats_argument": "The result says what the call was given, so the call adds nothing.",
        "already_said": "The text has just said what the result says, so the call comes too late.",
        "copies_text": "The result has the very words that follow, many in a row: it comes from the text itself.",
    },
    "scored": {
        "no_continuation": "The text ends at this place, so there are no words to predict.",
        "bound": "The words are too easy already, or the result takes too little off, for any threshold to be reached.",
        "not_finite": "A loss came out as no finite number; nothing can be said about such a call.",
    },
    "checked": {
        "not_repeatable": "The same call, made once more, gave another result.",
        "no_agreement": "A second source, asked the same, did not say so.",
        "outdated": "The newest year that the result names is before the year of the document.",
    },
    "kept or not": {
        "below_threshold": "The result made the words that follow too little easier to predict, or harder.",
        "too_dear": "The gain reaches the threshold, but not what a call of this tool costs besides.",
        "overlap": "Another call with a larger gain stands within five tokens of this one.",
    },
}

REASONS: Mapping[str, str] = {code: said for codes in STAGES.values() for code, said in codes.items()}

_STAGE_OF = {code: stage for stage, codes in STAGES.items() for code in codes}
_RANK = {code: rank for rank, code in enumerate(REASONS)}


def stage_of(code: str) -> str:
    """The stage that writes a code."""
    return _STAGE_OF.get(code, "unknown")


def explain(code: str) -> str:
    """The sentence for a code; a folder of another version may hold one that has none."""
    return REASONS.get(code, "This version has no explanation for this reason.")


def rank(code: str) -> tuple[int, str]:
    """Sorts codes into the order of the stages, unknown ones last."""
    return _RANK.get(code, len(_RANK)), code
