"""Every language model keeps the protocol's promises, and the fast path says what the network itself says."""

from dataclasses import replace

import numpy as np
import pytest

from toolwise.core.errors import BadInput
from toolwise.models.base import Context, Sampling, ScoreRequest, Usage
from toolwise.models.conformance import conformance
from toolwise.models.masks import masks_of
from toolwise.models.plain import PlainModel
from toolwise.models.scripted import ScriptedModel, ScriptedTokenizer
from toolwise.notation.grammar import json_grammar

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from toolwise.models.hf import HFModel  # noqa: E402

TOKENIZER = ScriptedTokenizer()
SMALL = {"vocab_size": TOKENIZER.size, "hidden_size": 32, "num_attention_heads": 4}
GROUPED = SMALL | {"intermediate_size": 64, "num_key_value_heads": 2}

ARCHITECTURES = {
    "llama: rotary positions, grouped heads": lambda: transformers.LlamaConfig(**GROUPED, num_hidden_layers=2),
    "gpt2: learned positions, tied heads": lambda: transformers.GPT2Config(
        vocab_size=TOKENIZER.size, n_embd=32, n_layer=2, n_head=4, n_positions=512, bos_token_id=0, eos_token_id=0
    ),
    "gemma3: sliding and full attention mixed": lambda: transformers.Gemma3TextConfig(
        **GROUPED,
        num_hidden_layers=4,
        head_dim=8,
        sliding_window=8,
        layer_types=["sliding_attention", "full_attention"] * 2,
    ),
    "mistral: sliding attention everywhere": lambda: transformers.MistralConfig(
        **GROUPED, num_hidden_layers=2, sliding_window=8
    ),
    "bloom: ALiBi, which packed branches would break": lambda: transformers.BloomConfig(
        vocab_size=TOKENIZER.size, hidden_size=32, n_layer=2, n_head=4
    ),
}


def tiny(architecture: str) -> HFModel:
    torch.manual_seed(0)
    network = transformers.AutoModelForCausalLM.from_config(ARCHITECTURES[architecture]()).eval()
    for parameter in network.parameters():
        parameter.data.mul_(3)  # fresh weights are so small that a wrong mask would hardly show
    return HFModel(network, TOKENIZER, name=architecture, fingerprint=architecture)


def reference(model: HFModel) -> PlainModel:
    """The same network through transformers' own masks: one whole sequence at a time, nothing cached."""
    return PlainModel(model._net.whole, TOKENIZER, Usage())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_network_keeps_every_promise(architecture):
    conformance(tiny(architecture), tolerance=1e-4)


def test_the_scripted_model_keeps_every_promise():
    conformance(ScriptedModel(lambda text: "abc" if text.endswith(" ") else " [x"), tolerance=1e-6)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_fast_path_agrees_with_the_network_run_plainly(architecture):
    model = tiny(architecture)
    slow = reference(model)
    encode = TOKENIZER.encode
    context = Context(encode("Head of the prompt.\n"), encode("In: 3 pens.\nOut: "), encode("three pens cost 7 crowns"))
    requests = [ScoreRequest(context.ids[:n], n - k) for n, k in ((12, 3), (40, 5), (33, 1), (len(context.ids), 20))]
    for fast_row, slow_row in zip(model.score(requests), slow.score(requests), strict=True):
        np.testing.assert_allclose(fast_row, slow_row, atol=1e-4)
    marker = encode(" [")[0]
    np.testing.assert_allclose(
        model.marker_probs([context], marker)[0], slow.marker_probs([context], marker)[0], atol=1e-5
    )
    sampling = Sampling(4, encode(" ["), lambda text: "e" in text, max_tokens=6, temperature=1.0, seed=3)
    assert model.branch(context, [0, 4, 24], sampling) == slow.branch(context, [0, 4, 24], sampling)
    held = replace(sampling, held=masks_of(model.tokenizer).matcher(json_grammar({"enum": ["seen", "known"]})))
    found = model.branch(context, [0, 4, 24], held)
    assert found == slow.branch(context, [0, 4, 24], held)
    assert {branch.text[:3] for row in found for branch in row} <= {'"se', '"kn'}
    session, slow_session = model.session(context.ids), slow.session(context.ids)
    np.testing.assert_allclose(session.logits(), slow_session.logits(), atol=1e-4)


def test_only_networks_that_honour_masks_are_packed():
    packed = {name.split(":")[0]: tiny(name).packed for name in ARCHITECTURES}
    assert packed == {"llama": True, "gpt2": True, "gemma3": True, "mistral": True, "bloom": False}


