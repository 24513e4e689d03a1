"""What is exported is read back exactly, is whole or not there, and never replaces anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from export_runs import DATE, DEFINITIONS, MILL, PLAIN, TOOLS, Placed, row, rows, run_of, write_run
from hypothesis import given, settings

from toolwise.core.errors import BadInput, Corrupt
from toolwise.core.jsonio import loads
from toolwise.models.scripted import END, ScriptedTokenizer
from toolwise.notation.inline import find, read_arguments, read_body, strip
from toolwise.teach.export import Encoding, Run, dataset, export, finished_run, messages, text, tokens
from toolwise.teach.records import Augmented
from toolwise.teach.store import Store
from toolwise.teach.training.examples import Example, row_examples

parquet = pytest.importorskip("pyarrow.parquet")

BYTES = ScriptedTokenizer(())
LONG = 10_000


def encoding(**changes: Any) -> Encoding:
    return Encoding(**{"tokenizer": BYTES, "model": "bytes", "fingerprint": "b" * 64, "length": LONG, **changes})


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that every example writes anew."""
    return tmp_path_factory.mktemp("export") / "out"


# Readers, each as simple as a format allows


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def read_text(woven: str) -> tuple[str, list[Placed]]:
    calls, plain, last = [], "", 0
    for call in find(woven):
        plain += strip(woven[last : call.start])
        name, raw = read_body(call.body)
        calls.append((len(plain), name, read_arguments(raw, TOOLS[name]), call.result))
        last = call.end
    return plain + strip(woven[last:]), calls


def read_messages(said: list[dict[str, Any]]) -> tuple[str, list[Placed]]:
    plain, calls = "", []
    for message, following in zip(said, [*said[1:], {}], strict=True):
        if message["role"] in ("user", "assistant"):
            plain += message["content"]
        for call in message.get("tool_calls", []):
            assert following["tool_call_id"] == call["id"]
            calls.append((len(plain), call["function"]["name"], call["function"]["arguments"], following["content"]))
    return plain, calls


def read_tokens(example: dict[str, Any]) -> tuple[str, list[Placed]]:
    ids, calls, plain, last = example["input_ids"], [], [], 0
    for span in example["calls"]:
        plain += ids[last : span["start"]]
        call = find(BYTES.decode(ids[span["start"] : span["end"]]))[0]
        name, raw = read_body(call.body)
        calls.append((len(BYTES.decode(plain)), name, read_arguments(raw, TOOLS[name]), call.result))
        last = span["end"]
    return BYTES.decode([*plain, *ids[last:]]), calls


def read_dataset(found: dict[str, Any]) -> tuple[str, list[Placed]]:
    calls = [(call["at"], call["tool"], loads(call["arguments"]), call["result"]) for call in found["calls"]]
    return found["plain"], calls


# Every format gives back the plain text and the calls


@settings(max_examples=80)
@given(rows())
def test_text_gives_back_the_plain_text_and_the_calls(out: Path, given: tuple[Augmented, list[Placed]]) -> None:
    written, calls = given
    text.write_jsonl(run_of(written, DATE), out)
    found, date = read_lines(out)
    assert read_text(found["text"]) == (written.plain, calls)
    assert (found["id"], found["document"], found["plain"]) == ("mill#0", "mill", written.plain)
    assert date["plain"] == DATE.plain


@settings(max_examples=40)
@given(rows())
def test_a_txt_gives_them_back_as_well(out: Path, given: tuple[Augmented, list[Placed]]) -> None:
    written, calls = given
    text.write_txt(run_of(written, DATE, written), out)
    first, date, last, nothing = out.read_bytes().decode().split(text.SEPARATOR)
    assert read_text(first) == read_text(last) == (written.plain, calls)
    assert (date, nothing) == (DATE.text, "")


@settings(max_examples=80)
@given(rows())
def test_messages_give_back_the_plain_text_and_the_calls(out: Path, given: tuple[Augmented, list[Placed]]) -> None:
    written, calls = given
    messages.write(run_of(written), out)
    (found,) = read_lines(out)
    assert read_messages(found["messages"]) == (written.plain, calls)


@settings(max_examples=50)
@given(rows())
def test_tokens_give_back_the_plain_text_and_the_calls(out: Path, given: tuple[Augmented, list[Placed]]) -> None:
    written, calls = given
    assert not tokens.write(run_of(written), out, encoding(end=END))
    (found,) = parquet.read_table(out).to_pylist()
    assert read_tokens(found) == (written.plain, calls)


