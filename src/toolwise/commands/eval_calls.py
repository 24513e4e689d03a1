"""`toolwise eval`: whether calls are needed, right and worth what they cost."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolwise.commands.asked_arms import ask_arms
from toolwise.commands.common import (
    DEFAULT_MODEL,
    JsonOption,
    ModelOption,
    ThreadsOption,
    ToolOptionsOption,
    examples,
    tell_left_out,
    tool_names,
)
from toolwise.commands.common import named as named_tools
from toolwise.commands.eval_options import (
    AT_ONCE,
    TODAY,
    TOOLS,
    AtOnceOption,
    DataOption,
    EvalToolsOption,
    ExamplesOption,
    FoldersArgument,
    ModelsOption,
    SeedOption,
    StartsOption,
    StrictOption,
    TodayOption,
    TopKOption,
)
from toolwise.commands.values import day, numbers, prices
from toolwise.console import paced, progress_bar
from toolwise.core.errors import BadInput

if TYPE_CHECKING:
    from toolwise.evals.answers import Row
    from toolwise.evals.run import Way

app = typer.Typer()


@app.command(
    "calibrate",
    epilog=examples(
        "toolwise eval calibrate asdiv --data eval-data --model model --examples 200 --out curve",
        "toolwise eval calibrate asdiv svamp --data eval-data -m model -o curve --choose f1 --store",
        "toolwise eval svamp --data eval-data -m model --start-threshold chosen",
    ),
)
def calibrate(
    tasks: Annotated[list[str], typer.Argument(help="Names of tasks, as `toolwise eval tasks` lists them.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder for the answers; the same command goes on in it.")],
    model: ModelOption = DEFAULT_MODEL,
    data: DataOption = "hub",
    tools: EvalToolsOption = TOOLS,
    option: ToolOptionsOption = None,
    questions: ExamplesOption = None,
    seed: SeedOption = 0,
    thresholds: Annotated[
        str, typer.Option(help="Probabilities of the marker from which on a call starts, with commas between.")
    ] = "0.001,0.003,0.01,0.03,0.1,0.2,0.3,0.5,0.7,0.9",
    choose: Annotated[
        str, typer.Option(help="What the best threshold is best by: score, or f1 (of precision and recall).")
    ] = "score",
    store: Annotated[
        bool, typer.Option("--store", help="Keep it in the model's folder; generate, chat and serve then use it.")
    ] = False,
    max_calls: Annotated[int, typer.Option(min=1, help="Of an answer; the paper's is 1.")] = 1,
    today: TodayOption = TODAY,
    strict: StrictOption = False,
    at_once: AtOnceOption = AT_ONCE,
    as_json: JsonOption = False,
    threads: ThreadsOption = None,
) -> None:
    """Does the model call when it should? Precision and recall of its calls, over a curve of start thresholds.

    A call is needed where the answer is wrong with calls disabled, and right with one. Each question is decoded with
    calls disabled, and once for each place at which some threshold starts a call. The best threshold is the one with
    the best score, or F1; of equals, the one with the fewest calls. Measure it on other questions than these.
    """
    from toolwise.decode.engine import DecodeSettings
    from toolwise.evals import calibration
    from toolwise.evals.run import Way

    if choose not in calibration.RULES:
        raise BadInput(f"--choose {choose!r}: name {' or '.join(calibration.RULES)}.")
    at = calibration.checked(numbers(thresholds))
    way = Way(DecodeSettings(max_calls=max_calls), day(today), strict, at_once)
    asked = partial(calibration.sweep, thresholds=at)
    rows, settings = _run(out, tasks, model, data, (tools, option), (questions, seed), way, threads, asked, list(at))
    chosen = calibration.choose(rows, at, choose)
    if store:
        _store(model, calibration.as_json(rows, at, chosen), settings)
    if as_json:
        _print_json(calibration.as_json(rows, at, chosen))
        return
    print(calibration.table(calibration.curve(rows, at), chosen.threshold))
    told = f"{100 * chosen.held_out.mean:.1f} %" if chosen.held_out else "unknown"
    print(f"\nBest by {choose}: {chosen.threshold:g}; on questions that it was not chosen on, its score is {told}.")
    if store:
        print(f"It is kept in {model}, and generate, chat and serve use it unless told otherwise.")


def _store(model: str, told: dict[str, Any], settings: dict[str, Any]) -> None:
    """Keep the threshold beside the weights, with what it was chosen on and what it gave there."""
    from toolwise.models.chosen import keep_threshold

    chosen = told["chosen"]
    point = next(point for point in told["curve"] if point["threshold"] == chosen["threshold"])
    shown = {name: point[name] for name in ("asked", "called", "score", "precision", "recall")}
    tasks = {name: {"data": task["data"], "examples": task["examples"]} for name, task in settings["tasks"].items()}
    how = {"tasks": tasks, "seed": settings["seed"], "tools": settings["tools"], "decode": settings["decode"]}
    keep_threshold(model, chosen["threshold"], {"rule": chosen["rule"], **how, **shown, "held_out": chosen["held_out"]})


def _run(
    out: Path,
    tasks: list[str],
    model: str,
    data: str,
    tools: tuple[str, list[str] | None],
    sampled: tuple[int | None, int],
    way: Way,
    threads: int | None,
    ask: Any,
    thresholds: list[float],
) -> tuple[list[Row], dict[str, Any]]:
    """The rows of a calibration, and the settings that they were made with."""
    from toolwise.evals.run import draw, gates, run, run_settings, with_room
    from toolwise.evals.tasks import data_source, named
    from toolwise.models.load import describe_model, load_model
    from toolwise.models.toolbox import parse_options, toolbox

    chosen = named(tasks)
    drawn = draw(chosen, data_source(data), *sampled)
    box = toolbox(tool_names(tools[0]), parse_options(tools[1] or ()), lambda: load_model(model, threads=threads))
    tell_left_out(box)
    tokenizer, fingerprint = describe_model(model)
    settings = run_settings(fingerprint, box, drawn, way) | {"thresholds": thresholds}
    with gates(box, chosen) as opened, progress_bar() as bar:  # before the model: tools' processes are copies of this
        show = partial(paced(bar), "questions")
        fitting = with_room(way, drawn, tokenizer)
        rows = run(out, settings, drawn, lambda: load_model(model, threads=threads), opened, fitting, show, ask)
    return rows, settings


@app.command(
    "restraint",
    epilog=examples(
        "toolwise eval restraint essays.txt --model model --examples 200 --out restraint",
        "toolwise eval restraint essays.txt -m model --start-threshold 0.1,0.3 -o restraint",
    ),
)
def restraint(
    texts: Annotated[
        str, typer.Argument(help="Texts that want no call: .txt, .jsonl, .parquet, a folder, or hub:owner/name.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder for the answers, one inside for each arm.")],
    model: ModelsOption = None,
    tools: EvalToolsOption = TOOLS,
    option: ToolOptionsOption = None,
    questions: Annotated[int, typer.Option("--examples", min=1, help="Sentences, drawn by lot.")] = 200,
    seed: SeedOption = 0,
    tokens: Annotated[int, typer.Option(min=1, help="What is written behind each beginning.")] = 32,
    digits: Annotated[bool, typer.Option("--digits", help="Also sentences that hold a digit.")] = False,
    top_k: TopKOption = None,
    start_threshold: StartsOption = None,
    max_calls: Annotated[int, typer.Option(min=1, help="Of a text.")] = 1,
    today: TodayOption = TODAY,
    strict: StrictOption = False,
    at_once: AtOnceOption = AT_ONCE,
    as_json: JsonOption = False,
    threads: ThreadsOption = None,
) -> None:
    """Does the model leave calls alone where nothing wants one? Beginnings of sentences of TEXTS, gone on with.

    Told are the share of texts in which it calls, and calls for a thousand tokens that it chose. Every model, k and
    threshold is an arm, as in `toolwise eval TASK`; the same command goes on where it was killed.
    """
    from toolwise.decode.engine import DecodeSettings
    from toolwise.evals import restraint as found
    from toolwise.evals.compare import arms
    from toolwise.evals.run import Way, draw
    from toolwise.evals.tasks import data_source

    way = Way(DecodeSettings(max_calls=max_calls), day(today), strict, at_once)
    asked = [found.restraint_task(texts, tokens, digits)]
    drawn = draw(asked, data_source("."), questions, seed)
    folders = ask_arms(out, model, way, (top_k, start_threshold), None, (asked, drawn), (tools, option), threads)
    told = found.restraints(arms(folders))
    if not told:
        raise BadInput(f"No sentence of {texts!r} is long enough to be begun; name other texts, or --digits.")
    _show(found.as_json(told) if as_json else None, found.table(told))


@app.command(
    "wording",
    epilog=examples(
        "toolwise eval wording asdiv --data eval-data --model model --examples 50 --out wording",
        "toolwise eval wording asdiv nq --data hub -m model --start-threshold chosen -o wording",
    ),
)
def wording(
    tasks: Annotated[list[str], typer.Argument(help="Names of tasks, as `toolwise eval tasks` lists them.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder for the answers, one inside for each arm.")],
    model: ModelsOption = None,
    data: DataOption = "hub",
    tools: EvalToolsOption = TOOLS,
    option: ToolOptionsOption = None,
    questions: ExamplesOption = None,
    seed: SeedOption = 0,
    top_k: TopKOption = None,
    start_threshold: StartsOption = None,
    max_calls: Annotated[int, typer.Option(min=1, help="Of an answer; the paper's is 1.")] = 1,
    today: TodayOption = TODAY,
    strict: StrictOption = False,
    at_once: AtOnceOption = AT_ONCE,
    as_json: JsonOption = False,
    threads: ThreadsOption = None,
) -> None:
    """Do other words change what the model does? Each question in the paper's frame and in four others.

    Told are the shares of questions for which all five make the same decision (to call or not), the same calls, and
    the same verdict; then how often each wording makes it call, and its score. It asks five times as much as
    `toolwise eval TASK`, and goes on where it was killed.
    """
    from toolwise.decode.engine import DecodeSettings
    from toolwise.evals import paraphrase as found
    from toolwise.evals.compare import arms
    from toolwise.evals.run import Way, draw
    from toolwise.evals.tasks import data_source, named

    way = Way(DecodeSettings(max_calls=max_calls), day(today), strict, at_once)
    asked = [other for task in named(tasks) for other in found.reworded(task)]
    drawn = draw(asked, data_source(data), questions, seed)
    folders = ask_arms(out, model, way, (top_k, start_threshold), None, (asked, drawn), (tools, option), threads)
    told = found.robustness(arms(folders))
    _show(found.as_json(told) if as_json else None, found.table(told))


@app.command(
    "quality",
    epilog=examples(
        "toolwise eval asdiv --data eval-data -m model --top-k 0,10 --out ablation",
        "toolwise eval quality ablation",
        "toolwise eval quality tuned --against tuned-disabled",
    ),
)
def quality(
    folders: FoldersArgument,
    against: Annotated[
        list[Path] | None,
        typer.Option(help="Runs with calls disabled to hold answers against. Default: those among the folders."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Are the calls good ones? Well formed, valid, run, used in what is written behind them, and for the better.

    Each share holds only what those before it hold. Made of the answers alone, also while they are still being made.
    """
    from toolwise.evals import quality as found
    from toolwise.evals.compare import arms

    told = found.qualities(arms(folders), arms(against or ()))
    _show(found.as_json(told) if as_json else None, found.table(told))


