"""Data sets of the hub as documents, by the real `datasets` package: here from a folder, without a network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolwise.core.errors import BadInput, SettingsDiffer
from toolwise.documents import read_documents, read_sources, source
from toolwise.documents.hub import HubSource
from toolwise.tools.index import Index, build_index

datasets = pytest.importorskip("datasets")


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    folder = tmp_path / "letters"
    folder.mkdir()
    write(folder / "train.jsonl", {"text": "First letter.", "title": "One", "date": "1881-02-03"}, {"text": "Second."})
    write(folder / "test.jsonl", {"text": "Another letter.", "title": "Test", "date": None})
    return folder


def write(path: Path, *rows: dict[str, Any]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_rows_are_documents_with_their_fields(dataset: Path) -> None:
    first, second = read_sources([source(f"hub:{dataset}")])
    assert (first.id, first.text, first.date, first.metadata["title"]) == (
        *("letters-000001", "First letter.", "1881-02-03", "One"),
    )
    assert (second.id, second.text, second.date) == ("letters-000002", "Second.", None)


def test_another_split_is_named_behind_the_configuration(dataset: Path) -> None:
    (only,) = read_sources([source(f"hub:{dataset}:default:test")])
    assert only.text == "Another letter."


def test_in_the_hubs_own_export_a_configuration_is_a_folder(dataset: Path) -> None:
    for config in ("short", "long"):
        for split in ("train", "test"):
            (dataset / config / split).mkdir(parents=True)
            write(dataset / config / split / "0000.jsonl", {"text": f"The {config} {split}."})
    (only,) = read_sources([source(f"hub:{dataset}@refs/convert/parquet:long:test")])
    assert only.text == "The long test."


def test_the_digest_is_that_of_the_same_files_and_changes_with_them(dataset: Path) -> None:
    before = source(f"hub:{dataset}").digest()
    assert before == source(f"hub:{dataset}").digest()
    assert before != source(f"hub:{dataset}:default:test").digest()
    write(dataset / "train.jsonl", {"text": "Other.", "title": "", "date": None})
    assert before != source(f"hub:{dataset}").digest()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("hub:nobody/nothing", "cannot read 'hub:nobody/nothing:default:train'"),
        ("hub:{}:default:validation", "cannot read.*validation"),
        ("hub:{}:nosuch", "cannot read.*nosuch"),
        ("hub:", "names no data set"),
        ("hub:a:b:c:d", "names no data set"),
        ("hub:a@", "names no data set"),
    ],
)
def test_what_cannot_be_read_is_one_line_that_names_it(name: str, says: str, dataset: Path) -> None:
    with pytest.raises(BadInput, match=says) as refused:
        list(read_sources([source(name.format(dataset))]))
    assert "\n" not in str(refused.value)


def test_rows_without_a_text_are_refused_with_their_place(dataset: Path) -> None:
    write(dataset / "train.jsonl", {"content": "no text"})
    (dataset / "test.jsonl").unlink()
    with pytest.raises(BadInput, match='row 1: there is no "text" field among content'):
        list(read_sources([source(f"hub:{dataset}")]))


def test_every_part_of_a_name_is_read() -> None:
    assert source("hub:owner/name@v2:de:test") == HubSource("owner/name", "v2", "de", "test")
    assert source("hub:owner/name") == HubSource("owner/name")


def test_files_and_data_sets_are_read_as_one_corpus(dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("A text file.")
    found = [one.text for one in read_sources([source(tmp_path / "more.txt"), source(f"hub:{dataset}")])]
    assert found == ["A text file.", "First letter.", "Second."]
    assert [one.text for one in read_documents(tmp_path / "more.txt")] == found[:1]


def test_a_data_set_is_indexed_like_files_and_not_again_while_it_is_the_same(dataset: Path, tmp_path: Path) -> None:
    for _ in range(2):
        build_index([f"hub:{dataset}"], tmp_path / "index")
    assert [hit.title for hit in Index.open(tmp_path / "index").search("first letters", 5)] == ["One"]
    with pytest.raises(SettingsDiffer, match="sources"):
        build_index([f"hub:{dataset}:default:test"], tmp_path / "index")
