"""A model folder small enough to train in a test: two layers, a byte-level tokenizer in which " [" is one token."""

import json
from dataclasses import asdict
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

TEXT = "The price is [Calculator(18 / 24) -> 0.75] 0.75 crowns, said the man [Calendar() -> Monday] to the woman. " * 3
END = "<|endoftext|>"


def tokenizer(begin: bool = False, end: str = END) -> transformers.PreTrainedTokenizerFast:
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw.train_from_iterator(
        [TEXT],
        trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, special_tokens=[end], show_progress=False),
    )
    if begin:
        from tokenizers import processors

        raw.post_processor = processors.TemplateProcessing(single=f"{end} $A", special_tokens=[(end, 0)])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=raw, eos_token=end, bos_token=end if begin else None)


def configuration(kind: str = "llama", vocabulary: int = 300) -> transformers.PretrainedConfig:
    shared = {"vocab_size": vocabulary, "bos_token_id": 0, "eos_token_id": 0}
    if kind == "llama":
        shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
        return transformers.LlamaConfig(**shared, **shape, num_key_value_heads=2, tie_word_embeddings=True)
    if kind == "gpt2":
        return transformers.GPT2Config(**shared, n_embd=32, n_layer=2, n_head=4, n_positions=256)
    assert kind == "bloom"
    return transformers.BloomConfig(**shared, hidden_size=32, n_layer=2, n_head=4)


def network(kind: str = "llama") -> torch.nn.Module:
    torch.manual_seed(0)
    made = transformers.AutoModelForCausalLM.from_config(configuration(kind)).eval()
    for parameter in made.parameters():
        parameter.data.mul_(2)  # fresh weights are so small that a wrong mask would hardly show
    return made


def model_folder(path: Path, kind: str = "llama", begin: bool = False) -> Path:
    network(kind).save_pretrained(path)
    tokenizer(begin).save_pretrained(path)
    return path


def special_folder(path: Path) -> Path:
    """The same with special markers, as training leaves it."""
    from toolwise.models.growth import grow, with_notation
    from toolwise.models.tokenizers import HFTokenizer
    from toolwise.notation.markers import SPECIAL

    grown, rows = with_notation(HFTokenizer(tokenizer()), SPECIAL)
    grow(network(), rows).save_pretrained(path)
    grown.wrapped.save_pretrained(path)
    (path / "toolwise.json").write_text(json.dumps({"notation": asdict(SPECIAL)}))
    return path
