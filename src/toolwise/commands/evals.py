"""`toolwise eval`: how good a model is, and the filter."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from toolwise.commands import eval_calls, eval_report
from toolwise.commands.asked_arms import ask_arms
from toolwise.commands.common import (
    DEFAULT_MODEL,
    JsonOption,
    ThreadsOption,
    ToolOptionsOption,
    examples,
)
from toolwise.commands.common import table as columns
from toolwise.commands.eval_options import (
    AT_ONCE,
    TODAY,
    TOOLS,
    AtOnceOption,
    DataOption,
    EvalToolsOption,
    ExamplesOption,
    ModelsOption,
    SeedOption,
    StartsOption,
    StrictOption,
    TodayOption,
    TopKOption,
)
from toolwise.commands.values import day
from toolwise.console import progress_bar, screen, stages
from toolwise.core.limits import LIMITS

if TYPE_CHECKING:
    from toolwise.core.chat import ChatModel


class _TaskFirst(TyperGroup):
    """A group in which the names of tasks may stand where a command's name would: `task` is the command then."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {*self.commands, *self.get_help_option_names(ctx)}
        return super().parse_args(ctx, ["task", *args] if args and args[0] not in known else args)


app = typer.Typer(
    name="eval",
    help="Measure a model on questions (eval TASK...), its calls, its perplexity, or the filter.",
    no_args_is_help=True,
    cls=_TaskFirst,
)
app.add_typer(eval_calls.app)
app.add_typer(eval_report.app)


@app.command(
    "task",
    epilog=examples(
        "toolwise eval tasks",
        "toolwise eval asdiv svamp --data eval-data --model model --examples 500",
        "toolwise eval asdiv --data hub -m base=smollm2-135m -m plain=control -m tuned=model",
        "toolwise eval asdiv --data eval-data -m tuned=model --top-k 0,1,3,10 --out ablation",
        "toolwise eval compare ablation",
    ),
)
def eval_task(
    tasks: Annotated[list[str], typer.Argument(help="Names of tasks, as `toolwise eval tasks` lists them.")],
    model: ModelsOption = None,
    data: DataOption = "hub",
    tools: EvalToolsOption = TOOLS,
    option: ToolOptionsOption = None,
    questions: ExamplesOption = None,
    seed: SeedOption = 0,
    calls: Annotated[
        bool | None,
        typer.Option(
            "--enabled/--disabled",
            help="Whether models may call: the paper's control. Default: those that were taught calls.",
            show_default=False,
        ),
    ] = None,
    top_k: TopKOption = None,
    start_threshold: StartsOption = None,
    max_calls: Annotated[int, typer.Option(min=0, help="Of an answer; the paper's is 1.")] = 1,
    today: TodayOption = TODAY,
    strict: StrictOption = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="A folder for the answers, one inside for each arm. Default: eval-TASKS."),
    ] = None,
    at_once: AtOnceOption = AT_ONCE,
    as_json: JsonOption = False,
    threads: ThreadsOption = None,
) -> None:
    """Ask models the questions of TASKS, calls being run while they write, and judge the answers by the paper's rules.

    The word `task` may be left out. Every model, and every k, is an arm, with a folder of its own in OUT: settings, and
    a line of JSON an answer. The same command goes on where it was killed. The table says for each task and arm the
    score with its 95 % interval, how often it called, and how much better it is than the first arm.
    """
    from toolwise.core.jsonio import dumps
    from toolwise.decode.engine import DecodeSettings
    from toolwise.evals.compare import arms, lines, table
    from toolwise.evals.compare import as_json as lines_json
    from toolwise.evals.run import Way, draw
    from toolwise.evals.tasks import data_source, named

    chosen, way = named(tasks), Way(DecodeSettings(max_calls=max_calls), day(today), strict, at_once)
    drawn = draw(chosen, data_source(data), questions, seed)
    place = out or Path(_default_out(tasks, questions, seed))
    starts, tooled = (top_k, start_threshold), (tools, option)
    found = lines(arms(ask_arms(place, model, way, starts, calls, (chosen, drawn), tooled, threads)))
    if as_json:
        print(dumps(lines_json(found)))
    else:
        print(table(found))
        print(f"\nThe answers are in {place}; see them together with: toolwise eval compare {place}")


def _default_out(tasks: list[str], questions: int | None, seed: int) -> str:
    """A name for what was asked, so that the same command finds its folder again and another takes another."""
    return "-".join(["eval", *tasks, *([f"{questions}"] if questions else []), *([f"seed{seed}"] if seed else [])])


