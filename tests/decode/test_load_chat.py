"""How readily a loaded chat model calls: as its folder says, unless whoever loads it says otherwise."""

from __future__ import annotations

import pytest

from toolwise.core.errors import BadInput
from toolwise.decode.load import load_chat
from toolwise.models.scripted import ScriptedModel, follow


@pytest.fixture(autouse=True)
def taught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that was taught here, and carries a threshold of 0.3."""

    class Loaded(ScriptedModel):
        def pool(self) -> None:
            return None

    monkeypatch.setattr("toolwise.decode.load.load_model", lambda name, **how: Loaded(follow()))
    monkeypatch.setattr("toolwise.decode.load.is_taught", lambda name: True)
    monkeypatch.setattr("toolwise.decode.load.chosen_threshold", lambda name: 0.3)


def test_a_taught_model_calls_from_the_threshold_that_its_folder_carries() -> None:
    assert load_chat("model", strict="never").settings.start_threshold == 0.3
    assert load_chat("model", strict="never", start_threshold=0.6).settings.start_threshold == 0.6


def test_a_model_that_writes_calls_otherwise_takes_no_threshold() -> None:
    assert load_chat("model", strict="never", dialect="hermes").settings.start_threshold is None
    with pytest.raises(BadInput, match="running text"):
        load_chat("model", strict="never", dialect="hermes", start_threshold=0.6)
