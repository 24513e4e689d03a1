"""A report as one page, in the shell that all reports have: every piece of text goes through `text`."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from toolwise.core import jsonio
from toolwise.teach.report.plots import gain_plot, loss_plot
from toolwise.teach.report.shell import number, page, table, text
from toolwise.teach.report.values import Frequent, ReasonCount, Report, Shown, ToolReport
from toolwise.teach.report.words import (
    GLOSSARY,
    around,
    at_thresholds,
    call_text,
    nats,
    share,
    status,
    threshold_of,
    yield_of,
)

_LEAD = (
    "A model read plain text and proposed tool calls in it. Every call was executed. A call was kept only where its "
    "result made the words that follow in the original text easier to predict, by at least the tool's threshold. "
    "The kept calls, woven into the text, are what a model is then trained on."
)
_LOSSES = (
    "A loss says how hard the next five tokens of the original text are to predict: the lower, the easier. The line "
    "between two dots is the gain, from the better of nothing and the call alone down to the call with its result; "
    "the control gain is the same with a result taken from another call."
)


def render_html(report: Report) -> str:
    """The whole page. Raises BadInput where matplotlib is not installed."""
    parts = [_head(report), *(_tool(tool, report) for tool in report.tools), _foot(report)]
    return page(f"Annotation run {report.name}", parts)


def _head(report: Report) -> str:
    badge = "finished" if report.finished else "partial"
    shares = share(report.augmented / max(1, report.annotated))
    return (
        f'<header>\n<h1>Annotation run <span class="name">{text(report.name, 60)}</span> '
        f'<span class="badge {badge}">{badge}</span></h1>\n'
        f'<p class="lead">{_LEAD}</p>\n'
        f"<p>{text(status(report)).capitalize()}. {report.augmented:,} of them ({shares}) hold a kept call.</p>\n"
        f"</header>"
    )


def _tool(tool: ToolReport, report: Report) -> str:
    parts = [
        f"<h2>{text(tool.name)}</h2>",
        f'<p class="lead">{yield_of(tool)}</p>',
        *(f'<p class="note">{text(note)}</p>' for note in tool.notes),
        _funnel(tool, report),
        "<h3>Why passages were left out, and calls dropped</h3>",
        _reasons(tool.reasons),
        "<h3>What decided</h3>",
        f"<p>{threshold_of(tool.threshold)}</p>",
        *_thresholds(tool),
        *([gain_plot(tool.gains, tool.threshold.value)] if tool.gains.edges else []),
        *_kept(tool),
        f'<div class="columns">{"".join(_side_tables(tool))}</div>',
    ]
    return "<section>\n" + "\n".join(parts) + "\n</section>"


def _funnel(tool: ToolReport, report: Report) -> str:
    """The way of the calls, from the passages to what was kept."""
    steps = (
        ("passages", report.annotated, "were read"),
        ("tried", report.annotated - tool.not_tried, "passed the tool's rule"),
        ("proposed", tool.proposed, "calls"),
        ("executed", tool.executed, "calls were run"),
        ("scored", tool.scored, "results were compared"),
        ("kept", tool.kept, "calls helped"),
    )
    items = (
        f'<li class="{name}"><span class="label">{name}</span><b>{count:,}</b><span class="unit">{unit}</span></li>'
        for name, count, unit in steps
    )
    return f'<ol class="funnel">{"".join(items)}</ol>'


def _reasons(reasons: tuple[ReasonCount, ...]) -> str:
    if not reasons:
        return "<p>Nothing was dropped.</p>"
    most = max(reason.count for reason in reasons)
    stages = ("", *(reason.stage for reason in reasons))
    rows = (
        _reason(reason, "" if reason.stage == last else reason.stage, most)
        for reason, last in zip(reasons, stages, strict=False)
    )
    return table(("stage", "reason", "count", "", "what it means, and the call that came closest"), rows, "reasons")


def _reason(reason: ReasonCount, stage: str, most: int) -> str:
    example = f'<div class="example">{_sentence(reason.examples[0])}</div>' if reason.examples else ""
    return (
        f"<tr><td>{text(stage)}</td><td><code>{text(reason.code, 40)}</code></td>{_numbers(reason.count)}"
        f'<td class="bars"><span class="bar" style="width:{100 * reason.count / most:.1f}%"></span></td>'
        f"<td>{escape(reason.explanation)}{example}</td></tr>"
    )


def _thresholds(tool: ToolReport) -> Iterator[str]:
    """A column a threshold, as in the paper."""
    if tool.kept_at:
        rows = (
            f"<tr><td>{title}</td>{''.join(map(number, cells))}</tr>" for title, cells in at_thresholds(tool.kept_at)
        )
        yield table(("threshold in nats", *(f"{at.tau:g}" for at in tool.kept_at)), rows, "counts")


def _kept(tool: ToolReport) -> Iterator[str]:
    yield "<h3>What was kept</h3>"
    if not tool.best:
        yield "<p>No call was kept.</p>"
        return
    yield f'<p class="lead">{_LOSSES}</p>'
    if tool.losses:
        yield loss_plot(tool.losses, tool.kept)
    for title, group in (("The largest gains", tool.best), ("The smallest gains that were kept", tool.worst)):
        if group:
            yield f"<h4>{title}</h4>"
            yield table(("gain", "control", "none", "call", "result", "in the text"), map(_call, group), "calls")


def _call(shown: Shown) -> str:
    row = shown.candidate
    numbers = (
        f'<td class="number gain">{nats(row.gain, sign=True)}</td>',
        f'<td class="number control">{nats(row.control_gain, sign=True)}</td>',
        *(f'<td class="number">{nats(loss)}</td>' for loss in (row.loss_none, row.loss_call, row.loss_result)),
    )
    return f"<tr>{''.join(numbers)}<td>{_sentence(shown)}</td></tr>"


def _sentence(shown: Shown) -> str:
    before, after = around(shown)
    kind = "call" if shown.candidate.reason is None else "call dropped"
    return (
        f'<bdi class="text">{escape(before)}</bdi> <mark class="{kind}"><bdi>{escape(call_text(shown.candidate))}</bdi>'
        f'</mark><bdi class="text">{escape(after)}</bdi>'
    )


def _side_tables(tool: ToolReport) -> Iterator[str]:
    if tool.proposers:
        rows = (
            f"<tr><td>{text(one.name, 40)}</td>{_numbers(one.proposed, one.executed, one.kept)}</tr>"
            for one in tool.proposers
        )
        yield f"<div><h3>Who proposed</h3>{table(('proposer', 'proposed', 'executed', 'kept'), rows)}</div>"
    for title, frequent in (("Most frequent results", tool.results), ("Most frequent calls", tool.bodies)):
        if frequent:
            yield f"<div><h3>{title}</h3>{_frequent(frequent)}</div>"


def _frequent(frequent: tuple[Frequent, ...]) -> str:
    rows = (
        f"<tr><td><code><bdi>{text(one.text, 80)}</bdi></code></td>{_numbers(one.executed, one.kept)}</tr>"
        for one in frequent
    )
    return table(("text", "executed", "kept"), rows)


def _numbers(*counts: int) -> str:
    return "".join(number(f"{count:,}") for count in counts)


def _foot(report: Report) -> str:
    words = "".join(f"<dt>{escape(word)}</dt><dd>{escape(said)}</dd>" for word, said in GLOSSARY.items())
    names = (("model", report.model), ("corpus", report.corpus), ("run", report.fingerprint))
    prints = "".join(f"<dt>{name}</dt><dd><code>{text(value, 80)}</code></dd>" for name, value in names)
    settings = "\n".join(text(line) for line in jsonio.pretty(report.settings).split("\n"))
    return (
        f"<footer>\n<h2>Words and numbers</h2>\n<dl>{words}</dl>\n<h3>Fingerprints</h3>\n<dl>{prints}</dl>\n"
        f"<details><summary>All settings</summary><pre>{settings}</pre></details>\n</footer>"
    )
