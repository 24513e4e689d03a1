"""What a run reads: passages cut from documents, or, in a second round, those of C* with the calls that they have."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

from toolwise.core.jsonio import fingerprint
from toolwise.documents import corpus_digest, read_documents
from toolwise.notation.segments import Tokenizer
from toolwise.teach.corpus import cut
from toolwise.teach.records import Augmented, Earlier, Passage
from toolwise.teach.store import Store, shards
from toolwise.teach.weave import unweave

T = TypeVar("T")


def is_run(corpus: Path) -> bool:
    """Whether this is the folder of a run, so that its C* is read."""
    return os.path.isfile(corpus / "settings.json") and os.path.isdir(corpus / "augmented")  # False for a name too long


def digest_of(corpus: Path, limit: int | None) -> str:
    """What the corpus is, once all of it was read and nothing in it is wrong. Raises BadInput, Corrupt."""
    if is_run(corpus):
        store = Store.load(corpus)
        for _ in store.read("augmented", Augmented):
            break  # every byte was checked
        assert store.manifest is not None
        return fingerprint(store.manifest["shards"])
    for _ in read_documents(corpus, limit=limit):
        pass
    return corpus_digest(corpus)


def passages_of(corpus: Path, tokenizer: Tokenizer, most_tokens: int, limit: int | None) -> Iterator[Passage]:
    """The passages of at most `limit` documents; of a run, at most `limit` passages."""
    if is_run(corpus):
        return islice(_of_run(Store.load(corpus)), limit)
    return (p for document in read_documents(corpus, limit=limit) for p in cut(document, tokenizer, most_tokens))


def in_lists(rows: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of `size` rows, the last one shorter."""
    stream = iter(rows)
    while taken := list(islice(stream, size)):
        yield taken


def _of_run(store: Store) -> Iterator[Passage]:
    augmented = store.done("augmented")
    for index, info in store.done("passages").items():
        rows = {row.passage: row for row in shards.load(store.folder, augmented[index], Augmented)}
        for passage in shards.load(store.folder, info, Passage):
            if passage.id in rows:
                yield replace(passage, calls=_calls(rows[passage.id]))


def _calls(row: Augmented) -> tuple[Earlier, ...]:
    found = zip(unweave(row), row.spans, strict=True)
    return tuple(Earlier(offset, call.body, call.result or "", span.tool) for (offset, call), span in found)
