"""An evaluation as one page, in the shell that all reports have: every piece of text goes through `text`."""

from __future__ import annotations

from collections.abc import Iterator

from toolwise.core import jsonio
from toolwise.evals.plots import cost_plot, k_plots, score_plot, size_plot
from toolwise.evals.report import Report, Shown
from toolwise.evals.tables import Titled, findings, name, said, tables
from toolwise.teach.report.shell import number, page, table, text
from toolwise.teach.report.words import visible

_STYLE = """
.findings { margin: 1rem 0; padding-left: 1.2rem; }
.findings li { margin: .3rem 0; }
.findings li::marker { color: var(--faint); font-size: 1.3em; }
.findings .helps::marker { color: var(--kept); }
.findings .harms::marker { color: var(--control); }
h2 ~ h2 { margin-top: 1.75rem; }
.figures { margin: .5rem 0 .25rem; }
.figures th, .figures td { padding-right: 1.2rem; }
.figures th { text-align: right; }
.names1 th:nth-child(-n + 1), .names2 th:nth-child(-n + 2), .names3 th:nth-child(-n + 3) { text-align: left; }
.figures .again { color: transparent; }
.figures .best { color: var(--kept); font-weight: 600; }
.plot { min-width: 40rem; }
.shown { border-left: 3px solid var(--line); padding: .1rem 0 .1rem 1rem; margin: 1rem 0; }
.shown.helped { border-color: var(--kept); }
.shown.harmed { border-color: var(--control); }
.shown p { margin: .15rem 0; overflow-wrap: anywhere; }
.shown .who { color: var(--quiet); font-size: .85rem; }
.shown .role { display: inline-block; min-width: 7.5rem; color: var(--quiet); font-size: .85rem; }
"""
_LEAD = (
    "Models were asked questions, and called tools while they wrote. A score is the share of right answers, by each "
    "task's rule. What calls are worth, controls tell that were asked the same questions: the same model with calls "
    "disabled, the model as it was, and one that was trained on the same texts without calls."
)


def render_html(report: Report) -> str:
    """The whole page. Raises BadInput where matplotlib is not installed."""
    found = {one.title: one for one in tables(report)}
    return page("Evaluation", [_head(report), *_scores(report, found), *_rest(report, found), _foot(report)], _STYLE)


def _head(report: Report) -> str:
    unfinished = any(arm.answers < arm.of for arm in report.arms)
    badge = "partial" if unfinished else "finished"
    tasks = len({line.task for line in report.lines})
    answers = sum(arm.answers for arm in report.arms)
    counted = f"{answers:,} answers: {_count(len(report.arms), 'arm')}, {_count(tasks, 'task')}."
    return (
        f'<header>\n<h1>Evaluation <span class="badge {badge}">{badge}</span></h1>\n<p class="lead">{_LEAD}</p>\n'
        f'<p>{counted}</p>\n<ul class="findings">{"".join(_findings(report))}</ul>\n</header>'
    )


def _findings(report: Report) -> Iterator[str]:
    return (f'<li class="{one.verdict}">{text(one.said)}</li>' for one in findings(report))


def _scores(report: Report, found: dict[str, Titled]) -> Iterator[str]:
    yield _section(*_titled(found, "Scores", score_plot(report)), *_titled(found, "What calls are worth"))
    sizes = size_plot(report)
    if sizes:
        yield _section("<h2>Sizes of model</h2>", _drawn(sizes))


def _rest(report: Report, found: dict[str, Titled]) -> Iterator[str]:
    if "By top k" in found:
        yield _section(*_titled(found, "By top k", *k_plots(report)))
    yield _section(*_titled(found, "Cost", cost_plot(report)), *_titled(found, "Calls"))
    yield from _examples(report)
    yield _section(*_titled(found, "Arms"), *_titled(found, "Tasks"))


def _section(*parts: str) -> str:
    return "<section>\n" + "\n".join(part for part in parts if part) + "\n</section>"


def _titled(found: dict[str, Titled], title: str, *plots: str) -> Iterator[str]:
    if title in found:
        yield f'<h2>{text(title)}</h2>\n<p class="lead">{text(found[title].about)}</p>'
        yield from map(_drawn, plots)
        yield _table(found[title])


def _drawn(plot: str) -> str:
    """On a narrow screen a plot is moved, not shrunk until nobody can read it."""
    return f'<div class="wide">{plot}</div>' if plot else ""


def _table(one: Titled) -> str:
    above = ((), *one.rows)
    rows = (f"<tr>{''.join(_cells(one, number, above[number]))}</tr>" for number in range(len(one.rows)))
    return table(map(text, one.head), rows, f"figures names{one.names}")


def _cells(one: Titled, row: int, above: tuple[str, ...]) -> Iterator[str]:
    """The cells of a row; first words that are those of the row above are not shown again."""
    again = True
    for column, cell in enumerate(one.rows[row]):
        again = again and column < one.names - 1 and above[column : column + 1] == (cell,)
        if (row, column) in one.best:
            yield f'<td class="number best">{text(cell)}</td>'
        elif column < one.names:
            yield f'<td class="again">{text(cell)}</td>' if again else f"<td>{text(cell)}</td>"
        else:
            yield number(text(cell))


def _examples(report: Report) -> Iterator[str]:
    for title, helped in (("Right only with the tool", True), ("Wrong only with it", False)):
        shown = [one for one in report.examples if one.helped is helped]
        if shown:
            yield _section(f"<h2>{title}</h2>", *map(_shown, shown))


def _shown(one: Shown) -> str:
    kind = "helped" if one.helped else "harmed"
    without = text(said(one.without)) or "<i>nothing</i>"
    lines = (("with calls", _written(one)), (text(name(one.control)), without))
    answers = "".join(f'<p><span class="role">{role}</span> <bdi>{told}</bdi></p>' for role, told in lines)
    return (
        f'<div class="shown {kind}"><p class="who">{text(name(one.task))}, {text(name(one.arm))}</p>'
        f"<p><bdi>{text(said(one.prompt))}</bdi></p>{answers}"
        f'<p><span class="role">right</span> <bdi>{text(said(" | ".join(one.answers)))}</bdi></p></div>'
    )


def _written(one: Shown) -> str:
    """The answer, its first call marked."""
    written = said(one.written)
    start = written.find(visible(one.call))
    if start < 0 or not one.call:
        return text(written)
    end = start + len(visible(one.call))
    told = written.find(visible(one.result.strip()), end) if one.result.strip() else -1
    end = told + len(visible(one.result.strip())) if told >= 0 else end
    return f'{text(written[:start])}<mark class="call">{text(written[start:end])}</mark>{text(written[end:])}'


def _foot(report: Report) -> str:
    settings = {arm.label: arm.settings for arm in report.arms}
    lines = "\n".join(text(line) for line in jsonio.pretty(settings).split("\n"))
    return f"<footer>\n<details><summary>All settings</summary><pre>{lines}</pre></details>\n</footer>"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