@app.command(
    "cost",
    epilog=examples(
        "toolwise eval cost ablation",
        "toolwise eval cost ablation --price-read 0.0002 --price-chosen 0.0006 --price-call Search=0.005",
        "toolwise eval cost ablation --json  # a point of a plot each: score against what it took",
    ),
)
def cost(
    folders: FoldersArgument,
    price_read: Annotated[float, typer.Option(min=0, help="Of 1,000 tokens that the model reads.")] = 0.0,
    price_chosen: Annotated[float, typer.Option(min=0, help="Of 1,000 tokens that it chooses.")] = 0.0,
    price_call: Annotated[
        list[str] | None, typer.Option(help="Of a call, as 0.001, or of one tool's, as Search=0.005; may be repeated.")
    ] = None,
    tools: Annotated[
        str | None, typer.Option(help="Tools whose declared cost is the price of their calls, where none is given.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """What answers cost, and what a right one costs: tokens, seconds, calls, and money in your currency.

    All that an arm spent on wrong answers is in what its right ones cost. Made of the answers alone.
    """
    from toolwise.evals import cost as found
    from toolwise.evals.compare import arms

    declared = {name: tool.cost for name, tool in named_tools(tools).items()} if tools else {}
    given = prices(price_call or [])
    told = found.costs(
        arms(folders),
        found.Prices(price_read, price_chosen, given.pop("", 0.0), declared | given),
    )
    _show(found.as_json(told) if as_json else None, found.table(told))


def _show(value: Any, text: str) -> None:
    """JSON where there is some, otherwise the text."""
    if value is None:
        print(text)
    else:
        _print_json(value)


def _print_json(value: Any) -> None:
    from toolwise.core.jsonio import dumps

    print(dumps(value))
