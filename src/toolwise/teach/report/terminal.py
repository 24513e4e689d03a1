"""A report for the terminal. Every piece of text is a `Text`, which rich prints as it is: nothing is read as markup."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from toolwise.teach.report.values import ReasonCount, Report, Shown, ToolReport
from toolwise.teach.report.words import (
    GLOSSARY,
    around,
    at_thresholds,
    call_text,
    nats,
    share,
    status,
    threshold_of,
    visible,
    yield_of,
)

_BAR = 12  # characters of the longest bar
_ID = 12  # characters of a fingerprint


def render_terminal(report: Report) -> Group:
    """The report for a console of about 100 columns; print it with `rich.console.Console().print`."""
    parts = (part for tool in report.tools for part in tool_section(tool))
    return Group(*_head(report), _overview(report), *parts, *glossary())


def _head(report: Report) -> Iterator[RenderableType]:
    yield Text(f"Annotation run {visible(report.name, 60)}", style="bold")
    yield Text(status(report), style="green" if report.finished else "yellow")
    yield Text(
        f"model {visible(report.model[:_ID])} · corpus {visible(report.corpus[:_ID])} · "
        f"run {visible(report.fingerprint[:_ID])}",
        style="dim",
    )


def _overview(report: Report) -> Table:
    titles = ("not tried", "proposed", "executed", "scored", "kept", "per 1,000", "passages with a call")
    table = columns(("tool", "left"), *((title, "right") for title in titles))
    for tool in report.tools:
        counts = (tool.not_tried, tool.proposed, tool.executed, tool.scored, tool.kept)
        rate = (f"{tool.kept_per_thousand:.1f}", share(tool.share_with_call))
        table.add_row(Text(visible(tool.name, 24), "bold"), *(Text(f"{n:,}") for n in counts), *map(Text, rate))
    return table


def tool_section(tool: ToolReport) -> Iterator[RenderableType]:
    """All that is said of one tool."""
    yield Text()
    yield Rule(Text(visible(tool.name), "bold"), align="left")
    yield Text(yield_of(tool))
    yield Text(threshold_of(tool.threshold))
    for note in tool.notes:
        yield Text(f"! {visible(note)}", style="yellow")
    if tool.kept_at:
        yield heading("What other thresholds keep")
        yield _kept_at(tool)
    if tool.reasons:
        yield heading("Why passages were left out, and calls dropped")
        yield _reasons(tool.reasons)
    if tool.proposers:
        yield heading("Who proposed")
        yield _proposers(tool)
    if tool.best:
        yield heading("Kept calls, the largest gains first" + (", then the smallest" if tool.worst else ""))
        yield _calls(tool)
    if tool.results:
        yield heading("Most frequent results")
        yield _frequent(tool)


def _kept_at(tool: ToolReport) -> Table:
    """A column a threshold, as in the paper."""
    table = columns(("tau_f", "left"), *((f"{at.tau:g}", "right") for at in tool.kept_at))
    for title, row in at_thresholds(tool.kept_at):
        table.add_row(Text(title), *map(Text, row))
    return table


def _reasons(reasons: tuple[ReasonCount, ...]) -> Table:
    table = columns(("reason", "left"), ("count", "right"), ("", "left"), ("what it means", "left"))
    most = max(reason.count for reason in reasons)
    for reason in reasons:
        bar = "█" * max(1, round(_BAR * reason.count / most))
        table.add_row(
            Text(visible(reason.code, 24)), Text(f"{reason.count:,}"), Text(bar, "cyan"), Text(reason.explanation)
        )
    return table


def _proposers(tool: ToolReport) -> Table:
    table = columns(("proposer", "left"), *((title, "right") for title in ("proposed", "executed", "kept")))
    for one in tool.proposers:
        counts = (one.proposed, one.executed, one.kept)
        table.add_row(Text(visible(one.name, 24)), *(Text(f"{count:,}") for count in counts))
    return table


def _calls(tool: ToolReport) -> Table:
    titles = ("gain", "control", "none", "call", "result")
    table = columns(*((title, "right") for title in titles), ("in the text", "left"))
    for group in (tool.best, tool.worst):
        for shown in group:
            row = shown.candidate
            table.add_row(
                Text(nats(row.gain, sign=True), "green"),
                Text(nats(row.control_gain, sign=True), "dim"),
                *(Text(nats(loss)) for loss in (row.loss_none, row.loss_call, row.loss_result)),
                _sentence(shown),
            )
        table.add_section()
    return table


def _sentence(shown: Shown) -> Text:
    before, after = around(shown)
    return Text.assemble(before, " ", (call_text(shown.candidate), "bold green"), after)


def _frequent(tool: ToolReport) -> Table:
    table = columns(("kept", "right"), ("executed", "right"), ("result", "left"))
    for one in tool.results:
        table.add_row(Text(f"{one.kept:,}"), Text(f"{one.executed:,}"), Text(visible(one.text, 80)))
    return table


def glossary() -> Iterator[Text]:
    """The words behind the numbers."""
    yield Text()
    for word, meaning in GLOSSARY.items():
        yield Text.assemble((word, "bold"), f"  {meaning}", style="dim")


def heading(title: str) -> Text:
    """Above a table."""
    return Text(f"\n{title}", style="bold")


def columns(*titles: tuple[str, str]) -> Table:
    """A table of `titles`, each with the side (`left`, `right`) to which its cells lean."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title, side in titles:
        table.add_column(Text(title), justify="right" if side == "right" else "left")
    return table
