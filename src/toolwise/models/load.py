"""From a model's name to a model: `--model` of every command comes through here."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from toolwise.core.errors import BadInput, ModelUnavailable
from toolwise.core.jsonio import fingerprint
from toolwise.models.hf import HFModel
from toolwise.models.hub import resolve
from toolwise.models.tokenizers import HFTokenizer

_SAMPLES = 64  # blocks of a weights file that enter its fingerprint
_BLOCK = 64 * 1024


def load_model(
    name: str,
    *,
    device: str = "auto",
    dtype: str = "auto",
    threads: int | None = None,
    revision: str | None = None,
) -> HFModel:
    """A model by its pulled name, a local folder, or a hub id.

    `dtype` auto is bf16 on a GPU and fp32 on a CPU, where bf16 is several times slower without the instructions and
    the filter compares small differences. `threads` is the number of CPU threads. Raises ModelUnavailable.
    """
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    if threads is not None:
        torch.set_num_threads(threads)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if dtype == "auto":
        dtype = "float32" if device == "cpu" else "bfloat16"
    if dtype not in ("float32", "bfloat16", "float16"):
        raise BadInput(f"Unknown dtype {dtype!r}; use float32, bfloat16 or float16.")
    source = resolve(name)
    options: dict[str, Any] = {"revision": revision} if revision else {}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(source), **options)
        network = transformers.AutoModelForCausalLM.from_pretrained(
            str(source), dtype=getattr(torch, dtype), attn_implementation="sdpa", **options
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelUnavailable(f"Cannot load the model {name!r}: {_first_line(error)}") from error
    network = network.to(device).eval()
    ends = network.generation_config.eos_token_id if network.generation_config else None
    identity = {
        "weights": _weights_identity(source, network),
        "dtype": dtype,
        "vocabulary": tokenizer.get_vocab(),
    }
    return HFModel(
        network,
        HFTokenizer(tokenizer, [ends] if isinstance(ends, int) else ends or ()),
        name=str(name),
        fingerprint=fingerprint(identity),
        batch_tokens=2_048 if device == "cpu" else 32_768,
        batch_rows=512 if device == "cpu" else 4_096,
    )


def _weights_identity(source: Path | str, network: Any) -> str:
    """A digest of evenly spaced blocks of every weights file; training moves every block, so samples are enough."""
    if not isinstance(source, Path):
        return f"{source}@{getattr(network.config, '_commit_hash', None)}"
    digest = hashlib.sha256((source / "config.json").read_bytes())
    for file in sorted(source.glob("*.safetensors")) + sorted(source.glob("*.bin")):
        size = os.path.getsize(file)
        digest.update(f"{file.name} {size}".encode())
        with file.open("rb") as stream:
            for sample in range(_SAMPLES):
                stream.seek(sample * max(0, size - _BLOCK) // (_SAMPLES - 1))
                digest.update(stream.read(_BLOCK))
    return digest.hexdigest()


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
