"""`toolwise index`: the user's own texts, made searchable for the tool Search."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolwise.commands.common import JsonOption, examples, print_json, say, table
from toolwise.console import progress_bar, stages
from toolwise.core.errors import BadInput

if TYPE_CHECKING:
    from toolwise.tools.index import Index

app = typer.Typer(
    name="index", help="Make texts searchable for the tool Search, and search them.", no_args_is_help=True
)

IndexArgument = Annotated[
    str, typer.Argument(metavar="INDEX", help="A folder that build wrote, or a pulled name such as wiki-vital.")
]


@app.command(
    epilog=examples(
        "toolwise index build notes/ --out notes.index",
        "toolwise index build hub:wikimedia/wikipedia:20231101.no --out wiki.index --language no",
        "toolwise annotate corpus.jsonl --out run --tools Search --option Search.index=notes.index",
    )
)
def build(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Texts: .txt, .jsonl, .jsonl.gz, .parquet, a folder of them, or a data set as hub:owner/name.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The index's folder. An unfinished one is continued.")],
    language: Annotated[
        str, typer.Option(help="Whose endings are cut off, as en, de, es or fr; none for any other language.")
    ] = "en",
    words: Annotated[int, typer.Option(min=1, help="Of a passage, at most.")] = 100,
) -> None:
    """Index texts for Search: cut into passages, their words counted, BM25 scores on the disk.

    A line of JSON or a row needs a `text`; its `title`, `date` and `url` are kept and shown. Killed at any time, the
    same command goes on; when the texts or the options have changed, choose another folder.
    """
    from toolwise.tools.index import IndexSettings, build_index

    with progress_bar() as bar:
        made = build_index(sources, out, IndexSettings(language, words), stages(bar))
    size = max(1, round(made.size / 1e3))
    say(f"{made.passages:,} passages of {made.documents:,} documents, {size:,} kB. Search them with:")
    say(f"toolwise index search {out} 'some words'")


@app.command(
    epilog=examples(
        "toolwise index search wiki-vital 'longest river of Africa'",
        "toolwise index search notes.index 'rent contract' --top-k 3 --page 2 --json",
    )
)
def search(
    where: IndexArgument,
    query: Annotated[str, typer.Argument(help="Words that stand in the passages; rare ones count most.")],
    top_k: Annotated[int, typer.Option(min=1, help="How many passages a page shows.")] = 5,
    page: Annotated[int, typer.Option(min=1, help="2 goes on where 1 ended.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """The passages that fit a query best, with what of them Search would show. Exits with 1 if there are none."""
    from toolwise.tools.index.snippet import snippet
    from toolwise.tools.index.words import Words

    index = _opened(where)
    words = Words(index.language)
    hits, weights = index.search(query, top_k, offset=(page - 1) * top_k), index.weights(query)
    if not words.terms(query):
        raise BadInput("There is no word in the query: write what to search for.")
    if as_json:
        print_json([asdict(hit) for hit in hits])
    for hit in hits if not as_json else ():
        say(f"{hit.score:.2f}  {hit.title or hit.id}" + "".join(f"  {said}" for said in (hit.date, hit.url) if said))
        say(f"      {snippet(hit.text, weights, 32, words)}")
    if not hits:
        if not as_json:
            say("Nothing was found." if page == 1 else f"There is no page {page}.")
        raise typer.Exit(1)


@app.command(epilog=examples("toolwise index info wiki-vital"))
def info(where: IndexArgument, as_json: JsonOption = False) -> None:
    """What an index holds and what it was made of, after a look at every byte of it."""
    index = _opened(where)
    made, begun = index.manifest, index.settings
    counts = {name: getattr(made, name) for name in ("documents", "passages", "words", "vocabulary", "postings")}
    counts = {"identity": index.identity, **counts, "bytes": made.size}
    if as_json:
        print_json({**counts, "settings": begun["settings"], "sources": begun["sources"]})
        return
    settings = ", ".join(f"{name} {value}" for name, value in begun["settings"].items())
    sources = ", ".join(f"{each['name']} ({each['digest'][:12]})" for each in begun["sources"])
    rows = [(name, f"{value:,}" if isinstance(value, int) else value) for name, value in counts.items()]
    table(("what", "value"), [*rows, ("settings", settings), ("sources", sources)])


def _opened(where: str) -> Index:
    from toolwise.models.texts import open_index

    return open_index(where)
