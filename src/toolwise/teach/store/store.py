"""A run's folder: what was made so far, for what settings, and whether it is finished.

    settings.json     the settings, written first
    journal           one record a finished shard, append-only
    passages/ scored/ candidates/ augmented/    the shards
    manifest.json     counts and shards, written last: with it the folder is finished, without it it is not
    lock              held by the one process that writes

A kill at any instant loses the shards in work and nothing else: a shard counts once its record is in the journal, and
a file without a record is written again. A shard found damaged is set aside and missing from then on, so reading
refuses and a rerun makes it again. Folders of other settings are refused.

Not covered: network file systems without flock; POSIX only; workers that outlive a killed owner may still replace
a shard by their own, which a reader then refuses unless its bytes are equal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from toolwise.core import jsonio
from toolwise.core.durable import replace_file, storage, sync_folder
from toolwise.core.errors import BadInput, Corrupt
from toolwise.core.limits import LIMITS
from toolwise.core.lock import Lock
from toolwise.core.sealed import read_sealed, seal
from toolwise.core.work_folder import SETTINGS, begin
from toolwise.teach.store import shards
from toolwise.teach.store.journal import Journal, Recovered, recover
from toolwise.teach.store.shards import KINDS, Kind, ShardInfo, put

T = TypeVar("T")

_JOURNAL, _MANIFEST = "journal", "manifest.json"


class Store:
    """A run's folder, opened for writing by `open` or for reading by `load`.

    `settings` and `fingerprint` say what the folder was made for; `manifest` is None until it is finished.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, Any],
        manifest: Mapping[str, Any] | None,
        recovered: Recovered,
        writing: tuple[Lock, Journal] | None = None,
    ) -> None:
        self.folder = folder
        self.settings = settings
        self.fingerprint = jsonio.fingerprint(settings)
        self.manifest = manifest
        self._torn = recovered.torn
        self._writing = writing
        self._known: dict[tuple[Kind, int], ShardInfo] = {}
        for record in recovered.records:
            info = ShardInfo.from_record(record)
            self._known[info.kind, info.index] = info

    @classmethod
    def open(cls, folder: str | os.PathLike[str], settings: Mapping[str, Any]) -> Store:
        """Begin the folder, or continue it where it was left.

        Raises SettingsDiffer when it was begun with other settings, InProgress when another process writes it,
        BadInput when it holds something else or cannot be used, StorageUnavailable when the disk refuses.
        """
        path = Path(folder)
        wanted = jsonio.plain(settings, BadInput, LIMITS.json_size)
        with ExitStack() as undo:
            lock = begin(path, wanted, KINDS, (_JOURNAL, _MANIFEST))
            undo.callback(lock.close)
            journal = Journal(path / _JOURNAL)
            undo.callback(journal.close)
            store = cls(path, wanted, None, journal.recovered, (lock, journal))
            store._take_manifest()
            undo.pop_all()
            return store

    @classmethod
    def load(cls, folder: str | os.PathLike[str], *, partial: bool = False) -> Store:
        """Open for reading; changes nothing.

        Raises BadInput for a folder that is not finished, unless `partial` asks for what there is, and Corrupt when
        a shard of a finished folder is missing or the folder's own files are damaged.
        """
        path = Path(folder)
        if not os.path.isfile(path / SETTINGS):  # False for a name that no folder can have, too
            raise BadInput(f"{str(path)!r} is not the folder of a run; give the one that annotating wrote")
        finished = (path / _MANIFEST).exists()
        if not finished and not partial:
            raise BadInput(f"the run in {str(path)!r} is not finished; run it again to continue, or read it as partial")
        with storage(path):
            recovered = recover((path / _JOURNAL).read_bytes() if (path / _JOURNAL).exists() else b"")
        manifest = read_sealed(path / _MANIFEST) if finished else None
        store = cls(path, read_sealed(path / SETTINGS), manifest, recovered)
        if manifest is not None and manifest["shards"] != store._listing():
            raise Corrupt(f"the journal of {str(path)!r} is damaged; run again to make the lost shards again")
        if not partial:
            store._refuse_missing()
        return store

    def done(self, kind: Kind) -> dict[int, ShardInfo]:
        """The shards of a kind that need not be made again, by index."""
        return {info.index: info for info in self._of(kind) if shards.present(self.folder, info)}

    def write_shard(self, kind: Kind, index: int, rows: Sequence[Any]) -> ShardInfo:
        """`put` and `commit` in one, for a run in one process."""
        info = put(self.folder, kind, index, rows)
        self.commit(info)
        return info

    def commit(self, info: ShardInfo) -> None:
        """Record a shard that `put` wrote, here or in a worker. It counts as done when this returns."""
        journal = self._journal()
        if not shards.present(self.folder, info):
            raise Corrupt(f"shard {info.name} is not what its writer reported; run again to make it again")
        if self.manifest is not None:
            self._drop_manifest()
        journal.append(info.to_record())
        self._known[info.kind, info.index] = info

    def read(self, kind: Kind, row: type[T]) -> Iterator[T]:
        """The rows of a kind in the order of their shards, every byte being checked before the first row is given.

        Raises Corrupt when a shard is damaged or missing; a damaged one is set aside, so that a rerun makes it again.
        """
        if KINDS[kind] is not row:
            raise BadInput(f"{kind} are rows of {KINDS[kind].__name__}, not {row.__name__}")
        infos = self._of(kind)
        for info in infos:
            shards.check(self.folder, info)
        return (value for info in infos for value in shards.load(self.folder, info, row))

    def finish(self, report: Mapping[str, Any]) -> None:
        """Write the manifest, which says that nothing is missing; `report` is what the caller wants kept with it."""
        self._journal()
        self._refuse_missing()
        manifest = {
            "fingerprint": self.fingerprint,
            "counts": {
                kind: {"shards": len(self._of(kind)), "rows": sum(info.rows for info in self._of(kind))}
                for kind in KINDS
            },
            "journal_bytes_dropped": self._torn,
            "report": dict(report),
            "shards": self._listing(),
        }
        replace_file(self.folder / _MANIFEST, seal(manifest))
        self.manifest = manifest

    def close(self) -> None:
        """Let the next writer in. The folder stays as it is, finished or not."""
        if self._writing is not None:
            lock, journal = self._writing
            self._writing = None
            journal.close()
            lock.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _of(self, kind: Kind) -> list[ShardInfo]:
        return [info for (of, _), info in sorted(self._known.items()) if of == kind]

    def _listing(self) -> list[dict[str, Any]]:
        return [info.listed() for _, info in sorted(self._known.items())]

    def _take_manifest(self) -> None:
        """Believe the manifest only while all that it lists is there: otherwise the run is to be finished again."""
        path = self.folder / _MANIFEST
        if not path.exists():
            return
        try:
            manifest = read_sealed(path)
            self._refuse_missing()
        except Corrupt:
            manifest = None
        if manifest is not None and manifest["shards"] == self._listing():
            self.manifest = manifest
        else:
            self._drop_manifest()

    def _drop_manifest(self) -> None:
        with storage(self.folder):
            (self.folder / _MANIFEST).unlink(missing_ok=True)
            sync_folder(self.folder)
        self.manifest = None

    def _journal(self) -> Journal:
        if self._writing is None:
            raise BadInput(f"{str(self.folder)!r} is not open for writing; use Store.open")
        return self._writing[1]

    def _refuse_missing(self) -> None:
        for info in self._known.values():
            if not shards.present(self.folder, info):
                raise Corrupt(f"shard {info.name} is missing or cut short; run again to make it again")
