"""Candidates that a model samples while teaching, free and strict: what becomes of them, and what is kept.

python teach.py CORPUS --work FOLDER [--limit 24]
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from toolwise.teach.annotate import annotate
from toolwise.teach.config import load_settings
from toolwise.teach.records import Candidate


def main(
    corpus: Path,
    work: Annotated[Path, typer.Option(help="Where the two runs are kept.")],
    limit: Annotated[int, typer.Option(help="Documents of the corpus.")] = 24,
    tool: str = "Calculator",
) -> None:
    print("| sampling | candidates | read | of these ok | kept | why not read | processor s |")  # noqa: T201
    print("|---|---:|---:|---:|---:|---|---:|")  # noqa: T201
    for strict in (False, True):
        settings = load_settings("small", (tool,))
        own = settings.tools[tool].model_copy(update={"proposers": ("lm",)})
        settings = settings.model_copy(update={"tools": {tool: own}, "strict_calls": strict})
        out, before = work / ("strict" if strict else "free"), time.process_time()
        annotate(corpus, out, "smollm2-135m", settings, workers=1, limit=limit)
        spent = time.process_time() - before
        rows = [row for row in _candidates(out) if row.proposer == "lm" and row.reason != "bound"]
        unread = Counter(row.reason for row in rows if row.reason in ("unclosed", "unparsable", "unknown_tool"))
        failed = sum(row.reason == "tool_error" for row in rows)
        read = len(rows) - unread.total()
        print(  # noqa: T201
            f"| {'strict' if strict else 'free'} | {len(rows)} | {read} | {read - failed} "
            f"| {sum(row.reason is None for row in rows)} "
            f"| {', '.join(f'{reason} {count}' for reason, count in unread.most_common())} | {spent:.0f} |"
        )


def _candidates(folder: Path) -> list[Candidate]:
    import pyarrow.parquet

    files = sorted((folder / "candidates").glob("*.parquet"))
    return [Candidate(**row) for file in files for row in pyarrow.parquet.read_table(file).to_pylist()]


if __name__ == "__main__":
    typer.run(main)
