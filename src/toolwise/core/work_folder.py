"""A folder that is filled bit by bit, for given settings, by one process at a time, and that survives a kill.

    settings.json    what the folder is made for, written first
    lock             held by the one process that writes

Covered: a folder with other files in it is not taken for one of ours; one that holds something made with other
settings is refused, with the differences; what a killed writer left half-written is removed.

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
_UNSET = object()
_SHOWN = 24  # characters of a value in a message, enough to tell digests apart


def begin(folder: Path, settings: Mapping[str, Any], rooms: Iterable[str], files: Iterable[str]) -> Lock:
    """Begin the folder, or continue it where it was left; it is the caller's until the lock is closed.

    `rooms` are the folders in it, which are made, and `files` the other names that may stand in it. Raises
    SettingsDiffer when it was begun with other settings, InProgress when another process writes it, BadInput when it
    holds something else or cannot be used, StorageUnavailable when the disk refuses.
    """
    wanted = jsonio.plain(settings, BadInput, LIMITS.json_size)
    rooms, files = tuple(rooms), tuple(files)
    with storage(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(PermissionError):  # a folder that may be entered, yet not read, cannot be synced
            sync_folder(folder.parent)
        _refuse_strangers(folder, {*rooms, *files})
    with ExitStack() as undo:
        lock = Lock(folder / LOCK)
        undo.callback(lock.close)
        _make_room(folder, rooms)
        if (folder / SETTINGS).exists() and not _is_empty(folder, rooms, files):
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


def _is_empty(folder: Path, rooms: Iterable[str], files: Iterable[str]) -> bool:
    """Whether nothing has been made yet: a failed start does not bind whoever mends what it failed at."""
    with storage(folder):
        begun = any((folder / name).exists() and (folder / name).stat().st_size for name in files)
        return not begun and not any(any((folder / room).iterdir()) for room in rooms)


def _refuse_other_settings(folder: Path, begun: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    differing = [f"{name} ({_shown(before)} -> {_shown(now)})" for name, before, now in _differences(begun, wanted)]
    if differing:
        more = f" and {len(differing) - 3} more" if len(differing) > 3 else ""
        raise SettingsDiffer(
            f"{str(folder)!r} was begun with other settings: {', '.join(differing[:3])}{more}; "
            "go back to them or choose another folder"
        )


def _differences(before: Any, now: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """What differs, as deep as both sides have parts of the same names."""
    old, new = _parts(before), _parts(now)
    if old is not None and new is not None and type(before) is type(now):
        for key in sorted(old.keys() | new.keys()):
            yield from _differences(old.get(key, _UNSET), new.get(key, _UNSET), f"{name}.{key}" if name else key)
    elif before is _UNSET or now is _UNSET or jsonio.dumps(before) != jsonio.dumps(now):
        yield name, before, now


def _parts(value: Any) -> dict[str, Any] | None:
    """The parts of an object, or of a list of objects, which are numbered from 1."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and all(isinstance(part, dict) for part in value):
        return {str(number): part for number, part in enumerate(value, 1)}
    return None


def _shown(value: Any) -> str:
    if value is _UNSET:
        return "unset"
    written = jsonio.dumps(value)
    if len(written) <= _SHOWN:
        return written
    return "given" if isinstance(value, dict | list) else f"{written[:_SHOWN]}…"
