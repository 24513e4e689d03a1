"""The options that commands of `toolwise eval` share, and their defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolwise.commands.common import DEFAULT_MODEL
from toolwise.core.limits import LIMITS

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
ModelsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        help=f"As everywhere ({DEFAULT_MODEL}), or NAME=MODEL, NAME being its arm's; may be given again.",
    ),
]
TopKOption = Annotated[
    str | None,
    typer.Option(
        help="A call starts when its marker is among the k likeliest tokens; several with commas, 0: none. "
        "Default: 10, or nothing but the thresholds."
    ),
]
StartsOption = Annotated[
    str | None,
    typer.Option(
        "--start-threshold",
        help="Or when its marker has at least this probability; several with commas, "
        "chosen: what the model's folder carries.",
    ),
]
FoldersArgument = Annotated[list[Path], typer.Argument(help="Folders of runs, or folders that hold some.")]
TOOLS, TODAY, AT_ONCE = "Calculator,Calendar", "2023-01-30", 16