def test_samples_that_agree_are_computed_once():
    model = tiny("llama: rotary positions, grouped heads")
    context = Context(TOKENIZER.encode("Head\n"), TOKENIZER.encode("in "), TOKENIZER.encode("some text"))
    sampling = Sampling(50, TOKENIZER.encode(" ["), lambda text: False, max_tokens=3, temperature=0.0, seed=0)
    model.marker_probs([context], 0)
    before = model.usage.positions
    model.branch(context, [2], sampling)
    assert model.usage.positions - before == 3, "one forced token and two sampled ones, fifty times the same"


def test_the_head_of_a_prompt_is_read_once():
    model = tiny("llama: rotary positions, grouped heads")
    head = TOKENIZER.encode("a long head that many texts share. " * 4)
    contexts = [Context(head, TOKENIZER.encode("in "), TOKENIZER.encode(text)) for text in ("one", "two", "three")]
    model.marker_probs(contexts, 0)
    assert model.usage.positions == len(head) + sum(len(c.body + c.text) for c in contexts)


def test_only_the_rows_that_are_read_are_projected():
    model = tiny("llama: rotary positions, grouped heads")
    ids = TOKENIZER.encode("a text of some length")
    model.score([ScoreRequest(ids, len(ids) - 5)])
    assert model.usage.rows == 5


def test_a_score_request_without_a_token_in_front_is_refused():
    for model in (tiny("llama: rotary positions, grouped heads"), ScriptedModel(lambda text: "")):
        with pytest.raises(BadInput, match="in front"):
            model.score([ScoreRequest((1, 2, 3), 0)])


def test_a_broken_model_fails_the_suite():
    class Forgetful(ScriptedModel):
        def score(self, requests):
            return [row * 1.01 for row in super().score(requests)]

    with pytest.raises(AssertionError, match="a session says what a score says"):
        conformance(Forgetful(lambda text: "abc"))


@pytest.mark.parametrize("architecture", [name for name in ARCHITECTURES if name.startswith(("gpt2", "bloom"))])
def test_more_tokens_than_the_network_has_places_for_are_refused(architecture):
    model = tiny(architecture)
    model._net.longest = 8
    eight = tuple(range(1, 9))
    assert len(model.score([ScoreRequest((*eight, 9), 8)])[0]) == 1, "eight are read, and the ninth is only scored"
    for ask in (
        lambda: model.score([ScoreRequest((*eight, 9, 10), 8)]),
        lambda: model.session((*eight, 9)).logits(),
        lambda: model.marker_probs([Context(eight[:4], eight[4:6], eight)], 0),
    ):
        with pytest.raises(BadInput, match="at most 8 tokens"):
            ask()


def test_a_session_taken_back_to_nothing_starts_again():
    model = tiny("llama: rotary positions, grouped heads")
    session = model.session((1, 2, 3))
    session.logits()
    session.rewind(0)
    session.feed((4, 5))
    np.testing.assert_allclose(session.logits(), model.session((4, 5)).logits(), atol=1e-5)


def test_a_branch_of_which_nothing_is_forced_is_refused_by_every_model():
    for model in (tiny("llama: rotary positions, grouped heads"), ScriptedModel(lambda text: "")):
        with pytest.raises(BadInput, match="forced"):
            model.branch(Context((1,), (2,), (3, 4)), [1], Sampling(1, (), lambda text: True, 4, 0.0, 0))


@pytest.mark.parametrize("forced", [(7,), (7, 8, 9)])
def test_forced_tokens_are_fed_one_by_one_and_are_no_part_of_a_branch(forced):
    model = tiny("llama: rotary positions, grouped heads")
    context = Context((1, 2), (3,), (4, 5, 6))
    ((branch,),) = model.branch(context, [2], Sampling(1, forced, lambda text: False, 3, 0.0, 0))
    session = model.session((1, 2, 3, 4, 5, *forced))
    for token in branch.ids:
        assert token == session.logits().argmax()
        session.feed([token])


def test_a_session_says_when_the_network_has_no_place_for_more():
    network = tiny("gpt2: learned positions, tied heads")
    network._net.longest = 3
    for model in (network, PlainModel(network._net.whole, TOKENIZER, Usage(), longest=3)):
        session = model.session((1, 2, 3))
        assert (session.full, session.fork().full, len(session.logits())) == (False, False, TOKENIZER.size)
        session.feed((4,))
        assert (session.full, session.fork().full) == (True, True)
        session.rewind(3)
        assert not session.full
