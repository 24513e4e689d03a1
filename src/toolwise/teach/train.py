"""Fine-tuning on C*: rows with woven calls and a model folder in, a model folder out.

The ordinary language-model objective (paper, section 2) by transformers' Trainer. What the paper states is the default:
128 texts an update, learning rate 1e-5 with linear warm-up over the first tenth, at most 2,000 updates, length 1,024,
held-out perplexity every 500 updates, the best checkpoint kept, bf16 where the GPU has it. What it does not state is
chosen so: constant learning rate after the warm-up, AdamW without weight decay, gradients clipped at norm 1.

One process uses one GPU, or the CPU. Several GPUs, and FSDP, come from the launcher, with nothing to set here:

    torchrun --nproc-per-node 8 train_it.py
    accelerate launch --use_fsdp --fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP \\
        --fsdp_state_dict_type FULL_STATE_DICT train_it.py

(a sharded state dict cannot be made into a model folder). Every process calls `train` with the same arguments.

End of text: an id that ends a text stands behind every example, in the plain run too, if the tokenizer has one that
means just that (`HFTokenizer.end_of_text`). An end of turn is not one.

Not covered: FSDP is accelerate's and needs GPUs, so the tests run several processes with whole copies only; bitwise
equality between machines or numbers of devices.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import torch
import transformers
from accelerate import PartialState
from accelerate.utils import broadcast_object_list
from rich.progress import Progress

from toolwise.core.durable import storage
from toolwise.core.errors import BadInput
from toolwise.models.growth import NewRows, grow, with_notation
from toolwise.models.load import cpu_threads, load_network, load_tokenizer, quiet
from toolwise.models.network import longest_context
from toolwise.notation.markers import PLAIN, Notation
from toolwise.teach.records import Augmented
from toolwise.teach.training.data import TrainingData, hold_out
from toolwise.teach.training.lora import merged, with_lora
from toolwise.teach.training.packing import PackedRows, collate, keeps_apart, order
from toolwise.teach.training.run_folder import RunFolder, folder_fingerprint, rows_fingerprint, step_of
from toolwise.teach.training.settings import HeldOut, TrainReport, TrainSettings
from toolwise.teach.training.trainer import LOG, HeldOutTrainer, Watch, held_out, losses

__all__ = ["HeldOut", "TrainReport", "TrainSettings", "hold_out", "train"]

#: These change how fast a run goes, not what it learns, so a resumed run may change them.
_FREE = ("device_tokens", "threads", "checkpoint_every")


def train(
    rows: Sequence[Augmented],
    model_folder: Path,
    out: Path,
    settings: TrainSettings = TrainSettings(),  # noqa: B008 - frozen
    *,
    plain: bool = False,
    notation: Notation = PLAIN,
    tools: Sequence[str] = (),
    progress: Progress | None = None,
) -> TrainReport:
    """Train the model of `model_folder` on `rows` and write the best checkpoint to `out` as an ordinary model folder.

    `plain` trains on the same documents in the same order without their calls, the paper's control. `notation` is how
    the model is to write calls, its special markers becoming tokens; `rows` are in the plain one always. It goes into
    `toolwise.json` beside the weights, and so do the names `tools`. Killed at any instant, the same call goes on where
    it was. Weights are saved in fp32, as they were measured.

    Raises BadInput (no rows, `out` taken or not writable, a loss that is not finite), ModelUnavailable,
    SettingsDiffer (an unfinished run with other rows or settings), InProgress, StorageUnavailable.
    """
    process = PartialState(cpu=_on_cpu())
    if torch.cuda.device_count() > 1 and process.num_processes == 1:
        raise BadInput("Several GPUs are visible: start with torchrun, or show one in CUDA_VISIBLE_DEVICES.")
    if not rows:
        raise BadInput("There are no rows to train on; annotate a corpus first.")
    identity = {
        "base_sha256": folder_fingerprint(model_folder),
        "rows_sha256": rows_fingerprint(rows),
        "settings": {name: value for name, value in asdict(settings).items() if name not in _FREE},
        "plain": plain,
        "notation": asdict(notation),
        "tools": list(tools),
    }
    with quiet(), cpu_threads(_threads(settings)), RunFolder(out, identity, main=process.is_main_process) as folder:
        process.wait_for_everyone()
        tokenizer, new_rows = with_notation(load_tokenizer(model_folder), notation)

        def base() -> Any:
            return grow(load_network(model_folder), new_rows)

        data = TrainingData.of(rows, tokenizer, settings, plain)
        report = _fit(base, new_rows, folder, data, settings, progress)
        if process.is_main_process:
            best, lora = folder.checkpoint(report.best_step), settings.lora_rank is not None
            network = merged(base(), best) if lora else load_network(best)
            network.config.use_cache = _uses_cache(model_folder)  # off while training
            card = {
                "format": 1,
                "base_name": model_folder.name,
                **identity,
                **_summary(report),
                "run": folder.fingerprint,
            }
            folder.publish(network, tokenizer.wrapped, card, adapter=best if lora else None)
        process.wait_for_everyone()
    return report


def _fit(
    base: Callable[[], Any],
    new_rows: NewRows,
    folder: RunFolder,
    data: TrainingData,
    settings: TrainSettings,
    progress: Progress | None,
) -> TrainReport:
    """Run the loop, from the last checkpoint where there is one. The best checkpoint stays in the folder."""
    process = PartialState()  # the one that `train` set up
    network = base()
    longest = longest_context(network)
    if longest is not None and settings.length > longest:
        raise BadInput(f"This model reads at most {longest} tokens; set length to at most that.")
    network.config.use_cache = False
    # One process answers for all: the answer must be one, and under FSDP the others may hold no weights yet.
    packed = bool(broadcast_object_list([process.is_main_process and keeps_apart(network)])[0])
    if settings.gradient_checkpointing:
        network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if settings.lora_rank is not None:
        network = with_lora(network, settings.lora_rank, settings.seed, new_rows)
    last = folder.last_checkpoint()
    if last is None:
        folder.require_space(network)
    count = len(data.examples)
    steps = settings.steps
    if settings.epochs is not None:
        steps = min(steps, math.ceil(settings.epochs * count / settings.batch))
    budget = settings.device_tokens or (settings.length if process.device.type == "cpu" else 4_096)
    widest = settings.length if packed else max(len(piece) for e in data.examples for piece in e.pieces)
    device_rows = max(1, budget // widest)
    dataset = PackedRows(
        data.examples,
        list(order(count, settings.batch, steps, settings.seed)),
        settings.length,
        packed=packed,
        multiple=device_rows * process.num_processes,
    )
    accumulation = dataset.rows_per_step // (device_rows * process.num_processes)
    trainer = HeldOutTrainer(
        network=network,
        arguments=_arguments(folder, settings, steps, device_rows, accumulation, start=last is None, data=data),
        rows=dataset,
        collate=partial(collate, packed=packed),
        held_out=data.held_out,
        marker=data.marker,
        batch_tokens=budget,
        decay=settings.schedule == "linear",
        watch=Watch(folder.path, progress if process.is_main_process else None, write=process.is_main_process),
    )
    with storage(folder.path):
        trainer.train(resume_from_checkpoint=str(last) if last else None)
    state = trainer.state
    return TrainReport(
        out=folder.out,
        steps=state.global_step,
        best_step=state.best_global_step or state.global_step,
        resumed_from=0 if last is None else step_of(last),
        packed=packed,
        rows=count,
        held_out_rows=data.held_out_rows,
        tokens=sum(len(piece) for example in data.examples for piece in example.pieces),
        dropped=data.dropped,
        losses=losses(state.log_history),
        held_out=tuple(HeldOut(s, math.exp(a), math.exp(b)) for s, a, b in held_out(state.log_history)),
    )


def _arguments(
    folder: RunFolder,
    settings: TrainSettings,
    steps: int,
    device_rows: int,
    accumulation: int,
    *,
    start: bool,
    data: TrainingData,
) -> transformers.TrainingArguments:
    measure = bool(data.held_out)
    gpu_bf16 = torch.cuda.is_available() and torch.cuda.is_bf16_supported(including_emulation=False)
    return transformers.TrainingArguments(
        output_dir=str(folder.path),
        use_cpu=_on_cpu(),
        per_device_train_batch_size=device_rows,
        gradient_accumulation_steps=accumulation,
        max_steps=steps,
        learning_rate=settings.learning_rate,
        warmup_steps=math.ceil(settings.warmup * steps),
        seed=settings.seed,
        bf16=gpu_bf16 if settings.bf16 == "auto" else settings.bf16,
        train_sampling_strategy="sequential",  # the order is ours, so that it does not depend on the devices
        remove_unused_columns=False,
        dataloader_pin_memory=torch.cuda.is_available(),
        eval_strategy="steps" if measure else "no",
        eval_steps=settings.evaluate_every,
        eval_on_start=measure and start,
        metric_for_best_model="eval_disabled" if measure else None,
        greater_is_better=False if measure else None,
        save_steps=settings.checkpoint_every,
        save_total_limit=2,
        logging_steps=1,
        logging_nan_inf_filter=False,
        report_to="none",
        ddp_find_unused_parameters=False,
        disable_tqdm=True,
    )


def _on_cpu() -> bool:
    """Said aloud, since accelerate would otherwise not join the processes of a launcher without GPUs."""
    return not torch.accelerator.is_available()


def _summary(report: TrainReport) -> dict[str, Any]:
    summary = asdict(report)
    del summary["out"]
    summary["losses"] = {"first": report.losses[0], "last": report.losses[-1], "all": LOG}
    return {**summary, "versions": {"torch": torch.__version__, "transformers": transformers.__version__}}


def _threads(settings: TrainSettings) -> int | None:
    if settings.threads is None and "OMP_NUM_THREADS" not in os.environ:  # a launcher of several processes sets it
        cores: int | None = psutil.cpu_count(logical=False)
        return cores
    return settings.threads


def _uses_cache(folder: Path) -> bool:
    """Whether the network of a folder decodes with a cache unless told otherwise."""
    return bool(getattr(transformers.AutoConfig.from_pretrained(folder, local_files_only=True), "use_cache", True))
