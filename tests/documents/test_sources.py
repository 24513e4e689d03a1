"""Sources by name, and where what is made of them may not stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolwise.core.errors import BadInput
from toolwise.documents.sources import HubSource, LocalSource, refuse_among, source


def test_a_folder_among_the_texts_that_it_is_made_of_is_refused(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "texts")
    for out in ("texts", "texts/out", "texts/deep/out", "texts/../texts/out", "link/out"):
        with pytest.raises(BadInput, match="among the texts that it is made of"):
            refuse_among([LocalSource(tmp_path / "texts")], tmp_path / out)
    for out in ("out", "texts-out", "texts/../out"):
        refuse_among([LocalSource(tmp_path / "texts"), HubSource("owner/name")], tmp_path / out)


def test_a_source_is_of_the_hub_by_its_prefix_and_otherwise_local() -> None:
    assert source("hub:owner/name@main:config:test") == HubSource("owner/name", "main", "config", "test")
    assert source("texts") == LocalSource(Path("texts"))
