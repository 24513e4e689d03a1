"""From a model's name to a model: `--model` of every command comes through here."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from toolwise.core.errors import BadInput, ModelUnavailable, ToolwiseError
from toolwise.core.jsonio import fingerprint, first_line, loads

try:
    import torch
    import transformers
    from safetensors import SafetensorError, safe_open
    from transformers.utils import cached_file
except ImportError as error:
    raise ModelUnavailable("Models need more packages: pip install 'toolwise[teach]'.") from error

from toolwise.models.hf import HFModel
from toolwise.models.hub import resolve
from toolwise.models.pulled import NOTE
from toolwise.models.tokenizers import HFTokenizer
from toolwise.notation.markers import Notation

_SAMPLES = 64  # blocks of a weights file that enter its fingerprint
_BLOCK = 64 * 1024


def load_model(name: str, *, device: str = "auto", dtype: str = "auto", threads: int | None = None) -> HFModel:
    """A model by its pulled name, a local folder, or a hub id.

    `dtype` auto is bf16 on a GPU and fp32 on a CPU: the filter compares small differences, and bf16 is several times
    slower on processors without the instructions. `threads`: of the CPU, in this process. Raises ModelUnavailable, and
    BadInput for a dtype that does not exist.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    device, dtype = placed(device, dtype)
    tokenizer, identity = describe_model(name, device=device, dtype=dtype)
    return HFModel(
        load_network(resolve(name), dtype=dtype).to(device),
        tokenizer,
        name=str(name),
        fingerprint=identity,
        batch_tokens=2_048 if device == "cpu" else 32_768,
        batch_rows=512 if device == "cpu" else 4_096,
    )


def describe_model(name: str, *, device: str = "auto", dtype: str = "auto") -> tuple[HFTokenizer, str]:
    """A model's tokenizer and fingerprint, without loading its weights. Raises as `load_model` does."""
    source = resolve(name)
    tokenizer = load_tokenizer(source)
    identity = [weights_identity(source), placed(device, dtype)[1], tokenizer.fingerprint]
    return tokenizer, fingerprint(identity)


def load_tokenizer(source: Path | str) -> HFTokenizer:
    """The tokenizer of a model folder or a hub id; it ends texts where the model's configuration does too, and knows
    the notation that the model was taught.

    Raises ModelUnavailable.
    """
    with readable(source) as options:
        ends = getattr(transformers.AutoConfig.from_pretrained(str(source), **options), "eos_token_id", None)
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(source), **options)
    return HFTokenizer(tokenizer, [ends] if isinstance(ends, int) else ends or (), notation_of(source))


def notation_of(source: Path | str) -> Notation:
    """How a model was taught to write calls, from the `toolwise.json` beside its weights; plain where nothing says so.

    Raises ModelUnavailable.
    """
    try:
        return Notation(**note_of(source).get("notation", {}))
    except (TypeError, AttributeError) as error:
        raise ModelUnavailable(f"{NOTE} of the model {str(source)!r} names no notation; restore that file.") from error


def is_taught(name: str) -> bool:
    """Whether a model was trained here on texts with calls in them. Raises ModelUnavailable."""
    note = note_of(resolve(name))
    return "notation" in note and not note.get("plain", False)


def note_of(source: Path | str) -> dict[str, Any]:
    """What the `toolwise.json` beside a model's weights says; nothing where there is none. Raises ModelUnavailable."""
    with readable(source) as options:
        file = cached_file(str(source), NOTE, _raise_exceptions_for_missing_entries=False, **options)
    try:
        note: dict[str, Any] = loads(Path(file).read_bytes()) if file else {}
        note.items()
        return note
    except (ToolwiseError, OSError, AttributeError) as error:
        raise ModelUnavailable(f"{NOTE} of the model {str(source)!r} names no notation; restore that file.") from error


def load_network(source: Path | str, *, dtype: str = "float32") -> Any:
    """The causal LM of a model folder or a hub id, on the CPU, in evaluation mode. Raises ModelUnavailable."""
    with readable(source) as options:
        network = transformers.AutoModelForCausalLM.from_pretrained(str(source), dtype=getattr(torch, dtype), **options)
    return network.eval()


@contextmanager
def cpu_threads(count: int | None) -> Iterator[None]:
    """So many threads of the CPU in this process, for as long as it lasts; None leaves them as they are."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars, notes and warnings of transformers, for as long as it lasts."""
    log = transformers.utils.logging
    verbosity, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # names that transformers is about to change
            yield
    finally:
        log.set_verbosity(verbosity)
        if bars:
            log.enable_progress_bar()


def placed(device: str, dtype: str) -> tuple[str, str]:
    """Where a network goes and in what precision, `auto` being decided. Raises BadInput for an unknown dtype."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if dtype == "auto":
        dtype = "float32" if device == "cpu" else "bfloat16"
    if dtype not in ("float32", "bfloat16", "float16"):
        raise BadInput(f"Unknown dtype {dtype!r}; use float32, bfloat16 or float16.")
    return device, dtype


@contextmanager
def readable(source: Path | str) -> Iterator[dict[str, Any]]:
    """Options for `from_pretrained`, whose failures become ModelUnavailable."""
    try:
        with quiet():
            yield {"local_files_only": isinstance(source, Path)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, SafetensorError) as error:
        advice = "complete or replace its files" if isinstance(source, Path) else "check the name and the connection"
        raise ModelUnavailable(
            f"Cannot load the model {str(source)!r}; {advice}: {type(error).__name__}: {first_line(error)}."
        ) from error


def weights_identity(source: Path | str) -> str:
    """A digest of evenly spaced blocks of every weights file; training moves every block, so samples are enough.

    Raises ModelUnavailable for a folder without weights and for safetensors that are not whole: a run that begins with
    them would belong to a model that nobody has.
    """
    if not isinstance(source, Path):
        with readable(source) as options:
            config = transformers.AutoConfig.from_pretrained(source, **options)
        return f"{source}@{getattr(config, '_commit_hash', None)}"
    digest = hashlib.sha256((source / "config.json").read_bytes())
    safe, others = sorted(source.glob("*.safetensors")), sorted(source.glob("*.bin"))
    if not safe and not others:
        raise ModelUnavailable(f"The folder {str(source)!r} holds no weights: it has no *.safetensors and no *.bin.")
    for file in safe:
        with readable(source), safe_open(file, framework="pt"):
            pass  # opening checks the header against the size
    for file in safe + others:
        size = os.path.getsize(file)
        digest.update(f"{file.name} {size}".encode())
        with file.open("rb") as stream:
            for sample in range(_SAMPLES):
                stream.seek(sample * max(0, size - _BLOCK) // (_SAMPLES - 1))
                digest.update(stream.read(_BLOCK))
    return digest.hexdigest()
