"""One shard: the rows of one piece of work in one Parquet file, with digests that find a flipped bit.

A shard is either whole or not there. Writing one needs nothing but the folder, so workers do it themselves; the
owner of the folder then records what they return.

Not covered: keeping two workers off the same index. The last one wins, and equal work gives equal bytes.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from toolwise.core import jsonio
from toolwise.core.durable import replace_file, storage
from toolwise.core.errors import BadInput, Corrupt, ToolwiseError
from toolwise.teach.records import Augmented, Candidate, Passage
from toolwise.teach.store.rows import from_parquet, to_parquet

Kind = Literal["passages", "scored", "candidates", "augmented"]
T = TypeVar("T")

KINDS: Mapping[Kind, type[Any]] = MappingProxyType(
    {"passages": Passage, "scored": Candidate, "candidates": Candidate, "augmented": Augmented}
)
BLOCK = 64 * 1024
QUARANTINED = ".corrupt"


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """What is remembered of a shard: where it stands in the folder, and the crc32 of each 64 KiB of its bytes.

    `cpu_seconds` and `positions` (tokens that a network read) are what making it took, where that was counted.
    """

    kind: Kind
    index: int
    rows: int
    size: int
    sha256: str
    blocks: tuple[int, ...]
    cpu_seconds: float | None = None
    positions: int | None = None

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.index:05d}.parquet"

    def listed(self) -> dict[str, Any]:
        """What a manifest says of the shard."""
        return {"name": self.name, "rows": self.rows, "bytes": self.size, "sha256": self.sha256}

    def to_record(self) -> bytes:
        """The journal's record of the shard; `from_record` reads it."""
        return jsonio.dumps(asdict(self)).encode()

    @classmethod
    def from_record(cls, record: bytes) -> ShardInfo:
        try:
            value = jsonio.loads(record)
            return cls(**{**value, "blocks": tuple(value["blocks"])})
        except (ToolwiseError, TypeError, KeyError) as error:
            raise BadInput("the journal was written by another version; choose another folder and run again") from error


def put(folder: str | os.PathLike[str], kind: Kind, index: int, rows: Sequence[Any]) -> ShardInfo:
    """Write the rows as shard `index` of `kind`, durably and whole, over an earlier one. Safe in any process.

    Raises BadInput for rows that are not of the kind's type or a folder that cannot be used, StorageUnavailable when
    the disk refuses; then nothing half-written stays.
    """
    if kind not in KINDS or index < 0:
        raise BadInput(f"there is no shard {index} of {kind!r}; kinds are {', '.join(KINDS)}, numbered from 0")
    data = to_parquet(rows, KINDS[kind])
    blocks = tuple(zlib.crc32(data[at : at + BLOCK]) for at in range(0, len(data), BLOCK))
    info = ShardInfo(kind, index, len(rows), len(data), hashlib.sha256(data).hexdigest(), blocks)
    replace_file(Path(folder) / info.name, data)
    return info


def present(folder: Path, info: ShardInfo) -> bool:
    """Whether the shard's file is there with its size. Its bytes are checked when they are read."""
    path = folder / info.name
    with storage(path):
        return path.exists() and path.stat().st_size == info.size


def check(folder: Path, info: ShardInfo) -> bytes:
    """The bytes of a shard, which are those that were written.

    Raises Corrupt with the shard and the place of the first damaged block; the file is then set aside as
    `*.corrupt`, so that running again makes the shard again.
    """
    path = folder / info.name
    if not path.exists():
        raise Corrupt(f"shard {info.name} is missing; run again to make it again")
    with storage(path):
        data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() == info.sha256:
        return data
    at = next(
        (
            number * BLOCK
            for number, checksum in enumerate(info.blocks)
            if zlib.crc32(data[number * BLOCK : (number + 1) * BLOCK]) != checksum
        ),
        info.size,
    )
    try:
        os.replace(path, path.with_name(path.name + QUARANTINED))
        remedy = f"it is set aside as *{QUARANTINED}; run again to make it again"
    except OSError as error:
        remedy = f"it could not be set aside ({error.strerror}); remove it and run again"
    raise Corrupt(f"shard {info.name} is damaged in the block at byte {at}: {remedy}")


def load(folder: Path, info: ShardInfo, row: type[T]) -> Iterator[T]:
    """The rows of a shard, from bytes that were checked."""
    return from_parquet(check(folder, info), row)