@settings(max_examples=50)
@given(rows())
def test_a_dataset_gives_back_the_plain_text_and_the_calls(given: tuple[Augmented, list[Placed]]) -> None:
    written, calls = given
    with TemporaryDirectory() as folder:
        dataset.write(run_of(written), Path(folder))
        (found,) = parquet.read_table(Path(folder, "data", "train-00000.parquet")).to_pylist()
    assert read_dataset(found) == (written.plain, calls)
    assert [found["text"][call["start"] : call["end"]] for call in found["calls"]] == [
        written.text[span.start : span.end] for span in written.spans
    ]


# Tokens are those of training


def examples_in(path: Path) -> list[Example]:
    return [
        Example(
            tuple(row["input_ids"]),
            tuple(row["loss_mask"]),
            tuple((span["start"], span["end"]) for span in row["calls"]),
        )
        for row in parquet.read_table(path).to_pylist()
    ]


@pytest.mark.parametrize("mask_results", [False, True])
def test_tokens_and_masks_are_those_that_training_has(out: Path, mask_results: bool) -> None:
    wanted, _ = row_examples([MILL, DATE], BYTES, 64, mask_results=mask_results, end=END)
    tokens.write(run_of(MILL, DATE), out, encoding(length=64, mask_results=mask_results, end=END))
    assert examples_in(out) == [piece for example in wanted for piece in example.pieces]
    pieces = [(found["id"], found["piece"]) for found in parquet.read_table(out).to_pylist()]
    names = ("mill#0", "date#0")
    assert pieces == [(names[example.row], number) for example in wanted for number in range(len(example.pieces))]
    assert len(pieces) > len(names)


def test_labels_are_those_of_a_training_batch(out: Path) -> None:
    packing = pytest.importorskip("toolwise.teach.training.packing")
    tokens.write(run_of(MILL), out, encoding(mask_results=True, end=END))
    (found,) = parquet.read_table(out).to_pylist()
    batch = packing.collate([tuple(examples_in(out))], packed=False)
    assert found["labels"] == batch["labels"][0].tolist()
    assert found["attention_mask"] == batch["attention_mask"][0].tolist()
    learnt = BYTES.decode([label for label in found["labels"] if label >= 0])
    assert learnt == MILL.text[1:].replace(" 42]", "").replace(" dry, 21 °C\\]]", "")


def test_the_file_says_whose_tokens_it_holds(out: Path) -> None:
    tokens.write(run_of(MILL), out, encoding(end=END))
    said = loads(parquet.read_schema(out).metadata[b"toolwise"])
    assert said["notation"] == {"open": " [", "arrow": " ->", "close": "]", "special": False}
    assert {**said, "notation": None} == {
        **{"format": 1, "run": "f" * 64, "model": "bytes", "tokenizer": "b" * 64, "notation": None},
        **{"length": LONG, "mask_results": False, "end": END},
    }


def test_passages_that_have_no_tokens_are_counted_by_reason(tmp_path: Path) -> None:
    pens = ScriptedTokenizer(("pen",))
    inside = row("pen", (1, "Calendar", {}, "Monday"), name="inside")
    done = export(run_of(inside, DATE), "tokens", tmp_path / "t.parquet", encoding(tokenizer=pens))
    assert (done.passages, done.calls, done.dropped) == (2, 2, {"off_boundary": 1})
    with pytest.raises(BadInput, match="off_boundary"):
        export(run_of(inside), "tokens", tmp_path / "none.parquet", encoding(tokenizer=pens))
    assert [file.name for file in tmp_path.iterdir()] == ["t.parquet"]


# Whole or not at all

NAMES = {"text": "out.jsonl", "messages": "out.jsonl", "tokens": "out.parquet", "datasets": "out"}


def write(run: Run, to: str, folder: Path) -> Path:
    return export(run, to, folder / NAMES[to], encoding() if to == "tokens" else None).out


