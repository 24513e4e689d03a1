"""Bytes that stay: whole files by rename, synced folders, digests, and the system's refusals as errors of ours.

Covered: a crash of the process or the machine at any instant leaves the old file or the new one, never a part of it;
a full disk, a read-only or a forbidden path end in one clear error and leave nothing half-written behind.
Not covered: disks that report a sync they did not make, and network file systems without POSIX rename.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from toolwise.core.errors import BadInput, StorageUnavailable

#: How the name of a file in the making ends; whoever owns the folder may remove such files after a crash.
TEMPORARY = ".tmp"

# These do not pass by waiting or by freeing space: another path or other permissions are needed.
_WRONG_PATH = frozenset(
    {
        errno.EACCES,
        errno.EEXIST,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EPERM,
        errno.EROFS,
    }
)


@contextmanager
def storage(path: Path) -> Iterator[None]:
    """Turn an OSError about `path` into BadInput (the path cannot be used) or StorageUnavailable (the disk cannot)."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _WRONG_PATH:
            raise BadInput(
                f"cannot use {str(path)!r}: {reason}; choose another path or change its permissions"
            ) from error
        raise StorageUnavailable(
            f"cannot store {str(path)!r}: {reason}; free space or repair the disk and run again"
        ) from error


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte: the system may take fewer than it is given."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Make all that stands in a folder durable, whoever wrote it."""
    for path in (*folder.rglob("*"), folder):
        if path.is_dir():
            sync_folder(path)
        elif path.is_file():
            with path.open("rb") as stream:
                os.fsync(stream.fileno())


def sha256(file: Path) -> str:
    """The digest of a file's bytes, 64 hex digits. Raises OSError."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def replace_file(path: Path, data: bytes) -> None:
    """Make `data` the whole content of `path`, durably: temporary file, sync, rename, sync of the folder.

    Raises BadInput or StorageUnavailable; then `path` is what it was before, or already whole.
    """
    with replacing(path) as descriptor:
        write_all(descriptor, data)


@contextmanager
def replacing(path: Path, private: bool = False) -> Iterator[int]:
    """The same for content that comes piece by piece: what is written to the descriptor becomes all of `path`.

    `private`: its owner alone may read it, whoever could read what was there before.
    """
    # The process id keeps two workers that were given the same file from writing into one temporary.
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    with storage(path):
        try:
            mode = 0o600 if private else 0o666
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
            try:
                yield descriptor
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        sync_folder(path.parent)


@contextmanager
def output(path: Path, private: bool = False) -> Iterator[int]:
    """A descriptor for a file that somebody asked for: whole or not at all; a device or a pipe takes what it is given.

    Raises BadInput or StorageUnavailable.
    """
    with storage(path):
        whole = not path.exists() or path.is_file()
    if whole:
        with replacing(path.resolve(), private) as descriptor:
            yield descriptor
        return
    with storage(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def write_output(path: Path, text: str, *, private: bool = False) -> None:
    """Write such a file in one piece. Raises BadInput or StorageUnavailable."""
    with output(path, private) as descriptor:
        write_all(descriptor, text.encode())
