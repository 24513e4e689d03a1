"""One writer a folder: a lock that the system takes back when its process dies, however it dies.

Not covered: network file systems that do not pass flock on; POSIX only.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from weakref import WeakSet

from toolwise.core.durable import storage, write_all
from toolwise.core.errors import InProgress


class Lock:
    """Held from construction to `close`. Raises InProgress, naming the holder's process, when another holds it."""

    def __init__(self, path: Path) -> None:
        with storage(path):
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.ftruncate(self._descriptor, 0)
                write_all(self._descriptor, f"{os.getpid()}\n".encode())
            except BlockingIOError as error:
                holder = os.pread(self._descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
                self.close()
                raise InProgress(
                    f"{str(path.parent)!r} is being written by process {holder}; wait for it or choose another folder"
                ) from error
            except BaseException:
                self.close()
                raise
        _held.add(self)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


_held: WeakSet[Lock] = WeakSet()


def _let_go() -> None:
    for lock in _held:
        lock.close()


# A forked worker inherits the open file and would keep the lock alive after its parent was killed.
os.register_at_fork(after_in_child=_let_go)
