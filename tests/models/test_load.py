"""A name becomes a model, whatever the architecture; what cannot be loaded is one clear error."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tokenizers import pre_tokenizers  # noqa: E402

from tiny_models import model_folder, special_folder  # noqa: E402
from toolwise.core.errors import BadInput, ModelUnavailable  # noqa: E402
from toolwise.models.base import ScoreRequest  # noqa: E402
from toolwise.models.load import describe_model, load_model, load_tokenizer, notation_of, quiet  # noqa: E402
from toolwise.notation.markers import PLAIN, SPECIAL  # noqa: E402


@pytest.mark.parametrize("kind", ["llama", "gpt2", "bloom"])
def test_any_architecture_that_transformers_knows_is_loaded(kind, tmp_path):
    model = load_model(str(model_folder(tmp_path / kind, kind)))
    assert len(model.score([ScoreRequest((5, 6, 7), 1)])[0]) == 2


def test_the_fingerprint_changes_with_weights_precision_and_the_way_text_is_cut(tmp_path):
    folder = str(model_folder(tmp_path / "a"))
    found = {describe_model(folder)[1], describe_model(folder, dtype="bfloat16")[1]}
    assert describe_model(folder)[1] in found
    network = transformers.AutoModelForCausalLM.from_pretrained(folder)
    network.get_input_embeddings().weight.data[0] += 1
    network.save_pretrained(folder)
    found.add(describe_model(folder)[1])
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    digits, rest = pre_tokenizers.Digits(individual_digits=True), tokenizer.backend_tokenizer.pre_tokenizer
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, rest])
    tokenizer.save_pretrained(folder)
    found.add(describe_model(folder)[1])
    assert len(found) == 4


def test_a_text_ends_where_the_configuration_says_too(tmp_path):
    folder = model_folder(tmp_path / "a")
    config = transformers.AutoConfig.from_pretrained(folder)
    config.eos_token_id = [7, 9]
    config.save_pretrained(folder)
    assert load_tokenizer(folder).end == {0, 7, 9}


def test_a_model_knows_the_notation_that_it_was_taught(tmp_path):
    plain, special = (load_model(str(make(tmp_path / make.__name__))) for make in (model_folder, special_folder))
    assert (plain.tokenizer.notation, special.tokenizer.notation) == (PLAIN, SPECIAL)
    assert plain.tokenizer.encode_marker("<call>") == plain.tokenizer.encode("<call>")
    (marker,) = special.tokenizer.encode_marker("<call>")
    assert marker not in special.tokenizer.encode("<call>")
    assert special.tokenizer.decode([marker]) == "<call>"


def test_a_note_that_says_nothing_of_a_notation_leaves_the_plain_one(tmp_path):
    folder = model_folder(tmp_path / "a")
    (folder / "toolwise.json").write_text('{"name": "tiny"}')
    assert notation_of(folder) == PLAIN


@pytest.mark.parametrize(
    "note", ["{", "[]", '{"notation": "special"}', '{"notation": {"open": 5}}', '{"notation": {"opened": " ["}}']
)
def test_a_damaged_note_is_a_model_that_is_not_available(note, tmp_path):
    (model_folder(tmp_path / "a") / "toolwise.json").write_text(note)
    with pytest.raises(ModelUnavailable, match="names no notation"):
        load_tokenizer(tmp_path / "a")


def test_markers_that_the_tokenizer_has_lost_are_a_model_that_is_not_available(tmp_path):
    note = (special_folder(tmp_path / "a") / "toolwise.json").read_text()
    (model_folder(tmp_path / "b") / "toolwise.json").write_text(note)
    with pytest.raises(ModelUnavailable, match="no token for the marker"):
        load_tokenizer(tmp_path / "b")


@pytest.mark.parametrize("broken", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_broken_folder_is_a_model_that_is_not_available(broken, tmp_path):
    folder = model_folder(tmp_path / "a")
    (folder / broken).write_text("{")
    with pytest.raises(ModelUnavailable):
        load_model(str(folder))


@pytest.mark.parametrize("damage", ["gone", "cut short"])
def test_weights_that_are_not_whole_are_found_before_anything_begins_with_them(damage, tmp_path):
    weights = model_folder(tmp_path / "a") / "model.safetensors"
    whole = weights.read_bytes()
    weights.unlink()
    if damage == "cut short":
        weights.write_bytes(whole[:-1])
    with pytest.raises(ModelUnavailable, match="no weights" if damage == "gone" else "complete or replace"):
        describe_model(str(tmp_path / "a"))


def test_an_unknown_precision_is_refused(tmp_path):
    with pytest.raises(BadInput, match="dtype"):
        load_model(str(model_folder(tmp_path / "a")), dtype="int4")


def test_what_transformers_prints_is_the_callers_choice_again_afterwards():
    log = transformers.utils.logging
    before = log.get_verbosity(), log.is_progress_bar_enabled()
    with quiet():
        assert (log.get_verbosity(), log.is_progress_bar_enabled()) == (log.ERROR, False)
    assert (log.get_verbosity(), log.is_progress_bar_enabled()) == before


def test_without_the_packages_for_models_the_error_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None\nimport toolwise.models.load"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert "ModelUnavailable: Models need more packages: pip install 'toolwise[teach]'" in done.stderr
