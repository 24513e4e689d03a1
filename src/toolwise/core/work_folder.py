"""A folder that is filled bit by bit, for given settings, by one process at a time, and that survives a kill.

    settings.json    what the folder is made for, written first
    lock             held by the one process that writes

Covered: a folder with other files in it is not taken for one of ours; one that was begun with other settings is
refused, with the differences; what a killed writer left half-written is removed.

Not covered: network file systems without flock; POSIX only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from toolwise.core import jsonio
from toolwise.core.durable import TEMPORARY, replace_file, storage, sync_folder
from toolwise.core.errors import BadInput, SettingsDiffer
from toolwise.core.limits import LIMITS
from toolwise.core.lock import Lock
from toolwise.core.sealed import read_sealed, seal

SETTINGS, LOCK = "settings.json", "lock"


def begin(folder: Path, settings: Mapping[str, Any], rooms: Iterable[str], files: Iterable[str]) -> Lock:
    """Begin the folder, or continue it where it was left; it is the caller's until the lock is closed.

    `rooms` are the folders in it, which are made, and `files` the other names that may stand in it. Raises
    SettingsDiffer when it was begun with other settings, InProgress when another process writes it, BadInput when it
    holds something else or cannot be used, StorageUnavailable when the disk refuses.
    """
    wanted = jsonio.plain(settings, BadInput, LIMITS.json_size)
    rooms = tuple(rooms)
    with storage(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(PermissionError):  # a folder that may be entered, yet not read, cannot be synced
            sync_folder(folder.parent)
        _refuse_strangers(folder, {*rooms, *files})
    with ExitStack() as undo:
        lock = Lock(folder / LOCK)
        undo.callback(lock.close)
        _make_room(folder, rooms)
        if (folder / SETTINGS).exists():
            _refuse_other_settings(folder, read_sealed(folder / SETTINGS), wanted)
        else:
            replace_file(folder / SETTINGS, seal(wanted))
        undo.pop_all()
        return lock


def _refuse_strangers(folder: Path, ours: set[str]) -> None:
    """Temporary files are removed at opening, so a folder that is not ours must not be taken for one that is."""
    if (folder / SETTINGS).exists():
        return
    known = {*ours, SETTINGS, LOCK}
    strangers = [one.name for one in folder.iterdir() if one.name not in known and not _is_leftover(one)]
    if strangers:
        raise BadInput(f"{str(folder)!r} holds other files ({min(strangers)!r}); choose an empty or a new folder")


def _is_leftover(path: Path) -> bool:
    return path.name.startswith(".") and path.name.endswith(TEMPORARY)


def _make_room(folder: Path, rooms: Iterable[str]) -> None:
    with storage(folder):
        for room in rooms:
            (folder / room).mkdir(exist_ok=True)
        sync_folder(folder)
        for place in (folder, *(folder / room for room in rooms)):
            for leftover in filter(_is_leftover, place.iterdir()):
                leftover.unlink()


def _refuse_other_settings(folder: Path, begun: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    before, now = dict(_leaves(begun)), dict(_leaves(wanted))
    differing = [key for key in sorted(before.keys() | now.keys()) if before.get(key) != now.get(key)]
    if differing:
        shown = ", ".join(f"{key} ({before.get(key, 'unset')} -> {now.get(key, 'unset')})" for key in differing[:3])
        more = f" and {len(differing) - 3} more" if len(differing) > 3 else ""
        raise SettingsDiffer(
            f"{str(folder)!r} was begun with other settings: {shown}{more}; go back to them or choose another folder"
        )


def _leaves(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, jsonio.dumps(value)
