"""`toolwise bench`: what things cost, beside a plain way of doing them."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolwise.commands.common import DEFAULT_MODEL, JsonOption, ModelOption, ThreadsOption, examples, tool_names
from toolwise.console import paced, progress_bar, screen, stages
from toolwise.core.limits import LIMITS

if TYPE_CHECKING:
    from toolwise.core.chat import ChatModel

app = typer.Typer(
    name="bench", help="Measure what things cost, beside a plain way of doing them.", no_args_is_help=True
)


@app.command("teach", epilog=examples("toolwise bench teach texts.jsonl --documents 1 --threads 1"))
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


@app.command("gate", epilog=examples("toolwise bench gate --quick"))
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


@app.command(
    "serve", epilog=examples("toolwise bench serve --model scripted --clients 64", "toolwise bench serve --clients 8")
)
def bench_serve(
    model: ModelOption = DEFAULT_MODEL,
    clients: Annotated[int, typer.Option(min=1, max=1_024, help="How many stream at one time.")] = 8,
    seconds: Annotated[float, typer.Option(min=1, help="For how long.")] = 60,
    tokens: Annotated[int, typer.Option(min=1, help="Of each reply.")] = 32,
    as_json: JsonOption = False,
    threads: ThreadsOption = None,
) -> None:
    """Many streaming clients of a server at once: what they wait for, what gets lost, and what the model takes alone.

    The model `scripted` is a script that pauses ten milliseconds before each word: it shows what the server costs.
    """
    from toolwise.core.jsonio import dumps
    from toolwise.evals.bench_serve import Plan, table
    from toolwise.evals.bench_serve import bench_serve as run

    if model == "scripted":
        from toolwise.models.scripted_chat import ScriptedChat

        asked: ChatModel = ScriptedChat(model)
    else:
        from toolwise.decode.load import load_chat

        asked = load_chat(model, threads=threads)
    plan = Plan(model, clients, seconds, tokens, threads=threads)
    found = run(plan, asked, lambda line: print(line, file=sys.stderr))
    if as_json:
        print(dumps(found.as_json()))
    else:
        screen().print(table(found))


@app.command(
    "eval", epilog=examples("toolwise bench eval asdiv --data eval-data --model model", "toolwise bench eval dateset")
)
def bench_eval(
    tasks: Annotated[list[str], typer.Argument(help="Names of tasks, as `toolwise eval tasks` lists them.")],
    model: ModelOption = DEFAULT_MODEL,
    data: Annotated[str, typer.Option(help="A folder with the tasks' files, or hub.")] = "hub",
    tools: Annotated[str, typer.Option(help="Tools, with commas between.")] = "Calculator,Calendar",
    questions: Annotated[int, typer.Option("--examples", min=1, help="Of each task, drawn by lot.")] = 60,
    top_k: Annotated[
        int, typer.Option(min=0, help="A call starts when its marker is among the k likeliest tokens; 0: none.")
    ] = 10,
    at_once: Annotated[
        int, typer.Option(min=2, max=LIMITS.chat_connections, help="Questions at a time, on the second side.")
    ] = 16,
    as_json: JsonOption = False,
    threads: ThreadsOption = None,
) -> None:
    """The same questions one at a time and many together: questions a second, the ratio, and whether answers are equal.

    One at a time is a session of its own, as `generate` has it; together is what `toolwise eval TASK` does.
    """
    from toolwise.core.jsonio import dumps
    from toolwise.decode.engine import DecodeSettings
    from toolwise.evals.bench_eval import bench_eval as run
    from toolwise.evals.bench_eval import table
    from toolwise.evals.run import Way, draw, gates, with_room
    from toolwise.evals.tasks import data_source, named
    from toolwise.models.load import load_model
    from toolwise.models.toolbox import toolbox

    chosen = named(tasks)
    drawn, box = draw(chosen, data_source(data), questions, 0), toolbox(tool_names(tools))
    decode = DecodeSettings(enabled=top_k > 0, start_top_k=max(1, top_k))
    with gates(box, chosen) as opened, progress_bar() as bar:  # before the model: tools' processes are copies of this
        loaded = load_model(model, threads=threads)
        way = with_room(Way(decode, "2023-01-30", at_once=at_once), drawn, loaded.tokenizer)
        found = run(loaded, drawn, opened, way, paced(bar))
    if as_json:
        print(dumps(found.as_json()))
    else:
        screen().print(table(found))
