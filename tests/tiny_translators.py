"""Translators small enough to be taught three sentences in a test: one of many languages as NLLB, one as OPUS."""

from __future__ import annotations

import io
import json
from pathlib import Path

import sentencepiece
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

PAIRS = {"hola mundo": "hello world", "el gato duerme": "the cat sleeps", "la casa roja": "the red house"}
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
LANGUAGES = ["spa_Latn", "fra_Latn", "eng_Latn"]
_SHAPE = {
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "max_position_embeddings": 64,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}


def many_languages(folder: Path) -> Path:
    """As NLLB: a token for every language, one vocabulary, `tokenizer.json`. It was taught Spanish alone."""
    words = sorted({f"▁{word}" for pair in PAIRS.items() for text in pair for word in text.split()})
    vocabulary = {word: at for at, word in enumerate([*SPECIAL, *words, *LANGUAGES])}
    raw = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    raw.pre_tokenizer, raw.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    raw.add_special_tokens([*SPECIAL, *LANGUAGES])
    marks = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=raw, **marks).save_pretrained(folder)

    def ids(language: str, text: str) -> list[int]:
        return [vocabulary[language], *raw.encode(text, add_special_tokens=False).ids, vocabulary["</s>"]]

    config = transformers.M2M100Config(
        vocab_size=len(vocabulary), bos_token_id=0, pad_token_id=1, eos_token_id=2, decoder_start_token_id=2, **_SHAPE
    )
    torch.manual_seed(0)
    network = transformers.M2M100ForConditionalGeneration(config)
    _taught(network, [(ids("spa_Latn", a), ids("eng_Latn", b)) for a, b in PAIRS.items()], pad=1)
    network.save_pretrained(folder)
    return folder


def one_direction(folder: Path) -> Path:
    """As OPUS: no token for a language, SentencePiece for either side."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, texts in (("source.spm", PAIRS), ("target.spm", PAIRS.values())):
        with io.BytesIO() as model:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter([*texts] * 20),
                model_writer=model,
                vocab_size=60,
                hard_vocab_limit=False,
                minloglevel=2,
            )
            (folder / name).write_bytes(model.getvalue())
    sides = [
        sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{name}.spm")) for name in ("source", "target")
    ]
    pieces = sorted({side.id_to_piece(at) for side in sides for at in range(side.get_piece_size())} - set(SPECIAL))
    vocabulary = {piece: at for at, piece in enumerate(["</s>", "<unk>", *pieces, "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    files = {"source_spm": "source.spm", "target_spm": "target.spm", "vocab": "vocab.json"}
    tokenizer = transformers.MarianTokenizer(
        **{key: str(folder / name) for key, name in files.items()}, source_lang="es", target_lang="en"
    )
    tokenizer.save_pretrained(folder)

    def ids(at: int, text: str) -> list[int]:
        return [*(vocabulary[piece] for piece in sides[at].encode(text, out_type=str)), 0]

    pad = vocabulary["<pad>"]
    config = transformers.MarianConfig(
        vocab_size=len(vocabulary),
        pad_token_id=pad,
        eos_token_id=0,
        forced_eos_token_id=None,
        decoder_start_token_id=pad,
        **_SHAPE,
    )
    torch.manual_seed(0)
    network = transformers.MarianMTModel(config)
    _taught(network, [(ids(0, a), ids(1, b)) for a, b in PAIRS.items()], pad)
    network.save_pretrained(folder)
    return folder


def _taught(network: torch.nn.Module, pairs: list[tuple[list[int], list[int]]], pad: int) -> None:
    def column(at: int, fill: int) -> torch.Tensor:
        rows = [torch.tensor(pair[at]) for pair in pairs]
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=fill)

    given, labels = column(0, pad), column(1, -100)
    optimizer = torch.optim.Adam(network.parameters(), 1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        loss = network(input_ids=given, attention_mask=given != pad, labels=labels).loss
        loss.backward()
        optimizer.step()
    network.eval()
