"""A start threshold that was chosen for a model stays with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolwise.core.errors import BadInput, ModelUnavailable
from toolwise.models.chosen import chosen_threshold, keep_threshold
from toolwise.models.pulled import NOTE


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / NOTE).write_text(json.dumps({"format": 1, "notation": {"open": " ["}}))
    return tmp_path


def test_what_is_kept_is_read_again_and_changes_nothing_else(model: Path) -> None:
    assert chosen_threshold(str(model)) is None
    assert keep_threshold(str(model), 0.25, {"rule": "score"}) == model / NOTE
    assert chosen_threshold(str(model)) == 0.25
    note = json.loads((model / NOTE).read_text())
    assert note == {
        **{"format": 1, "notation": {"open": " ["}},
        "calling": {"start_threshold": 0.25, "chosen": {"rule": "score"}},
    }


@pytest.mark.parametrize(
    "calling", [[], {}, {"start_threshold": True}, {"start_threshold": 2}, {"start_threshold": "a"}]
)
def test_a_note_that_holds_no_threshold_is_refused(model: Path, calling: object) -> None:
    (model / NOTE).write_text(json.dumps({"calling": calling}))
    with pytest.raises(ModelUnavailable, match="choose it again"):
        chosen_threshold(str(model))


def test_a_model_of_the_hub_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolwise.models.chosen.resolve", lambda name: name)
    with pytest.raises(BadInput, match="no folder of yours"):
        keep_threshold("ann/model", 0.5, {})
