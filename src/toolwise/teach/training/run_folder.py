"""The folders of a training run: what is unfinished stands beside `out`, and `out` appears whole or not at all.

    <out>.training/run.json          what is being trained, from what, with which settings
    <out>.training/checkpoint-<n>    at most two: the best and the last (weights, optimiser, schedule, random state)
    <out>.training/train_log.jsonl   a line an update and a measurement
    <out>.training/model             the finished model in the making, renamed to <out> as the last act

A run that was killed goes on from its last whole checkpoint. Transformers writes `trainer_state.json` last into a
checkpoint, so one without it is half-written and is removed.

Not covered: two machines that share a file system without flock.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import TrainerState

from toolwise.core import jsonio
from toolwise.core.durable import replace_file, sha256, storage, sync_folder, sync_tree
from toolwise.core.errors import BadInput, ModelUnavailable, SettingsDiffer, StorageUnavailable
from toolwise.core.lock import Lock
from toolwise.models.pulled import NOTE
from toolwise.teach.training.trainer import LOG, saving

_RUN, _LOCK, _STATE, _MODEL, _ADAPTER = "run.json", "lock", "trainer_state.json", "model", "adapter"
_IDENTITY_SUFFIXES = {".json", ".safetensors", ".bin", ".model", ".txt", ".jinja"}


def folder_fingerprint(folder: Path) -> str:
    """SHA-256 over the names and bytes of a model folder's weights, configuration and tokenizer."""
    if not (folder / "config.json").is_file():
        raise ModelUnavailable(f"{str(folder)!r} is not a model folder: give one that holds config.json and weights.")
    digest = hashlib.sha256()
    for file in sorted(f for f in folder.iterdir() if f.suffix in _IDENTITY_SUFFIXES and f.is_file()):
        with storage(file):
            digest.update(f"{file.name} {sha256(file)}\n".encode())
    return digest.hexdigest()


def rows_fingerprint(rows: Iterable[object]) -> str:
    """SHA-256 over frozen rows in their order."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(repr(row).encode())
    return digest.hexdigest()


class RunFolder:
    """The unfinished state of one run. Only the main process opens it for writing (`main`)."""

    def __init__(self, out: Path, identity: Mapping[str, Any], *, main: bool) -> None:
        """Raises BadInput when `out` is taken or cannot be written, SettingsDiffer when another run is unfinished."""
        out = Path(os.path.abspath(out))  # `.` has no name to put something beside
        if not out.name:
            raise BadInput(f"A model cannot be written to {str(out)!r}; choose a new folder.")
        self.out = out
        self.path = out.with_name(out.name + ".training")
        self.fingerprint = jsonio.fingerprint(identity)
        self._lock: Lock | None = None
        if main:
            try:
                self._open(json.dumps(identity, sort_keys=True, indent=1).encode())
            except BaseException:
                self.__exit__()
                raise

    def _open(self, described: bytes) -> None:
        run = self.path / _RUN
        with storage(self.out):
            taken = self.out.exists() and (not self.out.is_dir() or any(self.out.iterdir()))
            ours = run.is_file() and run.read_bytes() == described
            foreign = self.path.exists() and not run.is_file() and any(f.name != _LOCK for f in self.path.iterdir())
            if taken and ours:  # killed between the rename and the removal: the model is whole
                shutil.rmtree(self.path)
        if taken or foreign:
            raise BadInput(
                f"{str(self.out if taken else self.path)!r} exists already; choose another folder or remove it."
            )
        with storage(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(self.path / _LOCK)
        for checkpoint in self._checkpoints():
            if not _whole(checkpoint):
                shutil.rmtree(checkpoint)
        if not ours:  # what another run left before its first checkpoint is worth nothing to anybody
            if self._checkpoints():
                raise SettingsDiffer(
                    f"{str(self.path)!r} holds an unfinished run with other rows or settings; "
                    "finish it with those, or remove that folder."
                )
            replace_file(run, described)

    def last_checkpoint(self) -> Path | None:
        """Where to go on from: the whole checkpoint of the highest step."""
        return max(self._checkpoints(), key=step_of, default=None)

    def require_space(self, network: Any) -> None:
        """Raises StorageUnavailable when the disk cannot hold three checkpoints (two, and one being written) and the
        model: better now than after hours, when a library reports it in its own way."""
        sizes = [(parameter.numel(), parameter.requires_grad) for parameter in network.parameters()]
        trained = sum(size for size, trains in sizes if trains)
        # A trained weight is 4 bytes, and 8 of the optimiser's.
        needed = 3 * 12 * trained + 4 * sum(size for size, _ in sizes)
        free = shutil.disk_usage(self.path).free
        if free < needed:
            raise StorageUnavailable(
                f"Training needs {needed / 1e9:.1f} GB beside {str(self.out)!r}, and {free / 1e9:.1f} GB are free; "
                "free space, choose another disk, or train with LoRA."
            )

    def checkpoint(self, step: int) -> Path:
        return self.path / f"checkpoint-{step}"

    def publish(self, network: Any, tokenizer: Any, card: Mapping[str, Any], adapter: Path | None) -> None:
        """Write the model folder, with the LoRA adapter in `adapter/` where there is one, and give it its name."""
        model = self.path / _MODEL
        with saving(self.out):
            shutil.rmtree(model, ignore_errors=True)
            network.save_pretrained(model)
            tokenizer.save_pretrained(model)
            if adapter is not None:
                (model / _ADAPTER).mkdir()
                for file in adapter.glob("adapter_*"):
                    shutil.copy(file, model / _ADAPTER)
            (model / NOTE).write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            shutil.copy(self.path / LOG, model / LOG)
            sync_tree(model)
            model.rename(self.out)
            sync_folder(self.out.parent)
            self.close()
            shutil.rmtree(self.path)

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        """Whatever ended the run: what is half-written goes, and without a checkpoint to go on from nothing is left."""
        if self._lock is not None:
            for half in (self.path / _MODEL, *(c for c in self._checkpoints() if not _whole(c))):
                shutil.rmtree(half, ignore_errors=True)
            if not self._checkpoints():
                shutil.rmtree(self.path, ignore_errors=True)
        self.close()

    def close(self) -> None:
        """Let the lock go. The state stays, for a later run."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _checkpoints(self) -> Sequence[Path]:
        return [c for c in self.path.glob("checkpoint-*") if c.name.removeprefix("checkpoint-").isdecimal()]


def _whole(checkpoint: Path) -> bool:
    try:
        TrainerState.load_from_json(str(checkpoint / _STATE))
    except (OSError, ValueError, TypeError):
        return False
    return True


def step_of(checkpoint: Path) -> int:
    """The number of updates behind a checkpoint."""
    return int(checkpoint.name.removeprefix("checkpoint-"))
