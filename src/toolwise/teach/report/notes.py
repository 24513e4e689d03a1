"""What in a run deserves a second look, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterator

from toolwise.core.jsonio import quote
from toolwise.teach.report.values import Frequent, ToolReport

# One result, or some words, in a quarter of at least ten kept calls: a poisoned source, or a tool with one answer.
_FLOOD_SHARE, _FLOOD_CALLS = 0.25, 10
_CHANCE = 0.05  # of the control calls


def notes(tool: ToolReport) -> tuple[str, ...]:
    """The notes on one tool; of its own notes nothing is read."""
    return (*_nothing_kept(tool), *_chance(tool), *_flood(tool))


def _nothing_kept(tool: ToolReport) -> Iterator[str]:
    if tool.kept:
        return
    if not tool.rows:
        yield "No passage has been read for this tool yet."
    elif not tool.proposed:
        yield f"Nothing was proposed: the tool's rule left out all {tool.not_tried:,} passages."
    elif tool.threshold.value is None:
        yield (
            "Nothing was kept, since no threshold could be measured: a control needs two calls with different "
            "results. Annotate more text, or give a number as tau_f."
        )
    else:
        most = max((reason for reason in tool.reasons if reason.stage != "not tried"), key=lambda one: one.count)
        yield f"Nothing was kept. Most of what was proposed was dropped as {most.code}: {most.explanation}"


def _chance(tool: ToolReport) -> Iterator[str]:
    measured = tool.threshold
    if measured.value is None or not measured.controls:
        return
    share = measured.passing / measured.controls
    if measured.alpha is None and share > _CHANCE:
        yield (
            f"{share:.0%} of the control calls, which carry another call's result, pass this threshold too: "
            "some of what was kept is chance. A higher threshold, or a measured one, keeps less of it."
        )
    if measured.alpha is not None and measured.alpha * measured.controls < 1:
        yield (
            f"The threshold rests on few control calls ({measured.controls:,}), so a single one of them may move it. "
            "More text makes it firmer."
        )


def _flood(tool: ToolReport) -> Iterator[str]:
    floods = [result for result in tool.results if _is_flood(result, tool)]
    for result in floods:
        yield (
            f"One result stands in {result.kept / tool.kept:.0%} of the kept calls: {quote(result.text)}. "
            "Look whether the tool says it rightly, or whether somebody planted it in the tool's source."
        )
    if tool.shared and not floods and _is_flood(tool.shared, tool):
        yield (
            f"The same words stand in the results of {tool.shared.kept / tool.kept:.0%} of the kept calls: "
            f"{quote(tool.shared.text, 200)}. Look whether somebody planted them in the tool's source."
        )


def _is_flood(one: Frequent, tool: ToolReport) -> bool:
    return one.kept >= _FLOOD_CALLS and one.kept >= _FLOOD_SHARE * tool.kept