def content(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return {str(file): file.read_bytes() for file in files}


@pytest.mark.parametrize("to", NAMES)
def test_an_export_that_is_there_already_is_left_as_it_is(to: str, tmp_path: Path) -> None:
    out = write(run_of(MILL, DATE), to, tmp_path)
    before, inode = content(out), out.stat().st_ino
    assert before
    assert write(run_of(MILL, DATE), to, tmp_path) == out
    assert (content(out), out.stat().st_ino) == (before, inode)
    with pytest.raises(BadInput, match="exists already and says something else"):
        write(run_of(MILL), to, tmp_path)
    assert content(out) == before
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("to", NAMES)
@pytest.mark.parametrize("made", ["file", "folder"])
def test_what_somebody_else_put_there_stays(to: str, made: str, tmp_path: Path) -> None:
    out = tmp_path / NAMES[to]
    theirs = out if made == "file" else out / "README.md"
    theirs.parent.mkdir(exist_ok=True)
    theirs.write_text("theirs")
    with pytest.raises(BadInput, match="exists already"):
        write(run_of(MILL), to, tmp_path)
    assert content(tmp_path) == {str(theirs): b"theirs"}


@pytest.mark.parametrize("to", NAMES)
def test_an_export_that_is_interrupted_leaves_nothing(to: str, tmp_path: Path) -> None:
    def interrupted() -> Iterator[Augmented]:
        yield MILL
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(Run(interrupted(), DEFINITIONS, "", {}), to, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_dataset_may_take_the_place_of_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert len(content(write(run_of(MILL), "datasets", tmp_path))) == 2


@pytest.mark.parametrize("to", NAMES)
def test_a_place_that_cannot_be_used_is_refused(to: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "nowhere"):
        with pytest.raises(BadInput, match="cannot use"):
            write(run_of(MILL), to, folder)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


# What is refused


def test_a_run_that_is_not_finished_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not finished"):
        finished_run(write_run(tmp_path / "run", [MILL], finished=False))
    with pytest.raises(BadInput, match="not the folder of a run"):
        finished_run(tmp_path)
    with Store.open(tmp_path / "old", {"tools": "a hash"}) as store:
        store.finish({})
    with pytest.raises(BadInput, match="does not keep what its tools are"):
        finished_run(tmp_path / "old")


def test_a_damaged_run_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [MILL], [DATE])
    shard = folder / "augmented" / "00001.parquet"
    shard.write_bytes(shard.read_bytes()[:-1] + b"?")
    with pytest.raises(Corrupt):
        export(finished_run(folder), "text", tmp_path / "out.jsonl")
    assert [file.name for file in tmp_path.iterdir()] == ["run"]


def test_a_run_is_read_with_the_tools_that_it_was_made_with(tmp_path: Path) -> None:
    run = finished_run(write_run(tmp_path / "run", [MILL], [DATE]))
    assert [tool["name"] for tool in run.tools] == ["Calculator", "Calendar", "Weather"]
    assert list(run.rows) == [MILL, DATE]


def test_an_unknown_format_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="did you mean messages"):
        export(run_of(MILL), "mesages", tmp_path / "out.jsonl")
    with pytest.raises(BadInput, match="there are text, messages, tokens, datasets"):
        export(run_of(MILL), "csv", tmp_path / "out.csv")


def test_a_name_that_does_not_fit_its_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"\.jsonl or \.txt"):
        export(run_of(MILL), "text", tmp_path / "out.json")
    with pytest.raises(BadInput, match="new name"):
        export(run_of(MILL), "datasets", Path("/"))


@pytest.mark.parametrize("to", NAMES)
def test_a_run_that_kept_nothing_is_refused(to: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nothing to export"):
        write(run_of(), to, tmp_path)
    assert not list(tmp_path.iterdir())


def test_tokens_need_a_model(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--model"):
        export(run_of(MILL), "tokens", tmp_path / "out.parquet")


def test_a_txt_refuses_a_passage_that_spells_the_end_of_a_text(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"export to \.jsonl"):
        export(run_of(DATE, row(f"a {text.END} b", (1, "Calendar", {}, "Monday"))), "text", tmp_path / "out.txt")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("to", ["messages", "datasets"])
def test_a_call_that_does_not_fit_the_tools_is_refused(to: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="'Weather', which is not among the run's tools"):
        write(run_of(MILL, tools=DEFINITIONS[:2]), to, tmp_path)
    other = [{**each, "parameters": DEFINITIONS[2]["parameters"]} for each in DEFINITIONS]
    with pytest.raises(BadInput, match="does not fit its tool 'Calculator'"):
        write(run_of(MILL, tools=other), to, tmp_path)


def test_a_call_without_a_result_has_no_place_in_a_conversation(tmp_path: Path) -> None:
    silent = row(PLAIN, (3, "Calendar", {}, None))
    with pytest.raises(BadInput, match="has no result"):
        write(run_of(silent), "messages", tmp_path)
    assert write(run_of(silent), "datasets", tmp_path)
