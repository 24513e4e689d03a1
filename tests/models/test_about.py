"""What is said of a model without loading it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tiny_models import model_folder, network
from toolwise.core.errors import ModelUnavailable
from toolwise.models.about import about_model


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_a_size_is_what_the_network_has_each_parameter_once(kind: str, tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "a", kind)
    assert about_model(str(folder)).parameters == sum(each.numel() for each in network(kind).parameters())


def test_what_a_model_was_taught_is_told(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "a")
    notation = {"open": " [", "arrow": " ->", "close": "]", "special": False}
    found = [about_model(str(folder)).taught]
    for plain in (False, True):
        (folder / "toolwise.json").write_text(json.dumps({"notation": notation, "plain": plain}))
        found.append(about_model(str(folder)).taught)
    assert found == ["nothing", "calls", "texts"]


def test_a_folder_that_holds_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable):
        about_model(str(tmp_path / "nothing"))