@app.command("tasks", epilog=examples("toolwise eval tasks", "toolwise eval tasks --json"))
def eval_tasks(as_json: JsonOption = False) -> None:
    """The tasks: what is asked in which words, when an answer is right, which tools are off, where the data is."""
    from toolwise.core.jsonio import dumps
    from toolwise.evals.tasks import TASKS

    listed = [
        {
            **{"task": task.name, "about": task.said, "prompt": task.prompt, "right": task.rule.said},
            **{"off": ", ".join(task.without), "data": "; ".join(f"{each.file} {each.hub}" for each in task.tables)},
            "paper": task.paper,
        }
        for task in TASKS.values()
    ]
    if as_json:
        print(dumps(listed))
    else:
        head = {"task": "task", "about": "about", "prompt": "prompt", "right": "right when", "off": "tools off"}
        head |= {"data": "file, and set of the hub"}
        columns(tuple(head.values()), [[one[key] or "–" for key in head] for one in listed])


@app.command("compare", epilog=examples("toolwise eval compare ablation", "toolwise eval compare base plain tuned"))
def eval_compare(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders of runs, or folders that hold some; gains are over the first.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Several runs in one table, from their answers alone, also while they are still being made."""
    from toolwise.core.jsonio import dumps
    from toolwise.evals.compare import arms, lines, table
    from toolwise.evals.compare import as_json as lines_json

    found = lines(arms(folders))
    print(dumps(lines_json(found)) if as_json else table(found))


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


class Masked(StrEnum):
    """Every call, or none."""

    ALWAYS = "always"
    NEVER = "never"


class Choice(StrEnum):
    """The model may call, or must."""

    AUTO = "auto"
    REQUIRED = "required"


@app.command(
    "bfcl",
    epilog=examples(
        "toolwise eval bfcl --out bfcl-smollm2 --examples 40 --strict always",
        "toolwise eval bfcl --out bfcl-server --url http://127.0.0.1:8000/v1 --at-once 8",
    ),
)
def eval_bfcl(
    out: Annotated[Path, typer.Option(help="A folder for the answers, a line each; the same command goes on in it.")],
    model: Annotated[
        str | None, typer.Option("--model", "-m", help=f"As everywhere ({DEFAULT_MODEL}), or the server's name for it.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="A server that speaks OpenAI's format, instead of a model here.")
    ] = None,
    key_env: Annotated[str, typer.Option(help="The variable that holds the server's key.")] = "",
    data: Annotated[Path | None, typer.Option(help="The folder bfcl_eval of BFCL's package, if not installed.")] = None,
    categories: Annotated[str | None, typer.Option(help="With commas between them. Default: all that it has.")] = None,
    questions: Annotated[
        int | None, typer.Option("--examples", min=1, help="Of each category, drawn by lot. Default: all.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of that lot.")] = 0,
    strict: Annotated[Masked, typer.Option(help="Whether a model here is held to calls that fit.")] = Masked.ALWAYS,
    choice: Annotated[Choice, typer.Option(help="Whether it may call, as BFCL has it, or must.")] = Choice.AUTO,
    max_tokens: Annotated[int, typer.Option(min=1, help="Of an answer.")] = 256,
    at_once: Annotated[int, typer.Option(min=1, max=LIMITS.chat_connections, help="Questions asked at one time.")] = 1,
    as_json: JsonOption = False,
    threads: ThreadsOption = None,
) -> None:
    """BFCL's single-turn questions, its functions and its checker (Patil et al. 2025), a line a category.

    Without an answer (a dead server, a refused request) nothing is right, in no category; such questions are asked
    again when the command is repeated. The package: pip install --no-deps bfcl-eval==2026.3.23
    """
    from dataclasses import asdict

    from toolwise.core.jsonio import dumps
    from toolwise.evals.bfcl import CATEGORIES, Asking, bfcl_checker, digests, lines, package, run, sample, table

    folder = package(data)
    chosen = tuple(part.strip() for part in categories.split(",")) if categories else CATEGORIES
    settings = {
        **{"format": 1, "model": model or ("" if url else DEFAULT_MODEL), "url": url or "", "seed": seed},
        **{"strict": "" if url else strict.value, "choice": choice.value, "max_tokens": max_tokens},
        **{"examples": questions or 0, "data": digests(folder, chosen)},
    }

    def asked() -> ChatModel:
        if url is not None:
            from toolwise.decode.upstream import connect

            return connect(url, model or "", key_env=key_env)
        return _chat(model or DEFAULT_MODEL, strict, choice, threads)

    drawn, asking = sample(folder / "data", chosen, questions, seed), Asking(max_tokens, choice.value, at_once)
    with progress_bar() as bar:
        rows = run(out, settings, drawn, asked, bfcl_checker(folder), asking, stages(bar))
    if as_json:
        print(dumps([asdict(line) for line in lines(rows)]))
    else:
        print(table(rows))


def _chat(name: str, strict: Masked, choice: Choice, threads: int | None) -> ChatModel:
    from toolwise.decode.load import load_chat
    from toolwise.models.masks import Masks

    chat = load_chat(name, strict=strict.value, threads=threads)
    if choice is Choice.REQUIRED and chat.masks is None:  # without any, nothing can be forced: JSON, and a known name
        chat.masks = Masks(chat.model.tokenizer)
    return chat
