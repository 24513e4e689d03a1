"""Is it true? The filter rewards what predicts well; these ask besides, before a call may be kept.

    repeat          the same call once more gives the same result                     else `not_repeatable`
    second_source   another tool, asked the same, says so too                         else `no_agreement`
    not_older       no year that the result names is before the document's, unless a later one stands beside it;
                    a result that names no year passes                                else `outdated`

Not covered: truth. Two sources can share a mistake, and what is repeated is not right for that.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from toolwise.core.errors import BadInput
from toolwise.core.schema import raw_argument
from toolwise.notation.inline import PLAIN, Notation, read_arguments, read_body, write_body
from toolwise.teach.config import ToolSettings
from toolwise.teach.execute import Executor
from toolwise.teach.records import Candidate, Passage
from toolwise.tools.registry import Registry

#: The reason to drop a call, or None.
Check = Callable[[Passage, Candidate, Executor], str | None]

_WORD = re.compile(r"\w+")
_YEAR = re.compile(r"(?<![\d.,])(?:1[0-9]|20)[0-9]{2}(?![\d%]|[.,]\d)")
#: The share of the first result's words that a second source must have, too.
_AGREEMENT = 0.5


def check_named(name: str, tool: str, settings: ToolSettings, registry: Registry, notation: Notation = PLAIN) -> Check:
    """The check `repeat`, `second_source` or `not_older` for the calls of `tool`.

    Raises BadInput for another name, and for a second source that is none: it is no tool of the run, is this tool
    itself, or takes anything but one text.
    """
    if name == "repeat":
        return repeat
    if name == "not_older":
        return not_older
    if name == "second_source":
        if settings.second_source == tool:
            raise BadInput(f"{tool} cannot be its own second source, which would always agree: name another tool.")
        return second_source(settings.second_source, registry, notation)
    raise BadInput(f"There is no check {name!r}; use repeat, second_source or not_older.")


def repeat(passage: Passage, candidate: Candidate, executor: Executor) -> str | None:
    """The same call once more."""
    return None if executor.again(passage, candidate.body).text == candidate.result else "not_repeatable"


def not_older(passage: Passage, candidate: Candidate, executor: Executor) -> str | None:
    """The newest year of the result against the document's."""
    years = [int(year) for year in _YEAR.findall(candidate.result or "")]
    written = passage.date[:4] if passage.date else ""
    return "outdated" if years and written.isdecimal() and max(years) < int(written) else None


def second_source(other: str, registry: Registry, notation: Notation = PLAIN) -> Check:
    """Another tool of the run is asked for the first argument: half of the result's words must be its answer's."""
    if other not in registry:
        raise BadInput(f"The check second_source needs another of the run's tools as second_source, not {other!r}.")
    tool = registry[other]
    takes = raw_argument(tool.parameters)
    if takes is None:
        raise BadInput(f"{other} cannot be a second source: it does not take one text.")

    def check(passage: Passage, candidate: Candidate, executor: Executor) -> str | None:
        raw = read_body(candidate.body, notation)[1]
        arguments = read_arguments(raw, registry[candidate.tool], notation)
        asked = write_body(tool, {takes: str(next(iter(arguments.values()), ""))}, notation)
        answer = executor.again(passage, asked)
        return None if answer.ok and _agree(candidate.result or "", answer.text) else "no_agreement"

    return check


def _agree(first: str, second: str) -> bool:
    """All numbers of the first stand in the second, and at least half of its words."""
    said, there = (set(_WORD.findall(text.casefold())) for text in (first, second))
    numbers = {word for word in said if word.isdecimal()}
    return numbers <= there and len(said & there) >= _AGREEMENT * len(said)
