"""The training loop: transformers' Trainer with our loss, our held-out measure, and a watch on what it reports.

Three things differ from the stock Trainer. The loss is summed over all tokens of an update and divided by their number,
whatever the network and however an update is split into rows and devices. The held-out measure is a mean over tokens,
with calls disabled. And a loss that is not finite ends the run before anything is saved.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from rich.progress import Progress, TaskID
from safetensors import SafetensorError
from torch.optim.lr_scheduler import LambdaLR
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from toolwise.core.durable import replace_file, storage
from toolwise.core.errors import BadInput, StorageUnavailable
from toolwise.models.base import ScoreRequest
from toolwise.teach.training.examples import IGNORED
from toolwise.teach.training.likelihood import Sums, sums

LOG = "train_log.jsonl"
_LOSS, _PLAIN, _DISABLED = "loss", "eval_plain", "eval_disabled"


class HeldOutTrainer(Trainer):  # type: ignore[misc]
    """A Trainer whose evaluation is the held-out loss in nats a token, and whose schedule starts above zero."""

    control: Any

    def __init__(
        self,
        *,
        network: Any,
        arguments: TrainingArguments,
        rows: Any,
        collate: Any,
        held_out: Sequence[ScoreRequest],
        marker: int | None,
        batch_tokens: int,
        decay: bool,
        watch: Watch,
    ) -> None:
        super().__init__(
            model=network,
            args=arguments,
            train_dataset=rows,
            eval_dataset=list(held_out) or None,
            data_collator=collate,
            compute_loss_func=token_mean,
            callbacks=[watch],
        )
        self.remove_callback(PrinterCallback)
        self._held_out, self._marker = held_out, marker
        self._batch_tokens, self._decay = batch_tokens, decay

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """The held-out loss over all processes, with `eval_disabled` the one that chooses the best checkpoint."""
        self.model.eval()
        share = slice(self.args.process_index, None, self.args.world_size)
        mine = sums(self.model, self._held_out, self._marker, batch_tokens=self._batch_tokens, share=share)
        found = Sums.of(self.accelerator.reduce(mine, "sum"))
        metrics = {_PLAIN: found.plain / found.tokens, _DISABLED: found.disabled / found.tokens}
        self.log(metrics)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        with saving(Path(self.args.output_dir)):
            super()._save_checkpoint(model, trial)

    def create_scheduler(self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None) -> LambdaLR:
        """Linear warm-up whose first update already counts, then constant or linear down to zero."""
        warmup, decay = int(self.args.get_warmup_steps(num_training_steps)), self._decay

        def factor(step: int) -> float:
            left: float = num_training_steps - step
            if step < warmup:
                return (step + 1) / (warmup + 1)
            return left / max(1, num_training_steps - warmup) if decay else 1.0

        self.lr_scheduler = LambdaLR(optimizer or self.optimizer, factor)
        return self.lr_scheduler


@contextmanager
def saving(path: Path) -> Iterator[None]:
    """`storage` for what libraries write: each reports a disk that refuses in its own way, and none by its number."""
    with storage(path):
        try:
            yield
        except (RuntimeError, SafetensorError) as error:
            raise StorageUnavailable(
                f"cannot store {str(path)!r}; free space or repair the disk and run again: {str(error).splitlines()[0]}"
            ) from error


class Watch(TrainerCallback):  # type: ignore[misc]
    """Follows a run: refuses a loss that is not finite, keeps the log file, moves the progress bar."""

    def __init__(self, folder: Path, progress: Progress | None, *, write: bool) -> None:
        self._folder, self._progress, self._write = folder, progress, write
        self._task: TaskID | None = None

    def on_train_begin(self, args: TrainingArguments, state: Any, control: Any, **_: Any) -> None:
        if self._write:  # a resumed run goes on from the checkpoint's log; what was logged after it is done again
            lines = (_line(entry) for entry in state.log_history)
            replace_file(self._folder / LOG, "".join(line for line in lines if line).encode())
        if self._progress is not None:
            self._task = self._progress.add_task("training", total=state.max_steps, completed=state.global_step)

    def on_step_end(self, args: TrainingArguments, state: Any, control: Any, **_: Any) -> None:
        # The best checkpoint can only be kept if it is saved when it is measured.
        control.should_save = control.should_save or control.should_evaluate

    def on_log(self, args: TrainingArguments, state: Any, control: Any, logs: dict[str, float], **_: Any) -> None:
        bad = [name for name in (_LOSS, "grad_norm", _PLAIN, _DISABLED) if not math.isfinite(logs.get(name, 0.0))]
        if bad:
            raise BadInput(
                f"Training broke down at step {state.global_step} ({bad[0]} is not finite); "
                f"delete {self._folder} and run again with a lower learning rate."
            )
        line = _line({**logs, "step": state.global_step})
        if self._write and line:
            with storage(self._folder / LOG), (self._folder / LOG).open("a", encoding="utf-8") as stream:
                stream.write(line)
        if self._progress is not None and self._task is not None and _LOSS in logs:
            self._progress.update(
                self._task, completed=state.global_step, description=f"training, loss {logs[_LOSS]:.3f}"
            )


def token_mean(
    outputs: Any, labels: torch.Tensor, num_items_in_batch: torch.Tensor | int | None = None
) -> torch.Tensor:
    """Cross-entropy in nats, summed over the labelled tokens and divided by those of the whole update."""
    logits = outputs["logits"][:, :-1].float()
    targets = labels[:, 1:].to(logits.device)
    total = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="sum"
    )
    count = targets.ne(IGNORED).sum() if num_items_in_batch is None else torch.as_tensor(num_items_in_batch)
    return total / count.to(total.device).clamp(min=1)


def losses(history: Sequence[Mapping[str, float]]) -> tuple[tuple[int, float], ...]:
    """(step, training loss) of a log."""
    return tuple((int(entry["step"]), entry[_LOSS]) for entry in history if _LOSS in entry)


def held_out(history: Sequence[Mapping[str, float]]) -> tuple[tuple[int, float, float], ...]:
    """(step, plain, disabled) of a log: held-out losses in nats a token."""
    return tuple((int(e["step"]), e[_PLAIN], e[_DISABLED]) for e in history if _DISABLED in e)


def _line(entry: Mapping[str, float]) -> str:
    names = {"step": "step", _LOSS: "loss", "learning_rate": "learning_rate", "grad_norm": "gradient_norm"}
    names |= {_PLAIN: "held_out_plain", _DISABLED: "held_out_disabled"}
    if _LOSS not in entry and _DISABLED not in entry:
        return ""
    return json.dumps({ours: entry[theirs] for theirs, ours in names.items() if theirs in entry}) + "\n"
