"""From a model's name to a model: `--model` of every command comes through here."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from toolwise.core.errors import BadInput, ModelUnavailable
from toolwise.core.jsonio import fingerprint
from toolwise.models.hf import HFModel
from toolwise.models.hub import resolve
from toolwise.models.tokenizers import HFTokenizer

_SAMPLES = 64  # blocks of a weights file that enter its fingerprint
_BLOCK = 64 * 1024


def load_model(name: str, *, device: str = "auto", dtype: str = "auto", threads: int | None = None) -> HFModel:
    """A model by its pulled name, a local folder, or a hub id.

    `dtype` auto is bf16 on a GPU and fp32 on a CPU: the filter compares small differences, and bf16 is several times
    slower on processors without the instructions. `threads`: of the CPU, in this process. Raises ModelUnavailable.
    """
    torch, transformers = _libraries()
    if threads is not None:
        torch.set_num_threads(threads)
    device, dtype = _placed(torch, device, dtype)
    tokenizer, identity = describe_model(name, device=device, dtype=dtype)
    with _readable(name):
        network = transformers.AutoModelForCausalLM.from_pretrained(
            str(resolve(name)), dtype=getattr(torch, dtype), attn_implementation="sdpa"
        )
    return HFModel(
        network.to(device).eval(),
        tokenizer,
        name=str(name),
        fingerprint=identity,
        batch_tokens=2_048 if device == "cpu" else 32_768,
        batch_rows=512 if device == "cpu" else 4_096,
    )


def describe_model(name: str, *, device: str = "auto", dtype: str = "auto") -> tuple[HFTokenizer, str]:
    """A model's tokenizer and fingerprint, without loading its weights. Raises ModelUnavailable."""
    torch, transformers = _libraries()
    source = resolve(name)
    with _readable(name):
        config = transformers.AutoConfig.from_pretrained(str(source))
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(source))
    ends = getattr(config, "eos_token_id", None)
    wrapped = HFTokenizer(tokenizer, [ends] if isinstance(ends, int) else ends or ())
    vocabulary = hashlib.sha256(repr(sorted(tokenizer.get_vocab().items())).encode()).hexdigest()
    identity = (_weights_identity(source, config), _placed(torch, device, dtype)[1], vocabulary)
    return wrapped, fingerprint(list(identity))


def _libraries() -> tuple[Any, Any]:
    try:
        import torch
        import transformers
    except ImportError as error:
        raise ModelUnavailable("Models need more packages: pip install 'toolwise[teach]'.") from error
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return torch, transformers


def _placed(torch: Any, device: str, dtype: str) -> tuple[str, str]:
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if dtype == "auto":
        dtype = "float32" if device == "cpu" else "bfloat16"
    if dtype not in ("float32", "bfloat16", "float16"):
        raise BadInput(f"Unknown dtype {dtype!r}; use float32, bfloat16 or float16.")
    return device, dtype


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        line = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        raise ModelUnavailable(f"Cannot load the model {name!r}: {line}") from error


def _weights_identity(source: Path | str, config: Any) -> str:
    """A digest of evenly spaced blocks of every weights file; training moves every block, so samples are enough."""
    if not isinstance(source, Path):
        return f"{source}@{getattr(config, '_commit_hash', None)}"
    digest = hashlib.sha256((source / "config.json").read_bytes())
    for file in sorted(source.glob("*.safetensors")) + sorted(source.glob("*.bin")):
        size = os.path.getsize(file)
        digest.update(f"{file.name} {size}".encode())
        with file.open("rb") as stream:
            for sample in range(_SAMPLES):
                stream.seek(sample * max(0, size - _BLOCK) // (_SAMPLES - 1))
                digest.update(stream.read(_BLOCK))
    return digest.hexdigest()
