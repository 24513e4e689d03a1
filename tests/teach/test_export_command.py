"""`toolwise export` as a user meets it."""

from __future__ import annotations

from pathlib import Path

import pytest
from export_runs import DATE, MILL, row, write_run

from command_line import Toolwise, invoke, refused
from toolwise.core.jsonio import loads

parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_run(tmp_path / "run", [MILL], [DATE])


def test_every_format_is_written_and_counted(run: Path) -> None:
    for to, out in (("text", "t.jsonl"), ("text", "t.txt"), ("messages", "m.jsonl"), ("datasets", "d")):
        assert invoke("export", run, "--to", to, "--out", out) == f"2 passages with 3 calls: {out}\n"
        assert Path(out).exists()


@pytest.mark.case("C3")
@pytest.mark.parametrize(
    "mark", ["<|im_end|>", "<|start_header_id|>", "</s>", "[/INST]", "<end_of_turn>", "<tool_call>"]
)
def test_a_text_or_result_that_spells_a_control_token_is_said_where_others_may_read_it_as_one(
    mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    calls = [(8, "Calendar", {}, f"Monday{mark}system")]
    rows = [row("Today is Monday.", *calls, name="result"), row(f"It said {mark} there.", name="text"), MILL]
    write_run(tmp_path / "run", rows)
    for to, out in (("text", "t.jsonl"), ("messages", "m.jsonl"), ("datasets", "d")):
        assert "2 passages of them with what many models take for a control token" in invoke(
            "export", tmp_path / "run", "--to", to, "--out", out
        )


def test_tokens_are_those_of_the_model_that_is_named(run: Path, tmp_path: Path) -> None:
    tiny = pytest.importorskip("tiny_models")
    model = tiny.model_folder(tmp_path / "tiny")
    options = ("--to", "tokens", "--model", model, "--length", 64, "--mask-results", "--json")
    said = loads(invoke("export", run, "--out", "tokens.parquet", *options))
    assert said == {"format": "tokens", "out": "tokens.parquet", "passages": 2, "calls": 3, "marked": 0, "dropped": {}}
    rows = parquet.read_table("tokens.parquet").to_pylist()
    tokenizer = tiny.tokenizer()
    assert tokenizer.decode(rows[-1]["input_ids"]) == DATE.text + tiny.END
    assert tokenizer.decode([label for label in rows[-1]["labels"] if label >= 0]).count("Today is Monday") == 0
    metadata = loads(parquet.read_schema("tokens.parquet").metadata[b"toolwise"])
    assert (metadata["model"], metadata["length"], metadata["end"]) == ("tiny", 64, tokenizer.eos_token_id)


def test_what_cannot_be_meant_is_one_line_and_leaves_nothing(run: Path, toolwise: Toolwise, tmp_path: Path) -> None:
    requests = {
        ("messages", "m.json"): "ends in .jsonl",
        ("mesages", "m.jsonl"): "did you mean messages",
        ("tokens", "t.parquet"): "name it with --model",
        ("tokens", "t.parquet", "--model", "smolm2-135m"): "did you mean smollm2-135m",
        ("text", "t.txt", "--model", "smollm2-135m"): "are for tokens",
        ("text", "t.txt", "--mask-results"): "are for tokens",
        ("text", "run"): "ends in .jsonl or .txt",
        ("datasets", "run"): "exists already and says something else",
    }
    for (to, out, *more), words in requests.items():
        code = "model_unavailable" if "smolm2-135m" in more else "bad_input"
        refused(toolwise("export", run, "--to", to, "--out", out, *more), code, words)
    refused(toolwise("export", tmp_path, "--to", "text", "--out", "t.txt"), "bad_input", "not the folder of a run")
    unfinished = write_run(tmp_path / "begun", [MILL], finished=False)
    refused(toolwise("export", unfinished, "--to", "text", "--out", "t.txt"), "bad_input", "not finished")
    assert {path.name for path in tmp_path.iterdir()} == {"run", "begun"}
