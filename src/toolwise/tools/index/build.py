"""Texts in, an index out: `build_index`. Killed at any instant, it goes on from the last whole shard when run again.

Documents are read in their order and cut into passages; some thousand passages make a shard, whose words are counted;
all counts together make the matrix. Memory holds one shard, the vocabulary and the ids of all documents; the matrix is
paged by the system.

Not covered: texts that change while they are read; more than 2**31 passages.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from toolwise.core.durable import replace_file, storage, sync_folder
from toolwise.core.errors import BadInput, Corrupt
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Document
from toolwise.core.work_folder import SETTINGS, begin
from toolwise.documents.sources import read_sources, refuse_among, source
from toolwise.tools.index import matrix
from toolwise.tools.index.manifest import (
    COUNTS,
    FORMAT,
    MANIFEST,
    MATRIX,
    PASSAGES,
    IndexSettings,
    Manifest,
    listed,
    parts,
    read_manifest,
)
from toolwise.tools.index.passages import Passage, cut
from toolwise.tools.index.shard import Shard, whole_shard, write_shard
from toolwise.tools.index.words import Words, stemmer_version

#: The bounds on which it depends what an index holds.
_SHAPING = ("shard_passages", "passage_chars", "title_chars", "word_chars")

#: (stage, done, total); the total of passages is not known before the last one.
Progress = Callable[[str, int, int | None], None]


def build_index(
    sources: Sequence[str | Path],
    out: str | Path,
    settings: IndexSettings | None = None,
    progress: Progress | None = None,
    limits: Limits = LIMITS,
) -> Manifest:
    """Index files, folders and data sets of the hub (`hub:owner/name`) into the folder `out`.

    An index that is finished and whole costs a look at its bytes; one with a damaged file is made again. Raises
    BadInput for sources that cannot be read, SettingsDiffer when `out` was begun with other sources or settings,
    InProgress when another process builds it, StorageUnavailable when the disk refuses.
    """
    folder, wanted, tell = Path(out), settings or IndexSettings(), progress or _quiet
    named = list(dict.fromkeys(map(source, sources)))  # what is named twice is meant once
    if not named:
        raise BadInput("There is nothing to index: name a file, a folder, or a data set as hub:owner/name.")
    words = Words(wanted.language, limits)  # before anything is written
    described = {
        "format": FORMAT,
        "stemmer": stemmer_version(),
        "settings": asdict(wanted),
        "limits": {name: getattr(limits, name) for name in _SHAPING},
        "sources": [{"name": each.name, "digest": each.digest()} for each in named],
    }
    refuse_among(named, folder)
    with closing(begin(folder, described, (PASSAGES, COUNTS, MATRIX), (MANIFEST,))):
        if (finished := _finished(folder)) is not None:
            return finished
        shards = list(_shards(folder, lambda: read_sources(named, limits), wanted, words, tell, limits))
        manifest = _join(folder, shards, wanted, tell)
        _clear_counts(folder)
        return manifest


def _quiet(stage: str, done: int, total: int | None) -> None:
    pass


def _finished(folder: Path) -> Manifest | None:
    """The manifest of an index that is done, if that is what `folder` holds; one that is damaged is undone."""
    if not (folder / MANIFEST).exists():
        return None
    try:
        manifest = read_manifest(folder, verify=True)
    except Corrupt:
        with storage(folder):
            (folder / MANIFEST).unlink()
            sync_folder(folder)
        return None
    _clear_counts(folder)
    return manifest


def _shards(
    folder: Path,
    documents: Callable[[], Iterator[Document]],
    settings: IndexSettings,
    words: Words,
    tell: Progress,
    limits: Limits,
) -> Iterator[Shard]:
    """The shards that are whole, then the others as they are made."""
    number = passages = read = 0
    while (shard := whole_shard(folder, number)) is not None:
        number, passages, read = number + 1, passages + shard.passages, shard.documents
        tell(PASSAGES, passages, None)
        yield shard
    taken: list[Passage] = []
    for document in islice(documents(), read, None):
        taken += cut(document, settings.words, limits)
        read += 1
        if len(taken) >= limits.shard_passages:
            yield (shard := write_shard(folder, number, taken, read, words))
            number, passages, taken = number + 1, passages + len(taken), []
            tell(PASSAGES, passages, None)
    if taken:
        yield write_shard(folder, number, taken, read, words)
        tell(PASSAGES, passages + len(taken), None)


def _join(folder: Path, shards: Sequence[Shard], settings: IndexSettings, tell: Progress) -> Manifest:
    if not any(shard.words for shard in shards):
        raise BadInput("There is no word in these texts, and so nothing to search for; check that they are texts.")
    terms, postings = matrix.write_matrix(folder, shards, settings, lambda done: tell(MATRIX, done, len(shards)))
    manifest = Manifest(
        documents=shards[-1].documents,
        passages=sum(shard.passages for shard in shards),
        words=sum(shard.words for shard in shards),
        vocabulary=terms,
        postings=postings,
        shards=tuple(shard.passages for shard in shards),
        files=tuple(listed(folder, [SETTINGS, *parts(len(shards))])),
    )
    replace_file(folder / MANIFEST, manifest.seal())
    return manifest


def _clear_counts(folder: Path) -> None:
    """Whatever stays of them after a kill is cleared by the next build, and read by nobody."""
    with suppress(OSError):
        shutil.rmtree(folder / COUNTS)
