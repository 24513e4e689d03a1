"""A folder that is filled for given settings: what binds it to them, and how a difference is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolwise.core.errors import SettingsDiffer
from toolwise.core.work_folder import begin


def begun(folder: Path, settings: dict[str, Any]) -> None:
    begin(folder, settings, ["shards"], ["journal"]).close()


def test_a_start_that_made_nothing_binds_nobody(tmp_path: Path) -> None:
    begun(tmp_path, {"corpus": "bad"})
    begun(tmp_path, {"corpus": "mended"})
    (tmp_path / "journal").touch()
    begun(tmp_path, {"corpus": "mended"})
    (tmp_path / "shards" / "0").touch()
    begun(tmp_path, {"corpus": "mended"})
    with pytest.raises(SettingsDiffer, match='corpus \\("mended" -> "bad"\\)'):
        begun(tmp_path, {"corpus": "bad"})


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"sources": [{"name": "a", "digest": "1"}]}, "sources.2 (given -> unset);"),
        (
            {"sources": [{"name": "a", "digest": "2"}, {"name": "b", "digest": "0" * 64}]},
            'sources.1.digest ("1" -> "2");',
        ),
        ({"sources": []}, "sources.1 (given -> unset), sources.2 (given -> unset);"),
        ({"sources": {}}, "sources (given -> {});"),
        ({"sources": [{"name": "a", "digest": "1"}, {"name": "b", "digest": "1" * 64}]}, f'-> "{"1" * 23}…);'),
    ],
)
def test_a_difference_is_told_briefly_and_where_it_is(tmp_path: Path, settings: dict[str, Any], told: str) -> None:
    begun(tmp_path, {"sources": [{"name": "a", "digest": "1"}, {"name": "b", "digest": "0" * 64}]})
    (tmp_path / "journal").write_bytes(b"a record")
    with pytest.raises(SettingsDiffer) as refused:
        begun(tmp_path, settings)
    assert told in str(refused.value)
