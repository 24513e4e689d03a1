"""`toolwise export`: C* of a finished run for other trainers."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolwise.commands.common import JsonOption, examples, print_json, say, watched
from toolwise.core.errors import BadInput

if TYPE_CHECKING:
    from toolwise.teach.export import Encoding

LENGTH = 1_024  # tokens of an example, as training has it

app = typer.Typer()


@app.command(
    epilog=examples(
        "toolwise export run --to messages --out messages.jsonl",
        "toolwise export run --to tokens --model smollm2-135m --out tokens.parquet",
        "toolwise export run --to datasets --out dataset",
    )
)
def export(
    run: Annotated[Path, typer.Argument(help="A finished folder that annotate wrote.")],
    to: Annotated[
        str, typer.Option(help="text, messages (chat fine-tuning), tokens (ids and labels), or datasets (a folder).")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="A new file (.jsonl or .txt, .jsonl, .parquet), or a new folder.")
    ],
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Whose tokens: a pulled name, a folder, or a hub id.")
    ] = None,
    length: Annotated[int | None, typer.Option(min=8, help=f"Tokens of an example at most; default: {LENGTH}.")] = None,
    mask_results: Annotated[
        bool, typer.Option("--mask-results", help="Tokens without loss on what the runtime writes.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write C* of a run in a format that other trainers read, with the definitions of its tools."""
    from toolwise.teach.export import check_format, finished_run
    from toolwise.teach.export import export as write

    check_format(to, out)
    found = finished_run(run)
    encoding = None
    if to == "tokens":
        encoding = _encoding(model, length or LENGTH, mask_results)
    elif model is not None or length is not None or mask_results:
        raise BadInput(f"--model, --length and --mask-results are for tokens; leave them out for {to}.")
    done = write(replace(found, rows=watched(found.rows, "export")), to, out, encoding)
    if as_json:
        print_json({**asdict(done), "out": str(done.out)})
        return
    lost = "".join(f", {count} dropped ({reason})" for reason, count in sorted(done.dropped.items()))
    say(f"{_count(done.passages, 'passage')} with {_count(done.calls, 'call')}{lost}: {done.out}")
    if done.marked and to != "tokens":
        say(
            f"{_count(done.marked, 'passage')} of them with what many models take for a control token, such as "
            "<|im_end|>: look at how your trainer reads it, or export tokens."
        )


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' * (number != 1)}"


def _encoding(model: str | None, length: int, mask_results: bool) -> Encoding:
    from toolwise.teach.export import Encoding

    if model is None:
        raise BadInput("Tokens are those of a model: name it with --model.")
    from toolwise.models.hub import resolve
    from toolwise.models.load import load_tokenizer

    source = resolve(model)
    tokenizer = load_tokenizer(source)
    name = source.name if isinstance(source, Path) else source  # others are not told where the folder lies
    return Encoding(tokenizer, name, tokenizer.fingerprint, length, mask_results, tokenizer.end_of_text)
