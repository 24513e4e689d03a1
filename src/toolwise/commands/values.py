"""What the text of an option says. Each of these raises BadInput that shows how it is written."""

from __future__ import annotations

import math

from toolwise.core.errors import BadInput, ToolFailed


def day(today: str) -> str:
    """A date, which may be partial, as the calendar takes it."""
    from toolwise.tools.calendar import sentence

    try:
        sentence(today)
    except ToolFailed as error:
        raise BadInput(f"--today {today!r}: {error}.") from error
    return today


def thresholds(text: str) -> list[float | None]:
    """Probabilities; None for `chosen`."""
    parts = list(dict.fromkeys(part.strip() for part in text.split(",")))
    try:
        found = [None if part == "chosen" else float(part) for part in parts]
    except ValueError:
        found = [math.nan]
    if not all(one is None or 0 <= one <= 1 for one in found):
        raise BadInput(f"--start-threshold {text!r} is not a list of numbers in 0..1, or chosen, such as 0.05,0.2.")
    return found


def counts(text: str) -> list[int]:
    """Whole numbers; none of an empty text."""
    if not text:
        return []
    try:
        counts = list(dict.fromkeys(int(part) for part in text.split(",")))
    except ValueError:
        counts = [-1]
    if min(counts) < 0:
        raise BadInput(f"--top-k {text!r} is not a list of whole numbers with commas between them, such as 0,1,3,10.")
    return counts


def numbers(text: str) -> tuple[float, ...]:
    """Numbers of any kind, all finite."""
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or not all(map(math.isfinite, numbers)):
        raise BadInput(f"{text!r} is not a list of numbers with commas between them.")
    return numbers


def prices(given: list[str]) -> dict[str, float]:
    """Of a call by its tool's name; a number alone is that of the others, under an empty name."""
    found: dict[str, float] = {}
    for one in given:
        name, _, text = one.rpartition("=")
        try:
            found[name.strip()] = float(text)
        except ValueError:
            found[name.strip()] = math.nan
    if not all(0 <= price < math.inf for price in found.values()):
        raise BadInput(f"--price-call {given[-1]!r} is not a price, as 0.001 or Search=0.005.")
    return found
