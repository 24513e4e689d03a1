"""A sentence encoder as re-ranker: a tiny random network of transformers, read as its public recipe says."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers

from tiny_models import tokenizer
from toolwise.core.errors import BadInput, ModelUnavailable
from toolwise.models.encoder import SentenceEncoder, load_encoder

TEXTS = ["The price is 18.", "", "said the man to the woman " * 20, "Monday"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("encoder")
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    configuration = transformers.BertConfig(vocab_size=300, max_position_embeddings=40, **shape)
    transformers.BertModel(configuration).save_pretrained(path)
    tokenizer().save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def encoder(folder: Path) -> SentenceEncoder:
    return load_encoder(str(folder))


def slowly(folder: Path, text: str) -> torch.Tensor:
    """One text alone, without a mask: the mean of its tokens, as unit length."""
    network = transformers.AutoModel.from_pretrained(folder).eval()
    ids = torch.tensor([tokenizer()(text)["input_ids"][:40]])
    with torch.no_grad():
        mean = network(input_ids=ids).last_hidden_state[0].mean(0)
    return mean / mean.norm()


def test_a_batch_gives_what_each_text_gives_alone(folder: Path, encoder: SentenceEncoder) -> None:
    texts = [text for text in TEXTS * 20 if text]
    rows = encoder.encode(texts)
    for text in filter(None, TEXTS):
        torch.testing.assert_close(rows[texts.index(text)], slowly(folder, text), atol=1e-5, rtol=1e-4)
    assert rows.shape == (60, 32)


def test_scores_are_cosines_and_the_query_itself_scores_best(encoder: SentenceEncoder) -> None:
    scores = encoder.scores("Monday", TEXTS)
    assert scores[3] == pytest.approx(1.0, abs=1e-5) == max(scores)
    assert all(-1.001 <= score <= 1.001 for score in scores)
    assert encoder.scores("Monday", []) == []


def test_the_identity_changes_with_the_weights_and_with_what_stands_in_front(folder: Path, tmp_path: Path) -> None:
    other = transformers.AutoModel.from_pretrained(folder)
    other.embeddings.word_embeddings.weight.data.add_(1)
    other.save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    made = [load_encoder(str(folder)), load_encoder(str(folder), query_prefix="query: "), load_encoder(str(tmp_path))]
    assert len({one.identity for one in made}) == 3
    assert load_encoder(str(folder)).identity == made[0].identity
    assert made[1].scores("x", ["query: x"]) == pytest.approx([1.0])


def test_what_cannot_be_loaded_is_refused_in_one_line(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    with pytest.raises(ModelUnavailable, match="Cannot load the model"):
        load_encoder(str(tmp_path))
    with pytest.raises(ModelUnavailable, match="no model or folder"):
        load_encoder("nothing of this name")
    with pytest.raises(BadInput, match="Unknown dtype"):
        load_encoder(str(folder), dtype="int3")
