"""`toolwise eval`: one report over several runs of questions, and how good the filter is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolwise.commands.common import DEFAULT_MODEL, JsonOption, ModelOption, ThreadsOption, examples, read_json, show
from toolwise.commands.values import numbers
from toolwise.console import screen
from toolwise.core.errors import BadInput

app = typer.Typer()


@app.command(
    "report",
    epilog=examples(
        "toolwise eval report ablation --html report.html",
        "toolwise eval report base plain tuned tuned-disabled --json > report.json",
        "toolwise eval report report.json --html report.html",
    ),
)
def eval_report(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Folders of runs, or folders that hold some; or one file that --json has written."),
    ],
    html: Annotated[Path | None, typer.Option(help="Write one page with plots to this file as well.")] = None,
    most: Annotated[
        int, typer.Option("--examples", min=0, help="Of each task, model and kind to show, the shortest.")
    ] = 3,
    as_json: JsonOption = False,
) -> None:
    """Several runs in one report, from their answers alone: scores, what calls were worth, top k, cost, examples.

    An arm that may call is held against those of its size that may not, on the same questions: the same model with
    calls disabled, the base, and the one that was trained on the plain texts.
    """
    from toolwise.core.durable import write_output
    from toolwise.core.jsonio import dumps
    from toolwise.evals import report as reports
    from toolwise.evals.compare import arms
    from toolwise.evals.tables import as_markdown

    if len(folders) == 1 and folders[0].is_file():
        found = reports.from_json(read_json(str(folders[0])))
    else:
        found = reports.summarise(arms(folders), most)
    if html is not None:
        from toolwise.evals.page import render_html

        write_output(html, render_html(found))
    if as_json:
        print(dumps(reports.as_json(found)))
    else:
        show(as_markdown(found))


@app.command(
    "filter",
    epilog=examples(
        "toolwise eval filter --data gsm8k_train.jsonl.gz --problems 30",
        "toolwise eval filter --data gsm8k_train.jsonl.gz --run run --tau 0.05,0.5,1.0,2.0",
        "toolwise eval filter --judged judged.jsonl",
    ),
)
def eval_filter(
    data: Annotated[
        Path | None, typer.Option(help="GSM8K's training file with its calculator annotations (.jsonl, .gz).")
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(help="A run over the same problems' prose, finished or not: its calls are held against people's."),
    ] = None,
    judged: Annotated[
        Path | None, typer.Option(help='Calls that people judged: lines of {"gain": 1.59, "useful": true}.')
    ] = None,
    model: ModelOption = DEFAULT_MODEL,
    problems: Annotated[int, typer.Option(min=1, help="How many to read, from the first on.")] = 40,
    wording: Annotated[str, typer.Option(help="notation (the paper's) or plain.")] = "notation",
    separator: Annotated[str, typer.Option(help="What stands between z and the text.")] = "\n",
    weigh_spaces: Annotated[bool, typer.Option(help="Whether a lone space before a number carries weight.")] = True,
    tau: Annotated[str | None, typer.Option(help="Thresholds, with commas between them; default: 0.05 and on.")] = None,
    as_json: JsonOption = False,
    threads: ThreadsOption = None,
) -> None:
    """Is the filter right? How often a person's call passes, and the same call with another problem's result.

    With --run no model is asked: of the calls that a run would keep at each threshold, how many did people make too, at
    the same place and with the same arguments; how many of theirs were found; and what that took. With --judged: do
    larger gains mean more useful calls?
    """
    from toolwise.core.jsonio import dumps

    if judged is not None:
        from toolwise.evals import usefulness as judgements
        from toolwise.teach.report.kept_at import TAUS

        useful = judgements.usefulness(judgements.judged(judged), numbers(tau) if tau else TAUS)
        print(dumps(judgements.as_json(useful)) if as_json else judgements.table(useful))
        return
    if data is None:
        raise BadInput("Name GSM8K's annotated file with --data, or judged calls with --judged.")
    if run is not None:
        from toolwise.evals import agreement
        from toolwise.teach.report.kept_at import TAUS

        agreed = agreement.agreement(run, data, numbers(tau) if tau else TAUS)
        print(dumps(agreement.as_json(agreed)) if as_json else agreement.table(agreed))
        return
    from toolwise.evals import filter as filters
    from toolwise.models.load import load_model

    found = filters.filter_quality(
        load_model(model, threads=threads),
        data,
        problems=problems,
        wording=wording,
        separator=separator,
        weigh_spaces=weigh_spaces,
        thresholds=numbers(tau or "0.05,0.1,0.25,0.5,1.0"),
    )
    if as_json:
        print(dumps(filters.as_json(found)))
    else:
        screen().print(filters.table(found))
