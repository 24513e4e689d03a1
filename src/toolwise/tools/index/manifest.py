"""What an index is made of, and whether it is whole: settings first, manifest last, a digest of every file.

    settings.json            format, settings and the digests of the sources; written first
    passages/00000.jsonl     a shard of the passages, one a line
    passages/00000.json      what is remembered of the shard; without it the shard is made again
    counts/00000.npz         its words, counted; gone once the matrix is made
    matrix/                  the BM25 scores in the layout of bm25s, the vocabulary, where passages begin
    manifest.json            sizes and digests of all that is needed to search; written last
    lock                     held by the one process that builds

Covered: an index that is not all of one building: half-built, cut, flipped, mixed from two, of another version.
Not covered: files that are changed while an index is open, and one that somebody made to be wrong: a digest says that
bytes are those that were written, not by whom.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from toolwise.core import jsonio
from toolwise.core.durable import sha256, storage
from toolwise.core.errors import BadInput, Corrupt
from toolwise.core.sealed import read_sealed, seal
from toolwise.core.work_folder import SETTINGS

#: Counts up when words are read, passages cut or files laid out in another way: an old index is then refused.
FORMAT = 1
MANIFEST, PASSAGES, COUNTS, MATRIX = "manifest.json", "passages", "counts", "matrix"

#: Of the matrix. The first four are bm25s' names, the others ours.
SCORES, POSTINGS, COLUMNS, PARAMETERS = (
    *("data.csc.index.npy", "indices.csc.index.npy", "indptr.csc.index.npy"),
    "params.index.json",
)
TERMS, TERM_ENDS, STARTS = "terms.bin", "terms.npy", "starts.npy"
MATRIX_FILES = (SCORES, POSTINGS, COLUMNS, PARAMETERS, TERMS, TERM_ENDS, STARTS)


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """How texts are indexed. k1 and b are BM25's, for passages of like length (Anserini's); Lucene's are 1.2, 0.75."""

    language: str = "en"  # whose endings are cut off: ISO 639-1, or none
    words: int = 100  # of a passage at most
    k1: float = 0.9  # how much a repeated word counts
    b: float = 0.4  # how much a long passage loses

    def __post_init__(self) -> None:
        """Raises BadInput for numbers that make no index."""
        if not (self.words >= 1 and 0 <= self.k1 < 1_000 and 0 <= self.b <= 1):
            raise BadInput("An index needs passages of at least 1 word, k1 of at least 0, and b between 0 and 1.")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A finished index. `files` are name, bytes and sha256; `shards` the number of passages in each."""

    documents: int
    passages: int
    words: int
    vocabulary: int
    postings: int
    shards: tuple[int, ...]
    files: tuple[tuple[str, int, str], ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(size for _, size, _ in self.files)

    def seal(self) -> bytes:
        return seal(asdict(self))


def listed(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    """What a manifest says of the files that were just written."""
    for name in names:
        with storage(folder / name):
            yield name, (folder / name).stat().st_size, sha256(folder / name)


def read_settings(folder: Path) -> Mapping[str, Any]:
    """What the index in `folder` was begun with. Raises BadInput where there is none, Corrupt."""
    with storage(folder):
        there = (folder / SETTINGS).is_file()
    settings = read_sealed(folder / SETTINGS) if there else {}
    if not {"format", "stemmer", "settings"} <= settings.keys():  # every run has a file of this name
        raise BadInput(f"{str(folder)!r} holds no index; make one with: toolwise index build PATH... --out {folder}")
    return settings


def read_manifest(folder: Path, *, verify: bool) -> Manifest:
    """The manifest of a finished index; with `verify` every byte of its files is checked, otherwise their sizes.

    Raises BadInput for what was not finished, or was built by another version; Corrupt for other bytes.
    """
    settings = read_settings(folder)
    if settings.get("format") != FORMAT:
        raise BadInput(
            f"The index in {str(folder)!r} was built by another version of toolwise (format {settings.get('format')}, "
            f"this one reads {FORMAT}); build it again in a new folder."
        )
    if not (folder / MANIFEST).is_file():
        raise BadInput(f"The index in {str(folder)!r} is half-built; run the same toolwise index build to finish it.")
    found = read_sealed(folder / MANIFEST)
    try:
        manifest = TypeAdapter(Manifest).validate_python(found)
    except ValidationError:
        manifest = None
    if manifest is None or not _says_all(manifest):
        raise Corrupt(f"The manifest of the index in {str(folder)!r} is not one; build the index again.")
    for name, size, digest in manifest.files:
        _check(folder, name, size, digest if verify else None)
    return manifest


def parts(shards: int) -> list[str]:
    """The files that are needed to search so many shards; their settings besides."""
    return [*map(passages_file, range(shards)), *(f"{MATRIX}/{name}" for name in MATRIX_FILES)]


def passages_file(number: int) -> str:
    """The name of a shard's passages."""
    return f"{PASSAGES}/{number:05d}.jsonl"


def _says_all(manifest: Manifest) -> bool:
    """Whether it counts every passage and vouches for every file. The settings were not among them at first."""
    if min(manifest.shards, default=0) <= 0 or sum(manifest.shards) != manifest.passages:
        return False
    return {name for name, _, _ in manifest.files} - {SETTINGS} == set(parts(len(manifest.shards)))


def identity(folder: Path, manifest: Manifest) -> str:
    """A short text that changes whenever an answer of the index may."""
    return f"bm25 {jsonio.fingerprint([read_settings(folder), asdict(manifest)])[:16]}"


def _check(folder: Path, name: str, size: int, digest: str | None) -> None:
    path = folder / name
    with storage(path):
        whole = path.is_file() and path.stat().st_size == size and (digest is None or sha256(path) == digest)
    if not whole:
        raise Corrupt(
            f"{name} of the index in {str(folder)!r} is missing or damaged; run its toolwise index build again."
        )
