"""A GGUF file -> a folder that transformers loads: fp32 safetensors, config, and a tokenizer that was checked.

De-quantised once, because loading GGUF takes many times as long as loading safetensors, and to fp32, because the
filter compares small differences of losses.

Covered: byte-level BPE tokenizers whose pre-tokenizer stands in `PRE_TOKENIZERS`. Any other file is refused: a
tokenizer that is almost right changes what the model reads without anybody noticing.
"""

from __future__ import annotations

import errno
import random
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolwise.core.errors import ModelUnavailable

#: GGUF's name for how text is cut before the merges -> whether digits are cut one by one first. transformers reads the
#: vocabulary and the merges but not this name, and without it "\n\n5" becomes other tokens than in training.
PRE_TOKENIZERS = {"gpt-2": False, "smollm": True}

_NASTY = (
    "",
    " ",
    "  two  spaces \n\n and lines\r\n\tand tabs\n\n5",
    "naïve façade — “quoted” … ﬁne",
    "日本語 العربية עברית हिन्दी ไทย",
    "👩\u200d👩\u200d👧\u200d👦 🏳️\u200d🌈 e\u0301 \u202eright to left\u202c \ufeff\u2028",
    " [Calculator(18 / 24) -> 0.75] )] )-> ]] -> [[",
    "1,234.50 % ½ ² ٣٤ 𝟙𝟚",
)


def dequantise(weights: Path, folder: Path) -> None:
    """Write `model.safetensors`, `config.json` and the tokenizer of a GGUF file into `folder`.

    Raises ModelUnavailable when the file cannot be read or its tokenizer fails `check_tokenizer`, OSError when the
    folder cannot be written.
    """
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = {"pretrained_model_name_or_path": str(weights.parent), "gguf_file": weights.name}
    try:
        tokenizer = AutoTokenizer.from_pretrained(**where)
        _cut_like_the_original(tokenizer, weights)
        check_tokenizer(tokenizer)
        model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelUnavailable(f"{weights.name} cannot be read as a model: {error}") from error

    # `save_pretrained` refuses a model that came from a quantised file, so the parts are written one by one.
    tied = {"lm_head.weight"} if model.config.tie_word_embeddings else set()
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items() if name not in tied}
    config = model.config
    del config.quantization_config
    config.architectures = [type(model).__name__]
    tokenizer.model_max_length = config.max_position_embeddings
    try:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    except SafetensorError as error:
        full = "os error 28" in str(error)
        raise OSError(errno.ENOSPC if full else errno.EIO, str(error)) from error
    (folder / "model.safetensors").chmod(0o644)
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _cut_like_the_original(tokenizer: Any, weights: Path) -> None:
    from gguf import GGUFReader
    from tokenizers import pre_tokenizers

    field = GGUFReader(weights).get_field("tokenizer.ggml.pre")
    name = field.contents() if field else None
    if name not in PRE_TOKENIZERS:
        raise ModelUnavailable(f"{weights.name} cuts its text in a way that is not known here ({name!r}).")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    digits = [pre_tokenizers.Digits(individual_digits=True)] if PRE_TOKENIZERS[name] else []
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*digits, byte_level])


def check_tokenizer(tokenizer: Any) -> None:
    """Raise ModelUnavailable unless the tokenizer is byte-exact, cuts digits one by one, adds nothing, and can chat.

    Byte-exact means that every character that Unicode assigns comes back, control characters other than tab and line
    ends excepted: a vocabulary may lack the bytes of what never stood in its training text.
    """
    lost = set(_lost_characters(tokenizer))
    visible = sorted(char for char in lost if unicodedata.category(char) != "Cc" or char in "\t\n\r")
    if visible:
        shown = ", ".join(f"U+{ord(char):04X}" for char in visible[:3])
        raise ModelUnavailable(f"The tokenizer loses {len(visible)} characters, {shown} among them.")
    for text in (*_NASTY, *_random_texts(lost)):
        if _round_trip(tokenizer, text) != text:
            raise ModelUnavailable(f"The tokenizer does not give back {text[:40]!r} unchanged.")
    for number in ("0123456789", "x 2024\n\n31,415.926"):
        if any(len(token) > 1 and any(map(str.isdigit, token)) for token in tokenizer.tokenize(number)):
            raise ModelUnavailable(f"The tokenizer joins digits in {number!r}; this model was trained on single ones.")
    if tokenizer.encode("a") != tokenizer.encode("a", add_special_tokens=False):
        raise ModelUnavailable("The tokenizer adds tokens around a text; this model was trained without them.")
    if not tokenizer.chat_template:
        raise ModelUnavailable("The tokenizer has no chat template.")


def _round_trip(tokenizer: Any, text: str) -> str:
    ids = tokenizer.encode(text, add_special_tokens=False)
    decoded: str = tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    return decoded


def _lost_characters(tokenizer: Any) -> Iterator[str]:
    """The assigned characters that do not come back, found by blocks first because almost all of them do."""
    assigned = [char for char in map(chr, range(0x110000)) if unicodedata.category(char) not in ("Cn", "Cs", "Co")]
    for start in range(0, len(assigned), 512):
        block = assigned[start : start + 512]
        if _round_trip(tokenizer, "".join(block)) != "".join(block):
            yield from (char for char in block if _round_trip(tokenizer, char) != char)


def _random_texts(lost: set[str], count: int = 200) -> Iterator[str]:
    generator = random.Random(0)  # noqa: S311 - test texts, not secrets
    edges = (0x7F, 0x7FF, 0xFFFF, 0x3FFFF)
    for _ in range(count):
        drawn = (chr(generator.randint(0, generator.choice(edges))) for _ in range(60))
        yield "".join(c for c in drawn if c not in lost and unicodedata.category(c) not in ("Cn", "Cs"))
