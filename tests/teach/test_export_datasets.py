"""What the package `datasets` reads of every format, and what stands in a dataset's card."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from export_runs import DATE, MILL, PLAIN, row, run_of

from toolwise.core.jsonio import loads
from toolwise.models.scripted import ScriptedTokenizer
from toolwise.teach.export import Encoding, dataset, export
from toolwise.teach.export.messages import conversations

datasets = pytest.importorskip("datasets", minversion="4.7")  # from there on objects keep their own keys

ODD = row(PLAIN, (0, "Weather", {"city": "\u2028 é", "days": 2, "options": {"a": [None, 1.5, {"b": "3"}]}}, "3"))
ROWS = (MILL, DATE, ODD)


@pytest.fixture
def load(tmp_path: Path) -> Any:
    return lambda *args, **options: datasets.load_dataset(
        *args, split="train", cache_dir=str(tmp_path / "cache"), **options
    )


def test_the_folder_loads_by_its_name_with_the_columns_of_its_card(load: Any, tmp_path: Path) -> None:
    export(run_of(*ROWS), "datasets", tmp_path / "out")
    found = load(str(tmp_path / "out"))
    assert found["text"][:] == [given.text for given in ROWS]
    assert found["plain"][:] == [given.plain for given in ROWS]
    assert [[call["tool"] for call in calls] for calls in found["calls"]] == [
        [span.tool for span in given.spans] for given in ROWS
    ]
    assert loads(found[2]["calls"][0]["arguments"])["options"] == {"a": [None, 1.5, {"b": "3"}]}
    text = datasets.Value("string")
    assert found.features == datasets.Features(
        {
            **dict.fromkeys(("id", "document", "text", "plain"), text),
            "calls": datasets.List(
                {
                    **dict.fromkeys(("tool", "arguments", "result"), text),
                    **dict.fromkeys(("at", "start", "end"), datasets.Value("int64")),
                }
            ),
        }
    )


def test_the_features_of_the_card_are_those_of_the_files(tmp_path: Path) -> None:
    export(run_of(*ROWS), "datasets", tmp_path / "out")
    said = datasets.info.DatasetInfosDict.from_directory(str(tmp_path / "out"))["default"]
    (file,) = (tmp_path / "out" / "data").iterdir()
    stored = datasets.Features.from_arrow_schema(pytest.importorskip("pyarrow.parquet").read_schema(file))
    assert said.features == stored


def test_several_files_are_one_split(load: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "_FILE_ROWS", 2)
    export(run_of(*ROWS), "datasets", tmp_path / "out")
    assert len(list((tmp_path / "out" / "data").iterdir())) == 2
    assert load(str(tmp_path / "out"))["id"][:] == ["mill#0", "date#0", "mill#0"]


def test_a_dataset_can_be_saved_and_loaded_from_disk(load: Any, tmp_path: Path) -> None:
    export(run_of(*ROWS), "datasets", tmp_path / "out")
    found = load(str(tmp_path / "out"))
    found.save_to_disk(str(tmp_path / "saved"))
    assert list(datasets.load_from_disk(str(tmp_path / "saved"))) == list(found)


def test_messages_load_as_they_were_written_with_no_key_more(load: Any, tmp_path: Path) -> None:
    for number, rows in zip(count(), (ROWS, (DATE,), (ODD, ODD)), strict=False):
        file = tmp_path / f"{number}.jsonl"
        export(run_of(*rows), "messages", file)
        assert list(load("json", data_files=str(file))) == list(conversations(run_of(*rows)))


def test_text_and_tokens_load_as_well(load: Any, tmp_path: Path) -> None:
    export(run_of(*ROWS), "text", tmp_path / "text.jsonl")
    assert load("json", data_files=str(tmp_path / "text.jsonl"))["text"][:] == [given.text for given in ROWS]
    tokenizer = ScriptedTokenizer()
    export(run_of(*ROWS), "tokens", tmp_path / "t.parquet", Encoding(tokenizer, "bytes", "", 10_000))
    found = load("parquet", data_files=str(tmp_path / "t.parquet"))
    assert tokenizer.decode(found[0]["input_ids"]) == MILL.text
    assert found[0]["labels"][1:] == found[0]["input_ids"][1:]


def test_the_card_leaves_the_licence_to_the_user_and_says_how_the_data_was_made(tmp_path: Path) -> None:
    huggingface_hub = pytest.importorskip("huggingface_hub")
    export(run_of(*ROWS), "datasets", tmp_path / "out")
    card = huggingface_hub.DatasetCard.load(tmp_path / "out" / "README.md")
    assert (card.data.license, card.data.language, card.data.pretty_name) == (None, None, None)
    assert card.data.size_categories == ["n<1K"]
    assert "3 passages" in card.text
    assert "Calculator 1, Calendar 1, Weather 2" in card.text
    assert "f" * 64 in card.text
    tools, settings = (loads(block.split("```")[0]) for block in card.text.split("```json\n")[1:])
    assert [tool["function"]["name"] for tool in tools] == ["Calculator", "Calendar", "Weather"]
    assert settings == {"model": "a" * 64, "settings": {"seed": 0}}


def test_the_card_does_not_say_where_an_index_or_a_server_is(tmp_path: Path) -> None:
    options = {"Search": {"index": "/home/ann/letters.index"}}
    run = replace(run_of(*ROWS), settings={"settings": {"seed": 0, "options": options}})
    export(run, "datasets", tmp_path / "out")
    assert "letters.index" not in (tmp_path / "out" / "README.md").read_text("utf-8")
