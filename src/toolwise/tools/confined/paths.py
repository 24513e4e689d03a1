"""Files below one folder, for tools whose paths a model chooses.

Covers: only a regular file below the root, which has no second name, is read or replaced, whatever the path says and
whatever other processes swap meanwhile. Every folder on the way is opened from the one above it, without following
links, and the file is judged once it is open; there is no moment between a check and a use. Sizes are bounded, a
reader never sees half of what is written, and no message names anything outside.

Not covered
- the root's own path, which is the operator's word: links in it are followed
- a folder that somebody moves out of the root while it is walked through: it is used to the end of that one call
- file systems that are mounted below the root
- what stands in the files, and whoever writes into one in place while it is read
- a file in the making that a killed process left behind (`.` sixteen digits `.tmp`)
- Windows, where files cannot be opened from folders
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

from toolwise.core.durable import TEMPORARY
from toolwise.core.errors import BadInput, LimitExceeded, StorageUnavailable, ToolFailed, UnsafeTarget
from toolwise.core.limits import LIMITS, Limits

_DRIVE = re.compile(r"[A-Za-z]:")
_SUPPORTED = hasattr(os, "O_NOFOLLOW") and {os.open, os.rename, os.stat, os.unlink} <= os.supports_dir_fd
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})
_REFUSED = "The path leads through a link, or to something that may not be opened as a file: choose another."


class ConfinedFolder:
    """The files below `root`, by paths such as `notes/today.txt`. Raises BadInput if `root` is no folder.

    Every method raises UnsafeTarget for a path that leaves the root, goes through a link, or leads to anything but a
    regular file with one name; ToolFailed where nothing stands; LimitExceeded for what is too large. The root is
    opened anew each time, so a tool may use its folder in a child process.
    """

    def __init__(self, root: str | Path, limits: Limits = LIMITS) -> None:
        if not _SUPPORTED:
            raise BadInput("This system cannot open files from folders: use a confined folder on Linux or macOS.")
        if not os.path.isdir(root):
            raise BadInput("A confined folder needs a root that exists and is a folder: make it first.")
        self._root = os.path.abspath(root)
        self._limits = limits

    def read(self, path: str) -> bytes:
        """The whole content of a file."""
        most = self._limits.file_bytes
        *folders, name = self._names(path)
        with _refusing(), self._folder(folders) as folder, open(_open_file(name, folder), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read(most + 1) if size <= most else b""  # it may grow while it is read
        if max(size, len(data)) > most:
            raise LimitExceeded(f"The file is longer than {most} bytes: choose a smaller one.")
        return data

    def write(self, path: str, data: bytes) -> None:
        """Make `data` the whole content of a file, durably; its folder must exist.

        Raises StorageUnavailable as well; then the file is what it was before, or already whole.
        """
        if len(data) > self._limits.file_bytes:
            raise LimitExceeded(f"A file may take {self._limits.file_bytes} bytes: write less.")
        *folders, name = self._names(path)
        with _refusing(), self._folder(folders) as folder:
            mode = _mode_of_replaced(name, folder)
            temporary = f".{secrets.token_hex(8)}{TEMPORARY}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                with open(os.open(temporary, flags, 0o666, dir_fd=folder), "wb") as file:
                    if mode is not None:
                        os.fchmod(file.fileno(), mode)
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                raise
            os.fsync(folder)

    def names(self, path: str | None = None) -> tuple[str, ...]:
        """What stands in a folder, sorted; of the root unless a path is given."""
        most = self._limits.folder_names
        with (
            _refusing(),
            self._folder([] if path is None else self._names(path)) as folder,
            os.scandir(folder) as entries,
        ):
            found = [os.fsencode(entry.name).decode("utf-8", "backslashreplace") for entry in islice(entries, most + 1)]
        if len(found) > most:
            raise LimitExceeded(f"The folder holds more than {most} names: choose a smaller one.")
        return tuple(sorted(found))

    def _names(self, path: str) -> list[bytes]:
        """The names that a path goes through, as the system takes them; nothing in them is interpreted."""
        names = path.split("/")
        try:
            size = len(path.encode())
        except UnicodeEncodeError:
            size = self._limits.path_bytes + 1
        if (
            size > self._limits.path_bytes
            or not {"", ".", ".."}.isdisjoint(names)
            or not {"\\", "\0"}.isdisjoint(path)
            or path.startswith("~")
            or _DRIVE.match(path)
        ):
            raise UnsafeTarget("Give a path below the folder, as a/b.txt: without .., ~, backslashes or a drive.")
        return [name.encode() for name in names]

    @contextmanager
    def _folder(self, names: list[bytes]) -> Iterator[int]:
        """The descriptor of a folder, reached name by name."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        folder = os.open(self._root, flags)
        try:
            for name in names:
                above, folder = folder, os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
                os.close(above)
            yield folder
        finally:
            os.close(folder)


def _open_file(name: bytes, folder: int) -> int:
    """The descriptor of a regular file with one name. Neither a pipe nor a device is waited for."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    file = os.open(name, flags, dir_fd=folder)
    try:
        _check_file(os.fstat(file))
    except BaseException:
        os.close(file)
        raise
    return file


def _mode_of_replaced(name: bytes, folder: int) -> int | None:
    """The permissions of the file that stands there. Renaming follows nothing, so here a look beforehand is enough."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _check_file(found)
    return stat.S_IMODE(found.st_mode) & 0o777


def _check_file(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UnsafeTarget(_REFUSED)
    if found.st_nlink > 1:  # none, where the file was replaced just after it was opened
        raise UnsafeTarget("The file has another name, which may stand outside: choose another.")


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn what the system says into an error that names no path."""
    try:
        yield
    except FileNotFoundError as error:
        raise ToolFailed("Nothing of this name stands there: list the folder.") from error
    except OSError as error:
        if error.errno in _FULL:
            raise StorageUnavailable("The disk cannot take or give the file: free space or repair it.") from error
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise LimitExceeded("Too many files are open: close some.") from error
        raise UnsafeTarget(_REFUSED) from error
