"""What a training run is told and what it reports: frozen values, no torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS
from toolwise.core.toml import read_toml


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """How to train. The defaults are the paper's; a CPU wants a smaller `batch` and `length`, LoRA a higher rate."""

    batch: int = 128  # texts an update
    learning_rate: float = 1e-5  # behind the warm-up
    warmup: float = 0.1  # share of the updates
    schedule: Literal["constant", "linear"] = "constant"  # after the warm-up
    steps: int = 2_000  # updates at most
    epochs: float | None = None  # passes over the rows at most
    length: int = 1_024  # tokens of a packed row, and of an example
    held_out_share: float = 0.05  # of the rows, whole documents; 0 measures nothing and keeps the last checkpoint
    held_out_texts: int = 1_000  # rows at most
    evaluate_every: int = 500  # updates
    checkpoint_every: int = 100  # updates
    mask_results: bool = False  # no loss on what the runtime writes (compare Search-R1); the paper has it
    lora_rank: int | None = None  # None trains every weight
    bf16: bool | Literal["auto"] = "auto"  # auto: on GPUs that have it
    gradient_checkpointing: bool = False  # compute activations again instead of keeping them: slower, less memory
    device_tokens: int | None = None  # tokens that one device reads at once; None: one row on a CPU, 4,096 on a GPU
    threads: int | None = None  # of the CPU; None: one a physical core
    seed: int = 0  # of the order of the texts, of which are held out, and of LoRA's first weights

    def __post_init__(self) -> None:
        """Raises BadInput for a value that cannot be meant."""
        positive = ("batch", "learning_rate", "steps", "epochs", "evaluate_every", "checkpoint_every")
        for name in (*positive, "lora_rank", "device_tokens", "threads"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise BadInput(f"{name} is {value}; it must be above zero.")
        if self.steps * self.batch > LIMITS.trained_texts:
            raise BadInput(
                f"steps times batch is {self.steps * self.batch}; read at most {LIMITS.trained_texts} texts."
            )
        if self.threads is not None and self.threads > LIMITS.threads:
            raise BadInput(f"threads is {self.threads}; give at most {LIMITS.threads}.")
        if self.seed < 0:
            raise BadInput(f"seed is {self.seed}; it must not be below zero.")
        if not 0 <= self.warmup <= 1 or not 0 <= self.held_out_share < 1:
            raise BadInput("warmup and held_out_share are shares; give numbers from 0 up to 1.")
        if self.length < 8:
            raise BadInput(f"length is {self.length}; an example needs at least 8 tokens.")


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What was measured on the plain held-out texts after `step` updates; perplexities are a token's."""

    step: int
    perplexity: float
    disabled: float  # with calls disabled; the lowest is the best checkpoint


@dataclass(frozen=True, slots=True)
class TrainReport:
    """What a run did. `dropped` counts rows by reason; `losses` are (step, mean loss in nats a token)."""

    out: Path
    steps: int
    best_step: int
    resumed_from: int
    packed: bool
    rows: int
    held_out_rows: int
    tokens: int
    dropped: dict[str, int]
    losses: tuple[tuple[int, float], ...]
    held_out: tuple[HeldOut, ...]


def load_train_settings(file: Path | None = None, assignments: Sequence[str] = ()) -> TrainSettings:
    """The defaults, with what a TOML file says over them, and `name=value` assignments over both. Raises BadInput."""
    values: dict[str, Any] = read_toml(file) if file is not None else {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise BadInput(f"{assignment!r} is no assignment; write it as name=value.")
        values[name.strip()] = None if value.strip() == "none" else value.strip()
    unknown = sorted(set(values) - set(TrainSettings.__dataclass_fields__))
    if unknown:
        known = ", ".join(TrainSettings.__dataclass_fields__)
        raise BadInput(f"There is no training setting {unknown[0]!r}; there are {known}.")
    try:
        return TypeAdapter(TrainSettings).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise BadInput(f"Training setting {'.'.join(map(str, first['loc']))}: {first['msg']}.") from error


def report_json(report: TrainReport) -> dict[str, Any]:
    """The report as JSON values."""
    return {
        **asdict(report),
        "out": str(report.out),
        "losses": [list(pair) for pair in report.losses],
        "held_out": [asdict(held_out) for held_out in report.held_out],
    }
