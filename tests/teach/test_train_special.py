"""Training with special markers: the model folder is ordinary, its markers are tokens, and their rows are learnt."""

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from rich.progress import Progress  # noqa: E402

import tiny_models as tiny  # noqa: E402
from toolwise.core import jsonio  # noqa: E402
from toolwise.core.errors import BadInput, SettingsDiffer  # noqa: E402
from toolwise.models.growth import grow, with_notation  # noqa: E402
from toolwise.models.load import load_network, load_tokenizer  # noqa: E402
from toolwise.notation.inline import PLAIN, Insertion, find, weave  # noqa: E402
from toolwise.notation.markers import SPECIAL  # noqa: E402
from toolwise.teach.records import Augmented, Span  # noqa: E402
from toolwise.teach.train import TrainSettings, train  # noqa: E402
from toolwise.teach.training.data import TrainingData  # noqa: E402

SETTINGS = TrainSettings(
    batch=6, steps=6, learning_rate=1e-2, length=96, held_out_share=0.1, evaluate_every=3, checkpoint_every=2
)
LORA = TrainSettings(batch=6, steps=5, learning_rate=1e-2, length=96, held_out_share=0, lora_rank=4, checkpoint_every=2)


def row(n: int) -> Augmented:
    plain = f"Item {n}: the price is {n} crowns, said man {n * 7} to the woman who wrote <call>."
    text = weave(plain, [Insertion(plain.index(" crowns"), f"Calculator({n} * 1)", str(n))])
    call = find(text)[0]
    return Augmented(
        f"p{n}", f"d{n}", text, plain, (Span(call.start, call.end, call.result_start, call.result_end, "C"),)
    )


ROWS = [row(n) for n in range(20)]


def base_folder(path, **changes):
    torch.manual_seed(0)
    config = tiny.configuration()
    config.update(changes)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(path)
    tiny.tokenizer().save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return tiny.model_folder(tmp_path_factory.mktemp("base") / "base")


@pytest.fixture(scope="module")
def trained(base, tmp_path_factory):
    return train(ROWS, base, tmp_path_factory.mktemp("trained") / "out", SETTINGS, notation=SPECIAL)


def begun(folder):
    """The network as training begins with it, and its new rows."""
    _, rows = with_notation(load_tokenizer(folder), SPECIAL)
    return grow(load_network(folder), rows), list(rows)


def difference(one, other):
    a, b = one.state_dict(), other.state_dict()
    assert a.keys() == b.keys()
    return max((a[name] - b[name]).abs().max().item() for name in a)


def interrupt(base, out, step, settings):
    class Interrupting(Progress):
        def update(self, task_id, *, completed=None, **_):
            if completed == step:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(ROWS, base, out, settings, notation=SPECIAL, progress=Interrupting(disable=True))


def test_transformers_loads_the_folder_by_itself_with_its_tokens(trained):
    tokenizer = transformers.AutoTokenizer.from_pretrained(trained.out)
    network = transformers.AutoModelForCausalLM.from_pretrained(trained.out)
    ids = tokenizer.convert_tokens_to_ids(list(SPECIAL.markers))
    assert ids == [300, 301, 302]
    assert network.config.vocab_size == network.get_output_embeddings().weight.shape[0] == 303
    assert tokenizer.decode(tokenizer.encode("a <call>"), skip_special_tokens=True) == "a "


def test_the_folder_says_how_its_model_writes_calls(trained):
    assert load_tokenizer(trained.out).notation == SPECIAL
    assert jsonio.loads((trained.out / "toolwise.json").read_text())["notation"] == {
        "open": "<call>",
        "arrow": "<result>",
        "close": "</call>",
        "special": True,
    }


