"""A question-answering network as reader: a tiny random one of transformers, and its spans looked for the slow way."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from toolwise.core.errors import BadInput, ModelUnavailable
from toolwise.core.limits import LIMITS
from toolwise.models.readers.extractive import ExtractiveReader, load_reader
from toolwise.tools.index import Hit

TEXTS = [
    ("Danube", "The Danube rises in the Black Forest and flows through ten countries."),
    ("Bergen", "Bergen is a city on the west coast of Norway."),
    ("", "Bread is baked for an hour."),
]
PASSAGES = [Hit(str(number), title, text, 1.0, None, None) for number, (title, text) in enumerate(TEXTS)]
QUESTION = "Where does the Danube rise?"
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def word_tokenizer() -> transformers.PreTrainedTokenizerFast:
    said = f"{QUESTION} {' '.join(itertools.chain(*TEXTS))}".lower().replace(".", " . ").replace("?", " ? ")
    raw = Tokenizer(models.WordLevel({word: i for i, word in enumerate(dict.fromkeys(MARKS + said.split()))}, "[UNK]"))
    raw.normalizer, raw.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.BertPreTokenizer()
    raw.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )


def configuration() -> transformers.BertConfig:
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    return transformers.BertConfig(vocab_size=len(word_tokenizer()), max_position_embeddings=48, **shape)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("reader")
    network = transformers.BertForQuestionAnswering(configuration())
    for parameter in network.parameters():
        parameter.data.mul_(8)  # fresh weights are so small that every span is about as good
    network.save_pretrained(path)
    word_tokenizer().save_pretrained(path)
    return path


@pytest.fixture
def reader(folder: Path) -> ExtractiveReader:
    return load_reader(str(folder))


def no_answer(reader: ExtractiveReader, by: float) -> None:
    """Make no answer better by so much, in every passage."""
    network = reader._network
    plain = network.forward

    def forward(**given: torch.Tensor) -> object:
        scored = plain(**given)
        scored.start_logits[:, 0] += by
        return scored

    network.forward = forward


def slowly(folder: Path, most: int = LIMITS.answer_tokens) -> tuple[float, str]:
    """One passage alone, without padding, every span looked at: the best margin over no answer, and its text."""
    network = transformers.AutoModelForQuestionAnswering.from_pretrained(folder).eval()
    spans = []
    for title, text in TEXTS:
        told = f"{title}. {text}" if title else text
        given = word_tokenizer()(QUESTION, told, return_tensors="pt", return_offsets_mapping=True)
        where, parts = given.pop("offset_mapping")[0].tolist(), given.sequence_ids(0)
        with torch.no_grad():
            scored = network(**given)
        first, last = scored.start_logits[0].tolist(), scored.end_logits[0].tolist()
        inside = [i for i, part in enumerate(parts) if part == 1]
        spans += [
            (first[a] + last[b] - first[0] - last[0], told[where[a][0] : where[b][1]])
            for a, b in itertools.product(inside, inside)
            if a <= b < a + most
        ]
    return max(spans)


@pytest.mark.parametrize("most", [16, 3, 1])
def test_the_answer_is_the_best_span_of_all_passages(folder: Path, most: int) -> None:
    reader = load_reader(str(folder), limits=replace(LIMITS, answer_tokens=most))
    margin, text = slowly(folder, most)
    no_answer(reader, -100)
    answer = reader.read(QUESTION, PASSAGES)
    assert answer is not None
    assert answer.text == text
    assert answer.score == pytest.approx(margin + 100, abs=1e-3)
    assert text in f"{answer.hit.title}. {answer.hit.text}"


def test_no_answer_is_none_where_it_is_better_in_every_passage(reader: ExtractiveReader, folder: Path) -> None:
    margin, _ = slowly(folder)
    no_answer(reader, margin - 0.01)
    assert reader.read(QUESTION, PASSAGES) is not None
    no_answer(reader, 0.02)
    assert reader.read(QUESTION, PASSAGES) is None
    assert reader.read(QUESTION, []) is None


def test_a_question_longer_than_the_network_reads_leaves_room_for_a_passage(reader: ExtractiveReader) -> None:
    no_answer(reader, -100)
    answer = reader.read("where does the danube rise " * 100, PASSAGES[:1])
    assert answer is not None
    assert math.isfinite(answer.score)
    assert reader.read("where", [replace(PASSAGES[0], text="the danube flows " * 500)]) is not None


def test_the_identity_changes_with_the_weights_and_the_precision(folder: Path, tmp_path: Path) -> None:
    other = transformers.AutoModelForQuestionAnswering.from_pretrained(folder)
    other.qa_outputs.weight.data.add_(1)
    other.save_pretrained(tmp_path)
    word_tokenizer().save_pretrained(tmp_path)
    seen = {load_reader(str(folder)).identity, load_reader(str(folder), dtype="bfloat16").identity}
    assert len(seen | {load_reader(str(tmp_path)).identity}) == 3


def test_a_network_that_was_not_trained_for_it_is_refused(tmp_path: Path) -> None:
    transformers.BertModel(configuration()).save_pretrained(tmp_path)
    word_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ModelUnavailable, match="was not trained to answer questions"):
        load_reader(str(tmp_path))


def test_what_cannot_be_loaded_is_one_line(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="There is no model or folder"):
        load_reader(str(tmp_path / "nothing"))
    with pytest.raises(BadInput, match="Unknown dtype"):
        load_reader(str(folder), dtype="float7")
