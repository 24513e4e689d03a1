"""An append-only log that survives a kill at any instant.

A record is `length (4 bytes) | crc32 of length and payload (4 bytes) | payload`. What is recovered is the longest
prefix of whole records; a torn tail is cut off before anything is appended behind it. The checksum covers the length,
so that neither a changed length nor a tail of zeros reads as a record.

Not covered: two writers (the owner of the folder holds a lock), and records that a flipped bit in an earlier one hides:
they are cut off with it and counted in `torn`, and whoever wrote them does the work again.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

from toolwise.core.durable import storage, sync_folder, write_all
from toolwise.core.errors import StorageUnavailable

_LENGTH = struct.Struct("<I")
_HEAD = _LENGTH.size * 2


@dataclass(frozen=True, slots=True)
class Recovered:
    """The whole records of a log, the bytes they take, and the bytes behind them that are not a whole record."""

    records: tuple[bytes, ...]
    length: int
    torn: int


def recover(data: bytes) -> Recovered:
    """Read the longest prefix of whole records. Raises nothing: any bytes have such a prefix, maybe an empty one."""
    records: list[bytes] = []
    at = 0
    while len(data) - at >= _HEAD:
        length, checksum = _LENGTH.unpack_from(data, at)[0], _LENGTH.unpack_from(data, at + _LENGTH.size)[0]
        payload = data[at + _HEAD : at + _HEAD + length]
        if len(payload) < length or _checksum(payload) != checksum:
            break
        records.append(payload)
        at += _HEAD + length
    return Recovered(tuple(records), at, len(data) - at)


class Journal:
    """A log open for appending, by one process at a time.

    `recovered` says what stood in it. Raises BadInput for a path that cannot be used, StorageUnavailable for a disk
    that cannot.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with storage(path):
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            try:
                self.recovered = recover(path.read_bytes())
                if self.recovered.torn:
                    os.ftruncate(self._descriptor, self.recovered.length)
                    os.fsync(self._descriptor)
                sync_folder(path.parent)
            except BaseException:
                os.close(self._descriptor)
                raise
        self._whole = True

    def append(self, payload: bytes) -> None:
        """Add one record; it is durable when this returns. After a failure the log must be opened again."""
        if not self._whole:
            raise StorageUnavailable(f"an earlier record of {str(self._path)!r} could not be stored; run again")
        # A failed sync may have dropped the bytes it reports as unwritten, so nothing may follow them unseen.
        self._whole = False
        with storage(self._path):
            write_all(self._descriptor, _LENGTH.pack(len(payload)) + _LENGTH.pack(_checksum(payload)) + payload)
            os.fsync(self._descriptor)
        self._whole = True

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _checksum(payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(_LENGTH.pack(len(payload))))