def test_training_lowers_the_loss_and_moves_the_new_rows(base, trained):
    network, rows = begun(base)
    assert trained.losses[-1][1] < trained.losses[0][1] - 0.5
    assert trained.held_out[-1].disabled < trained.held_out[0].disabled
    moved = load_network(trained.out).get_input_embeddings().weight[rows] - network.get_input_embeddings().weight[rows]
    assert (moved.abs().amax(1) > 1e-3).all()


def test_the_same_documents_are_read_as_in_the_plain_notation(base):
    plain, special = (with_notation(load_tokenizer(base), notation)[0] for notation in (PLAIN, SPECIAL))
    settings = TrainSettings(length=96, held_out_share=0.1)
    a, b = (TrainingData.of(ROWS, tokenizer, settings, False) for tokenizer in (plain, special))
    assert a.held_out == b.held_out
    assert [e.row for e in a.examples] == [e.row for e in b.examples]
    assert (plain.encode(" ["), special.encode_marker("<call>")) == ((a.marker,), (b.marker,))


def test_a_run_that_was_broken_off_goes_on_to_the_same_weights_and_in_no_other_notation(base, trained, tmp_path):
    interrupt(base, tmp_path / "out", 5, SETTINGS)
    with pytest.raises(SettingsDiffer):
        train(ROWS, base, tmp_path / "out", SETTINGS, notation=PLAIN)
    report = train(ROWS, base, tmp_path / "out", SETTINGS, notation=SPECIAL)
    assert report.resumed_from == 4
    assert difference(load_network(report.out), load_network(trained.out)) < 1e-5


def test_training_goes_on_with_the_tokens_that_a_model_has(trained, tmp_path):
    report = train(ROWS, trained.out, tmp_path / "out", SETTINGS, notation=SPECIAL)
    assert report.losses[0][1] == pytest.approx(trained.losses[-1][1], abs=0.5)
    assert load_network(report.out).config.vocab_size == 303


@pytest.mark.parametrize("tied", [True, False])
def test_lora_learns_the_new_rows_and_no_other_of_the_vocabulary(tied, tmp_path):
    from peft import PeftModel

    base = base_folder(tmp_path / "base", tie_word_embeddings=tied)
    report = train(ROWS, base, tmp_path / "out", LORA, notation=SPECIAL)
    network, rows = begun(base)
    merged = load_network(report.out)
    for layer in ("get_input_embeddings", "get_output_embeddings"):
        moved = (getattr(merged, layer)().weight - getattr(network, layer)().weight).abs().amax(1)
        assert [i for i, most in enumerate(moved.tolist()) if most > 1e-4] == rows
    assert (merged.get_input_embeddings().weight is merged.get_output_embeddings().weight) is tied
    adapted = PeftModel.from_pretrained(network, report.out / "adapter").eval()
    ids = torch.arange(280, 303)[None]
    with torch.no_grad():
        assert torch.allclose(merged(ids).logits, adapted(ids).logits, atol=1e-4)
    assert (report.out / "adapter" / "adapter_model.safetensors").stat().st_size < 303 * 32 * 4


def test_a_lora_run_that_was_broken_off_goes_on_to_the_same_weights(base, tmp_path):
    straight = train(ROWS, base, tmp_path / "straight", LORA, notation=SPECIAL)
    interrupt(base, tmp_path / "out", 3, LORA)
    report = train(ROWS, base, tmp_path / "out", LORA, notation=SPECIAL)
    assert report.resumed_from == 2
    assert difference(load_network(report.out), load_network(straight.out)) < 1e-5


def test_a_head_with_a_bias_is_not_trained_with_lora(tmp_path):
    config = transformers.PhiConfig(
        vocab_size=300, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4
    )
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path / "base")
    tiny.tokenizer().save_pretrained(tmp_path / "base")
    with pytest.raises(BadInput, match="head has a bias"):
        train(ROWS, tmp_path / "base", tmp_path / "out", LORA, notation=SPECIAL)
    assert train(ROWS, tmp_path / "base", tmp_path / "out", SETTINGS, notation=SPECIAL).steps == 6
