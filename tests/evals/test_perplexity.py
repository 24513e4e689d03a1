"""Perplexity is what a slow, obvious reading of the definition says it is."""

import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import tiny_models as tiny  # noqa: E402
from toolwise.core.errors import BadInput, ModelUnavailable  # noqa: E402
from toolwise.core.jsonio import dumps  # noqa: E402
from toolwise.evals.perplexity import compare, measure, perplexity  # noqa: E402
from toolwise.models.load import load_network, load_tokenizer  # noqa: E402
from toolwise.models.tokenizers import HFTokenizer  # noqa: E402
from toolwise.notation.inline import Notation  # noqa: E402

TEXT = "The man said 18 crowns to the woman, and the woman said 24 crowns [to the man. " * 3


@torch.no_grad()
def by_definition(network, tokenizer, text, context, banned):
    """Token after token, each from a forward pass of its own; the banned token's probability is really taken away."""
    ids, begin = tokenizer.encode(text), tokenizer.begin
    total, count = 0.0, 0
    room = context - len(begin) if begin else context - 1
    first = 0 if begin else 1
    for at in range(first, len(ids)):
        start = at - (at - first) % room
        before = (*begin, *ids[start:at]) if begin else ids[start - 1 : at]
        p = torch.softmax(network(torch.tensor([before]), use_cache=False).logits[0, -1].double(), -1)
        if banned is not None and ids[at] != banned:
            p[banned] = 0
            p = p / p.sum()
        total, count = total - math.log(p[ids[at]].item()), count + 1
    return total, count


@pytest.mark.parametrize("begin", [False, True])
@pytest.mark.parametrize("context", [7, 1_000])
def test_both_perplexities_are_those_of_the_definition(begin, context):
    network, tokenizer = tiny.network(), HFTokenizer(tiny.tokenizer(begin))
    assert bool(tokenizer.begin) is begin
    found = measure(network, tokenizer, TEXT, context=context, batch_tokens=20)
    marker = tokenizer.encode(" [")[0]
    nats, tokens = by_definition(network, tokenizer, TEXT, context, None)
    disabled, _ = by_definition(network, tokenizer, TEXT, context, marker)
    assert (found.tokens, found.words, found.markers) == (tokens, len(TEXT.split()), 3)
    assert found.nats == pytest.approx(nats, rel=1e-5)
    assert found.disabled_nats == pytest.approx(disabled, rel=1e-5)
    assert found.perplexity == pytest.approx(math.exp(nats / tokens), rel=1e-5)
    assert found.disabled == pytest.approx(math.exp(disabled / tokens), rel=1e-5)
    assert found.word_perplexity == pytest.approx(math.exp(nats / len(TEXT.split())), rel=1e-5)


def test_disabling_calls_never_makes_other_text_less_likely():
    found = measure(tiny.network(), HFTokenizer(tiny.tokenizer()), TEXT)
    assert found.disabled_nats < found.nats


def test_disabling_calls_counts_exactly_where_the_model_is_all_but_sure_to_call():
    network, tokenizer = tiny.network(), HFTokenizer(tiny.tokenizer())
    marker = tokenizer.encode(" [")[0]

    def surer(module, arguments, output):
        output.logits[..., marker] += 60.0
        return output

    network.register_forward_hook(surer)
    found = measure(network, tokenizer, TEXT, context=1_000)
    assert found.disabled_nats == pytest.approx(by_definition(network, tokenizer, TEXT, 1_000, marker)[0], rel=1e-5)


def test_a_text_without_spaces_has_a_perplexity_a_word_that_no_number_holds(tmp_path):
    folder = tiny.model_folder(tmp_path / "model")
    (tmp_path / "text.txt").write_text("日本" * 300, encoding="utf-8")
    assert perplexity(folder, "日本" * 300, context=64).word_perplexity == math.inf
    (row,) = compare(tmp_path / "text.txt", [str(folder)], 64, None)
    assert row["per_word"] is None
    assert dumps(row)


def test_how_many_windows_are_read_at_once_changes_nothing():
    network, tokenizer = tiny.network(), HFTokenizer(tiny.tokenizer())
    one, many = (measure(network, tokenizer, TEXT, context=16, batch_tokens=n) for n in (16, 512))
    assert one.nats == pytest.approx(many.nats, rel=1e-6)


def test_a_limit_reads_only_the_first_tokens():
    network, tokenizer = tiny.network(), HFTokenizer(tiny.tokenizer())
    limited = measure(network, tokenizer, TEXT, limit_tokens=20)
    assert limited.tokens == 19
    assert limited == measure(network, tokenizer, tokenizer.decode(tokenizer.encode(TEXT)[:20]))


def test_a_marker_of_several_tokens_cannot_be_banned():
    found = measure(tiny.network(), HFTokenizer(tiny.tokenizer(), notation=Notation(open=" <<")), TEXT)
    assert (found.disabled_nats, found.disabled) == (None, None)


def test_a_folder_gives_what_its_network_gives(tmp_path):
    folder = tiny.model_folder(tmp_path / "model")
    assert perplexity(folder, TEXT, context=64, device="cpu") == measure(
        tiny.network(), HFTokenizer(tiny.tokenizer()), TEXT, context=64
    )


def test_the_marker_of_the_models_own_notation_is_banned(tmp_path):
    folder = tiny.special_folder(tmp_path / "model")
    tokenizer = load_tokenizer(folder)
    found = perplexity(folder, TEXT, context=64, device="cpu")
    (marker,) = tokenizer.encode_marker("<call>")
    nats, _ = by_definition(load_network(folder), tokenizer, TEXT, 64, marker)
    assert found.disabled_nats == pytest.approx(nats, rel=1e-5)
    assert found.markers == 0


def test_a_text_too_short_to_be_scored_is_refused():
    for text in ("", "a"):
        with pytest.raises(BadInput, match="too short"):
            measure(tiny.network(), HFTokenizer(tiny.tokenizer()), text)


def test_contexts_and_limits_that_cannot_be_meant_are_refused():
    network, tokenizer = tiny.network("gpt2"), HFTokenizer(tiny.tokenizer())
    for options in ({"context": 1}, {"limit_tokens": 0}, {"context": 257}):
        with pytest.raises(BadInput):
            measure(network, tokenizer, TEXT, **options)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(ModelUnavailable):
        perplexity(tmp_path / "missing", TEXT)
