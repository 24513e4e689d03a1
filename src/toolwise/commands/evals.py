"""`toolwise eval`: how good a model is, and the filter."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolwise.commands.common import DEFAULT_MODEL, JsonOption, ModelOption, ThreadsOption, examples
from toolwise.console import progress_bar, screen, stages
from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS

if TYPE_CHECKING:
    from toolwise.core.chat import ChatModel

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


def _numbers(text: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or not all(map(math.isfinite, numbers)):
        raise BadInput(f"{text!r} is not a list of numbers with commas between them.")
    return numbers
