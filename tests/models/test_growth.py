"""New tokens begin where the plain markers stand, and change nothing else in the model."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import tiny_models as tiny  # noqa: E402
from toolwise.models.growth import grow, with_notation  # noqa: E402
from toolwise.models.tokenizers import HFTokenizer  # noqa: E402
from toolwise.notation.inline import PLAIN, write_call  # noqa: E402
from toolwise.notation.markers import SPECIAL  # noqa: E402
from toolwise.notation.pieces import call_segments  # noqa: E402
from toolwise.notation.segments import encode  # noqa: E402

BASE = HFTokenizer(tiny.tokenizer())
GROWN, ROWS = with_notation(BASE, SPECIAL)


def network(**changes):
    torch.manual_seed(0)
    config = tiny.configuration()
    config.update(changes)
    return transformers.AutoModelForCausalLM.from_config(config).eval()


def logits(of):
    with torch.no_grad():
        return of(torch.arange(1, 40)[None]).logits[0]


def test_the_tokenizer_learns_three_tokens_and_cuts_text_as_before():
    assert list(ROWS) == [300, 301, 302] == [i for m in SPECIAL.markers for i in GROWN.encode_marker(m)]
    assert GROWN.encode(tiny.TEXT) == BASE.encode(tiny.TEXT)
    assert len(BASE.wrapped) == 300


def test_a_call_is_read_back_and_the_end_of_a_text_stays_silent():
    ids = encode(call_segments("look(é)", "</call>", SPECIAL), GROWN)[0]
    assert GROWN.decode((*ids, 0)) == write_call("look(é)", "</call>", SPECIAL)


@pytest.mark.parametrize("tied", [True, False])
def test_a_new_row_is_the_mean_of_the_rows_of_the_marker_that_it_stands_for(tied):
    before = network(tie_word_embeddings=tied)
    old = [before.get_input_embeddings().weight.clone(), before.get_output_embeddings().weight.clone()]
    seen = logits(before)
    after = grow(before, ROWS)
    for layer, rows in zip((after.get_input_embeddings(), after.get_output_embeddings()), old, strict=True):
        assert torch.equal(layer.weight[:300], rows)
        for marker, plain in zip(SPECIAL.markers, PLAIN.markers, strict=True):
            (row,) = GROWN.encode_marker(marker)
            assert torch.allclose(layer.weight[row], rows[list(BASE.encode(plain))].mean(0))
    assert (after.get_input_embeddings().weight is after.get_output_embeddings().weight) is tied
    assert torch.allclose(logits(after)[:, :300], seen, atol=1e-6)
    assert after.config.vocab_size == 303


def test_a_head_with_a_bias_grows_with_it():
    config = transformers.PhiConfig(
        vocab_size=300, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4
    )
    made = transformers.AutoModelForCausalLM.from_config(config)
    made.lm_head.bias.data.uniform_()
    grow(made, ROWS)
    (row,) = GROWN.encode_marker("<call>")
    assert made.lm_head.bias[row] == made.lm_head.bias[list(BASE.encode(" ["))].mean()


def test_rows_that_a_network_has_in_reserve_are_used():
    assert grow(network(vocab_size=320), ROWS).get_input_embeddings().weight.shape[0] == 320


def test_a_model_that_knows_the_markers_keeps_what_it_learnt_of_them():
    again, rows = with_notation(GROWN, SPECIAL)
    assert rows == {}
    assert again.encode_marker("<call>") == GROWN.encode_marker("<call>")
    assert grow(network(), rows).get_input_embeddings().weight.shape[0] == 300


def test_the_plain_notation_needs_no_tokens():
    same, rows = with_notation(BASE, PLAIN)
    assert (len(same.wrapped), rows) == (300, {})
