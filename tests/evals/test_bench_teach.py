"""The comparison compares: both schemes sample, score and keep the same, and only one of them is cheap."""

import pytest

pytest.importorskip("torch")

import tiny_models
from toolwise.core.errors import BadInput
from toolwise.evals.bench_teach import bench_teach
from toolwise.models.load import load_model
from toolwise.teach.config import Control, load_settings
from toolwise.teach.records import Passage

TEXTS = ["Three hats cost 24 crowns, so one costs 24 / 3 = 8 crowns.", "She read 12 pages on 5 days, or 60 in all."]


def settings_with(**changes):
    settings = load_settings("paper", ("Calculator",))
    own = settings.tools["Calculator"].model_copy(update=changes)
    return settings.model_copy(update={"tools": {"Calculator": own}, "call_tokens": 6})


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return load_model(str(tiny_models.model_folder(tmp_path_factory.mktemp("model") / "tiny")), threads=1)


def test_both_schemes_find_the_same_and_ours_reads_less(model):
    passages = [Passage(f"p{i}", f"d{i}", 0, text) for i, text in enumerate(TEXTS)]
    found = bench_teach(model, passages, settings_with(k=4, m=3, tau_f=1e-6))
    assert found.same_samples
    assert found.same_calls
    assert found.naive.total.positions > 5 * found.ours.total.positions
    assert found.naive.total.forwards > 5 * found.ours.total.forwards
    if found.compared:
        assert found.largest_difference < 1e-4


def test_a_measured_threshold_cannot_be_compared(model):
    with pytest.raises(BadInput, match="given tau_f"):
        bench_teach(model, [], settings_with(tau_f=Control(alpha=0.1)))
