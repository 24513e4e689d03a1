"""The tokenizer that comes out of a GGUF file, on small ones made here and on the pulled model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from toolwise.core.errors import ModelUnavailable
from toolwise.models.gguf import check_tokenizer, dequantise


def byte_level(
    *merges: tuple[str, str], without: str = "", template: str = "{{ messages }}", begins: bool = False
) -> Any:
    """A byte-level BPE tokenizer of single bytes and a few merges."""
    alphabet = sorted(set(pre_tokenizers.ByteLevel.alphabet()) - set(without))
    tokens = ["<s>", *alphabet, *("".join(pair) for pair in merges)]
    made = Tokenizer(models.BPE({token: id for id, token in enumerate(tokens)}, list(merges)))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    if begins:
        made.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 0)])
    wrapped = PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>")
    wrapped.chat_template = template
    return wrapped


def test_a_tokenizer_of_all_bytes_passes() -> None:
    check_tokenizer(byte_level(("t", "h"), ("th", "e")))


@pytest.mark.parametrize(
    ("tokenizer", "says"),
    [
        (byte_level(without="Ã"), "loses .* characters, U\\+00C0"),
        (byte_level(without="Ċ"), "loses 1 characters, U\\+000A"),
        (byte_level(("2", "0")), "joins digits"),
        (byte_level(begins=True), "adds tokens around a text"),
        (byte_level(template=""), "no chat template"),
    ],
)
def test_a_tokenizer_that_changes_what_the_model_reads_is_refused(tokenizer: Any, says: str) -> None:
    with pytest.raises(ModelUnavailable, match=says):
        check_tokenizer(tokenizer)


def test_a_vocabulary_may_lack_control_characters() -> None:
    check_tokenizer(byte_level(without="Ą"))  # how byte-level alphabets write U+0004


def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path) -> None:
    (tmp_path / "weights.gguf").write_bytes(b"GGUF" + bytes(200))
    with pytest.raises(ModelUnavailable, match=r"weights\.gguf cannot be read as a model"):
        dequantise(tmp_path / "weights.gguf", tmp_path)


@pytest.mark.model
def test_the_pulled_tokenizer_passes_the_check_from_disk(smollm2: Path) -> None:
    check_tokenizer(AutoTokenizer.from_pretrained(smollm2))


@pytest.mark.model
@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (" 24 clips", ["Ġ", "2", "4", "Ġclips"]),
        ("a\n\n5", ["a", "ĊĊ", "5"]),  # without the digits' own cut, two tokens for the line ends
        (" )] )->", ["Ġ)", "]", "Ġ)", "->"]),
    ],
)
def test_the_pulled_tokenizer_cuts_text_as_in_training(text: str, tokens: list[str], smollm2: Path) -> None:
    assert AutoTokenizer.from_pretrained(smollm2).tokenize(text) == tokens


@pytest.mark.model
def test_the_pulled_folder_is_a_plain_model_without_quantisation(smollm2: Path) -> None:
    from safetensors import safe_open
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(smollm2)
    assert config.architectures == ["LlamaForCausalLM"]
    assert not hasattr(config, "quantization_config")
    with safe_open(smollm2 / "model.safetensors", "pt") as weights:
        assert len(weights.keys()) == 272
        assert "lm_head.weight" not in weights.keys()  # noqa: SIM118 - not a mapping
        assert weights.get_slice("model.embed_tokens.weight").get_shape() == [49152, 576]
    assert "Apache License" in (smollm2 / "LICENSE").read_text()
