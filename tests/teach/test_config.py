"""A settings file goes over a preset value by value, whatever the values are called."""

from pathlib import Path

import pytest

from toolwise.core.errors import BadInput
from toolwise.teach.config import PRESETS, Control, Settings, load_settings


def put_over(preset: str, folder: Path, toml: str) -> Settings:
    file = folder / "own.toml"
    file.write_text(toml, encoding="utf-8")
    return load_settings(preset, file=file)


@pytest.mark.parametrize(
    ("said", "comes_out"),
    [
        ("tau_f = {alpha = 0.1}", Control(alpha=0.1, floor=0.05)),
        ("tau_f = {floor = 0.2}", Control(alpha=0.02, floor=0.2)),
        ("tau_f = {alpha = 0.1, floor = 0.2}", Control(alpha=0.1, floor=0.2)),
        ("tau_f = 0.7", 0.7),
        ("k = 3", Control(alpha=0.02, floor=0.05)),
    ],
)
def test_what_a_file_does_not_say_stays_the_presets(said: str, comes_out: object, tmp_path: Path) -> None:
    assert PRESETS["small"].tools["Calculator"].tau_f == Control(alpha=0.02, floor=0.05)
    settings = put_over("small", tmp_path, f"[tools.Calculator]\n{said}")
    assert settings.tools["Calculator"].tau_f == comes_out
    assert settings.tools["Calendar"] == PRESETS["small"].tools["Calendar"]


def test_a_measured_threshold_takes_the_place_of_a_number(tmp_path: Path) -> None:
    settings = put_over("paper", tmp_path, "[tools.Calculator]\ntau_f = {alpha = 0.1}")
    assert settings.tools["Calculator"].tau_f == Control(alpha=0.1)


def test_a_name_that_fits_elsewhere_is_refused_where_it_does_not(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"tools\.Calculator\.alpha: there is no such setting"):
        put_over("small", tmp_path, "[tools.Calculator]\nalpha = 0.1")
