"""`toolwise eval`: one report over several runs of questions, and how good the filter is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolwise.commands.common import DEFAULT_MODEL, JsonOption, ModelOption, ThreadsOption, examples, read_json, show
from toolwise.commands.values import numbers
from toolwise.console import screen

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


@app.command("filter", epilog=examples("toolwise eval filter --data gsm8k_train.jsonl.gz --problems 30"))
def eval_filter(
    data: Annotated[Path, typer.Option(help="GSM8K's training file with its calculator annotations (.jsonl, .gz).")],
    model: ModelOption = DEFAULT_MODEL,
    problems: Annotated[int, typer.Option(min=1, help="How many to read, from the first on.")] = 40,
    wording: Annotated[str, typer.Option(help="notation (the paper's) or plain.")] = "notation",
    separator: Annotated[str, typer.Option(help="What stands between z and the text.")] = "\n",
    weigh_spaces: Annotated[bool, typer.Option(help="Whether a lone space before a number carries weight.")] = True,
    tau: Annotated[str, typer.Option(help="Thresholds, with commas between them.")] = "0.05,0.1,0.25,0.5,1.0",
    as_json: JsonOption = False,
    threads: ThreadsOption = None,
) -> None:
    """Is the filter right? How often a person's call passes, and the same call with another problem's result."""
    from toolwise.core.jsonio import dumps
    from toolwise.evals.filter import as_json as quality_json
    from toolwise.evals.filter import filter_quality, table
    from toolwise.models.load import load_model

    loaded = load_model(model, threads=threads)
    found = filter_quality(
        loaded,
        data,
        problems=problems,
        wording=wording,
        separator=separator,
        weigh_spaces=weigh_spaces,
        thresholds=numbers(tau),
    )
    if as_json:
        print(dumps(quality_json(found)))
    else:
        screen().print(table(found))
