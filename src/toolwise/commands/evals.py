"""`toolwise eval`: how good a model is, and the filter."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from toolwise.commands.common import DEFAULT_MODEL, JsonOption, ModelOption, ThreadsOption, examples
from toolwise.console import progress_bar, screen, stages
from toolwise.core.errors import BadInput

app = typer.Typer(name="eval", help="Measure a model or the filter.", no_args_is_help=True)


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
        thresholds=_numbers(tau),
    )
    if as_json:
        print(dumps(quality_json(found)))
    else:
        screen().print(table(found))


@app.command("perplexity", epilog=examples("toolwise eval perplexity wiki.txt -m smollm2-135m -m model"))
def eval_perplexity(
    text: Annotated[Path, typer.Argument(help="A plain text file, such as WikiText-2's validation text.")],
    model: Annotated[list[str], typer.Option("--model", "-m", help="A model; may be given several times.")],
    context: Annotated[int, typer.Option(min=2, help="Tokens of a window.")] = 1024,
    limit: Annotated[int | None, typer.Option(min=1, help="Read at most so many tokens.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Perplexity with calls disabled, of several models side by side."""
    from toolwise.core.jsonio import dumps
    from toolwise.evals.perplexity import compare, table
    from toolwise.models.hub import local_folder

    with progress_bar() as bar:
        found = compare(text, [str(local_folder(name)) for name in model], context, limit, stages(bar))
    if as_json:
        print(dumps(found))
    else:
        screen().print(table(found))


def _numbers(text: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or not all(map(math.isfinite, numbers)):
        raise BadInput(f"{text!r} is not a list of numbers with commas between them.")
    return numbers
