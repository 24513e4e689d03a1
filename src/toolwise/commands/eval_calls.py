"""`toolwise eval`: whether calls are needed, right and worth what they cost."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
from toolwise.commands.values import day, numbers
from toolwise.console import paced, progress_bar
from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS

if TYPE_CHECKING:
    from toolwise.evals.answers import Row
    from toolwise.evals.run import Way

app = typer.Typer()

DataOption = Annotated[str, typer.Option(help="A folder with the tasks' files, or hub.")]
EvalToolsOption = Annotated[
    str, typer.Option("--tools", help="Tools, with commas between; a task has those off that know it.")
]
ExamplesOption = Annotated[
    int | None, typer.Option("--examples", min=1, help="Of each task, drawn by lot. Default: all.")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Of that lot.")]
TodayOption = Annotated[str, typer.Option(help="What the calendar says where the questions have no day of their own.")]
StrictOption = Annotated[bool, typer.Option("--strict", help="Hold every call to a tool and to its schema.")]
AtOnceOption = Annotated[
    int, typer.Option(min=1, max=LIMITS.chat_connections, help="Questions at a time; answers are the same.")
]
_TOOLS, _TODAY, _AT_ONCE = "Calculator,Calendar", "2023-01-30", 16


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
    tools: EvalToolsOption = _TOOLS,
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
    today: TodayOption = _TODAY,
    strict: StrictOption = False,
    at_once: AtOnceOption = _AT_ONCE,
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


def _print_json(value: Any) -> None:
    from toolwise.core.jsonio import dumps

    print(dumps(value))
