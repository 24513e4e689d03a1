"""A trial for the terminal: each text with its proposals marked, what became of each, and what it comes to.

Every piece of text is a `Text`, which rich prints as it is: nothing is read as markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from toolwise.teach.records import Candidate
from toolwise.teach.report.reasons import explain
from toolwise.teach.report.terminal import columns, glossary, heading, tool_section
from toolwise.teach.report.words import call_text, nats, visible
from toolwise.teach.trial.values import ToolTrial, Trial, TriedPassage

_SPREAD = 3  # of a text's calls that were merely tried in another place too, so many are shown, and those kept
_NEVER_RUN = ("unclosed", "unparsable", "unknown_tool", "look_ahead")  # the first of a place stands for all of its kind


def render_trial(trial: Trial) -> Group:
    """The trial for a console of about 100 columns; print it with `rich.console.Console().print`."""
    texts = (part for tried in trial.passages for part in _passage(tried))
    tools = (part for tool in trial.tools for part in _tool(tool))
    return Group(*texts, *tools, *_time(trial), *glossary())


def _passage(tried: TriedPassage) -> Iterator[RenderableType]:
    date = f", {tried.passage.date}" if tried.passage.date else ""
    yield Text()
    yield Rule(Text(f"{visible(tried.passage.document, 60)}{date}", "bold"), align="left")
    rows, others = _worth_showing([row for row in tried.rows if row.position >= 0])
    places = {offset: number for number, offset in enumerate(sorted({row.offset for row in rows}), 1)}
    yield _marked(tried.passage.text, places)
    for row in tried.rows:
        if row.position < 0:
            yield Text(f"{visible(row.tool)}: {explain(row.reason or '')}", "dim")
    if rows:
        yield Text()
        yield _proposals(rows, places)
    if others:
        counts = ", ".join(f"{reason} {count:,}" for reason, count in Counter(r.reason for r in others).most_common())
        yield Text(f"These calls were tried {len(others):,} times in other places as well: {counts}.", "dim")


def _worth_showing(rows: list[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
    """The rows for the table, and the others: calls that failed in places into which they were merely spread."""
    spread = [row for row in rows if row.proposer == "spread" and row.reason is not None]
    scored = sorted((row for row in spread if row.gain is not None), key=lambda row: -(row.gain or 0.0))
    others = [row for row in spread if row not in scored[:_SPREAD]]
    return [row for row in rows if row not in others], others


def _marked(text: str, places: dict[int, int]) -> Text:
    """The text on one line with a number where calls were proposed."""
    shown, last = Text(), 0
    for offset, number in places.items():
        shown.append(visible(text[last:offset])).append(f" ({number})", "bold cyan")
        last = offset
    return shown.append(visible(text[last:]))


def _proposals(rows: list[Candidate], places: dict[int, int]) -> Table:
    """A line for every different call that ran at a place, and one for each reason why others there did not."""
    titles = ("", "times", "none", "call", "result", "gain", "control")
    table = columns(*((title, "right") for title in titles), ("proposed", "left"), ("", "left"))
    times = Counter(map(_line_of, rows))
    shown: set[object] = set()
    for row in rows:
        line = _line_of(row)
        if line in shown or row.reason == "duplicate":
            continue
        shown.add(line)
        kept = row.reason is None
        table.add_row(
            Text(f"({places[row.offset]})", "cyan"),
            Text(str(times[line]) if times[line] > 1 else ""),
            *(Text(nats(loss)) for loss in (row.loss_none, row.loss_call, row.loss_result)),
            Text(nats(row.gain, sign=True), "green" if kept else ""),
            Text(nats(row.control_gain, sign=True), "dim"),
            Text(call_text(row), "bold green" if kept else ""),
            Text("kept" if kept else visible(row.reason or ""), "green" if kept else "dim"),
        )
    return table


def _line_of(row: Candidate) -> object:
    return row.offset, row.tool, row.reason if row.reason in _NEVER_RUN else row.body


def _tool(tool: ToolTrial) -> Iterator[RenderableType]:
    yield from tool_section(tool.report)
    if tool.failures:
        yield heading("Errors")
        yield _failures(tool)
    if tool.report.scored:
        yield heading("What other thresholds (tau_f) would keep")
        yield _thresholds(tool)
    for hint in tool.hints:
        yield Text(f"\n→ {visible(hint)}", "bold yellow")


def _failures(tool: ToolTrial) -> Table:
    table = columns(("count", "right"), ("code", "left"), ("what it says", "left"))
    for failure in tool.failures:
        cause = f" {failure.cause}" if failure.cause else ""
        table.add_row(Text(f"{failure.count:,}"), Text(failure.code), Text(visible(failure.text + cause, 400)))
    return table


def _thresholds(tool: ToolTrial) -> Table:
    table = columns(("tau_f", "right"), ("calls kept", "right"), ("control calls that pass", "right"))
    for kept in tool.thresholds:
        table.add_row(Text(f"{kept.tau_f:g}"), Text(f"{kept.calls:,}"), Text(f"{kept.controls:,}"))
    return table


def _time(trial: Trial) -> Iterator[RenderableType]:
    yield Text()
    yield Rule(Text("Time", "bold"), align="left")
    about = "about" if trial.corpus_counted else "at least"
    yield Text(
        f"{len(trial.passages):,} passages took {trial.seconds:.1f} s, {trial.seconds_per_passage:.1f} s each. "
        f"The corpus has {about} {trial.corpus_passages:,}: {about} {_duration(trial.estimate)} on one worker, less on "
        "several."
    )
    yield Text()


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"
