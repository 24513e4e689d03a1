"""Building an index: from every kind of source, killed at any instant, and refused when it is not what it was."""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_texts import SMALL_SHARDS, TEXTS, contents, write_lines

from toolwise.core.errors import BadInput, Corrupt, InProgress, SettingsDiffer, StorageUnavailable
from toolwise.core.limits import LIMITS
from toolwise.core.lock import Lock
from toolwise.core.sealed import read_sealed, seal
from toolwise.tools.index import Index, IndexSettings, build, build_index

FILE_EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "mmap.__new__"}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "texts.jsonl")


def make(corpus: Path, out: Path, **settings: Any) -> None:
    build_index([corpus], out, IndexSettings(**settings), limits=SMALL_SHARDS)


def killed_after(steps: int, work: Callable[[], object]) -> bool:
    """Whether another process that does the work was killed at its `steps`-th step on a file; otherwise it ended."""
    child = os.fork()
    if not child:
        left = [steps]

        def step(event: str, arguments: tuple[object, ...]) -> None:
            if event in FILE_EVENTS:
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(step)
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def test_killed_at_any_step_it_goes_on_to_the_same_index_byte_for_byte(corpus: Path, tmp_path: Path) -> None:
    make(corpus, tmp_path / "whole")
    whole, out, steps = contents(tmp_path / "whole"), tmp_path / "out", 0
    while killed_after(steps, lambda: make(corpus, out)):
        if (out / "settings.json").exists() and not (out / "manifest.json").exists():
            with pytest.raises(BadInput, match="half-built"):
                Index.open(out)
        make(corpus, out)
        assert contents(out) == whole, f"after a kill at step {steps}"
        for file in sorted(out.rglob("*"), reverse=True):
            file.unlink() if file.is_file() else file.rmdir()
        steps += 1
    assert steps > 30


def test_a_build_that_is_killed_again_and_again_does_no_shard_twice(corpus: Path, tmp_path: Path) -> None:
    made: list[str] = []

    def stopping(stage: str, done: int, total: int | None) -> None:
        made.append(f"{stage} {done}")
        raise KeyboardInterrupt

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            build_index([corpus], tmp_path / "out", progress=stopping, limits=SMALL_SHARDS)
    before = {file.name: file.stat().st_ino for file in (tmp_path / "out" / "passages").iterdir()}
    make(corpus, tmp_path / "out")
    after = {file.name: file.stat().st_ino for file in (tmp_path / "out" / "passages").iterdir()}
    assert before.items() <= after.items()


def test_progress_counts_passages_and_then_the_shards_of_the_matrix(corpus: Path, tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    build_index([corpus], tmp_path / "out", progress=lambda *told_: told.append(told_), limits=SMALL_SHARDS)
    assert told == [("passages", n, None) for n in (4, 8, 9)] + [("matrix", n, 3) for n in (1, 2, 3)]


def test_one_build_at_a_time(corpus: Path, tmp_path: Path) -> None:
    make(corpus, tmp_path / "out")
    held = Lock(tmp_path / "out" / "lock")
    with pytest.raises(InProgress, match=str(os.getpid())):
        make(corpus, tmp_path / "out")
    held.close()
    make(corpus, tmp_path / "out")


def test_an_index_that_is_whole_is_not_built_again(corpus: Path, tmp_path: Path) -> None:
    make(corpus, tmp_path / "out")
    times = {file: file.stat().st_mtime_ns for file in (tmp_path / "out" / "matrix").iterdir()}
    make(corpus, tmp_path / "out")
    assert times == {file: file.stat().st_mtime_ns for file in (tmp_path / "out" / "matrix").iterdir()}


@pytest.mark.parametrize("settings", [{"words": 20}, {"language": "de"}, {"k1": 1.2}, {"b": 0.75}])
def test_other_settings_into_the_same_folder_are_refused_by_name(
    settings: dict[str, Any], corpus: Path, tmp_path: Path
) -> None:
    make(corpus, tmp_path / "out")
    with pytest.raises(SettingsDiffer, match=f"settings.{next(iter(settings))}"):
        make(corpus, tmp_path / "out", **settings)


def test_other_texts_into_the_same_folder_are_refused(corpus: Path, tmp_path: Path) -> None:
    make(corpus, tmp_path / "out")
    write_lines(corpus, TEXTS[1:])
    with pytest.raises(SettingsDiffer, match="sources"):
        make(corpus, tmp_path / "out")


def test_a_corpus_may_be_moved(corpus: Path, tmp_path: Path) -> None:
    make(corpus, tmp_path / "out")
    (tmp_path / "elsewhere").mkdir()
    make(corpus.rename(tmp_path / "elsewhere" / corpus.name), tmp_path / "out")


def files_of(folder: Path) -> list[str]:
    return sorted(contents(folder))


@pytest.mark.parametrize("damage", ["flipped", "cut", "gone"])
def test_a_damaged_file_is_refused_by_name_and_building_again_mends_it(
    damage: str, corpus: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    make(corpus, out)
    whole = contents(out)
    needed = [name for name in files_of(out) if not name.endswith("0.json") and "/0000" not in name]
    needed += [name for name in files_of(out) if name.endswith(".jsonl")]
    assert len(needed) == 2 + 7 + 3
    for name in needed:
        data = whole[name]
        if damage == "gone":
            (out / name).unlink()
        else:
            (out / name).write_bytes(data[: len(data) // 2] + (b"" if damage == "cut" else flipped(data)))
        with pytest.raises((Corrupt, BadInput)) as refused:
            Index.open(out)
        assert name in str(refused.value) or name in ("settings.json", "manifest.json")
        if name == "settings.json":
            (out / name).write_bytes(data)
        else:
            make(corpus, out)
        assert contents(out) == whole, name


def flipped(data: bytes) -> bytes:
    at = len(data) // 2
    return bytes([data[at] ^ 1]) + data[at + 1 :]


def test_a_damaged_shard_of_a_half_built_index_is_made_again(corpus: Path, tmp_path: Path) -> None:
    make(corpus, tmp_path / "whole")
    for name in ("passages/00001.jsonl", "passages/00001.json", "counts/00001.npz"):
        out = tmp_path / name.replace("/", "-")
        with pytest.raises(KeyboardInterrupt):
            build_index([corpus], out, progress=interrupt_at_the_matrix, limits=SMALL_SHARDS)
        (out / name).write_bytes(flipped((out / name).read_bytes()))
        make(corpus, out)
        assert contents(out) == contents(tmp_path / "whole")


def interrupt_at_the_matrix(stage: str, done: int, total: int | None) -> None:
    if stage == "matrix":
        raise KeyboardInterrupt


@pytest.mark.case("F5")
def test_a_bit_flipped_anywhere_and_a_file_cut_anywhere_is_found(corpus: Path, tmp_path: Path) -> None:
    make(corpus, tmp_path / "out")
    tried = 0
    for file in sorted(file for file in (tmp_path / "out").rglob("*") if file.is_file() and file.name != "lock"):
        whole = file.read_bytes()
        needed = file.parent.name != "passages" or file.suffix == ".jsonl"  # the records of shards are for building
        for at in range(0, len(whole), max(1, len(whole) // 11)):
            for changed in (whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], whole[:at]):
                file.write_bytes(changed)
                if needed:
                    with pytest.raises(Corrupt, match=re.escape(file.name)):
                        Index.open(tmp_path / "out")
                    tried += 1
        file.write_bytes(whole)
    assert tried > 200
    assert Index.open(tmp_path / "out").search("fjord", 1)


@pytest.mark.parametrize(
    "name", ["settings.json", "manifest.json", "passages/00000.jsonl", "matrix/data.csc.index.npy"]
)
def test_a_file_of_another_index_is_refused_by_name(corpus: Path, tmp_path: Path, name: str) -> None:
    make(corpus, tmp_path / "out")
    build_index([write_lines(tmp_path / "few.jsonl", TEXTS[:3])], tmp_path / "other", IndexSettings(language="de"))
    (tmp_path / "out" / name).write_bytes((tmp_path / "other" / name).read_bytes())
    with pytest.raises(Corrupt, match="missing or damaged"):
        Index.open(tmp_path / "out")


@pytest.mark.parametrize(
    "change",
    [
        {"files": []},
        {"files": [["../../secret", 1, "0"]]},
        {"files": [[1, 2]]},
        {"shards": []},
        {"shards": [-1]},
        {"shards": ["a"]},
        {"passages": 10**9},
        {"passages": None},
    ],
)
def test_a_manifest_that_does_not_vouch_for_all_of_an_index_is_refused(
    corpus: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    make(corpus, tmp_path / "out")
    manifest = tmp_path / "out" / "manifest.json"
    manifest.write_bytes(seal({**read_sealed(manifest), **change}))
    with pytest.raises(Corrupt, match="is not one; build the index again"):
        Index.open(tmp_path / "out")


def test_a_folder_of_a_run_is_no_index(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_bytes(seal({"format": 1, "seed": 1}))
    with pytest.raises(BadInput, match="holds no index"):
        Index.open(tmp_path)


@pytest.mark.parametrize("out", ["", "index", "deep/er"])
def test_an_index_among_its_own_texts_is_refused_before_anything_is_written(tmp_path: Path, out: str) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("A herring.")
    with pytest.raises(BadInput, match="among the texts that it is made of"):
        build_index([folder], folder / out)
    assert [file.name for file in folder.iterdir()] == ["a.txt"]


def test_an_index_of_another_version_is_refused(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "FORMAT", 0)
    make(corpus, tmp_path / "old")
    monkeypatch.undo()
    with pytest.raises(BadInput, match=r"another version of toolwise \(format 0, this one reads 1\).*new folder"):
        Index.open(tmp_path / "old")
    with pytest.raises(SettingsDiffer, match=r"format \(0 -> 1\)"):
        make(corpus, tmp_path / "old")


def test_an_index_of_another_stemmer_is_refused(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "stemmer_version", lambda: "0.9")
    make(corpus, tmp_path / "old")
    monkeypatch.undo()
    with pytest.raises(BadInput, match=r"version 0\.9 of the stemmers.*install the PyStemmer"):
        Index.open(tmp_path / "old")


@pytest.mark.parametrize("call", ["os.posix_fallocate", "os.fsync", "os.replace"])
def test_a_disk_without_room_is_said_and_the_index_finished_once_there_is(
    call: str, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(call, full)
    with pytest.raises(StorageUnavailable, match="No space left on device"):
        make(corpus, tmp_path / "out")
    monkeypatch.undo()
    make(corpus, tmp_path / "out")
    assert Index.open(tmp_path / "out").search("fjord", 1)


def test_what_is_no_index_is_refused_with_what_to_run(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere", tmp_path / ("n" * 300)):
        with pytest.raises(BadInput, match=r"toolwise index build|cannot use"):
            Index.open(folder)


def test_a_folder_with_other_files_is_left_alone(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds other files"):
        make(corpus, tmp_path)


def test_every_kind_of_file_is_indexed_with_its_fields(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    folder = tmp_path / "texts"
    folder.mkdir()
    write_lines(folder / "a.jsonl", TEXTS[:1])
    with gzip.open(folder / "b.jsonl.gz", "wt", encoding="utf-8") as packed:
        packed.write(json.dumps(TEXTS[1]) + "\n")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(TEXTS[2:3]), folder / "c.parquet")
    (folder / "d.txt").write_text("A plain text about herring.")
    write_lines(tmp_path / "more.jsonl", TEXTS[7:8])
    build_index([folder, tmp_path / "more.jsonl"], tmp_path / "out")
    index = Index.open(tmp_path / "out")
    assert {hit.id for hit in index.search("capital herring bread", 9)} == {"bread#0", "d#0"}
    assert {hit.id for hit in index.search("capital", 9)} == {"oslo#0", "bergen#0", "vienna#0"}
    (oslo,) = index.search("fjord", 1)
    assert (oslo.title, oslo.date, oslo.url) == ("Oslo", "2023-05-17", "https://example.org/oslo")
    assert oslo.text == TEXTS[0]["text"]


def test_one_id_in_two_sources_is_refused(corpus: Path, tmp_path: Path) -> None:
    again = write_lines(tmp_path / "again.jsonl", TEXTS[:1])
    with pytest.raises(BadInput, match=r'"oslo" is taken'):
        build_index([corpus, again], tmp_path / "out")


def test_files_of_one_name_in_two_folders_are_two_documents_killed_or_not(tmp_path: Path) -> None:
    for folder in ("first", "second", "third"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "notes.txt").write_text(f"The {folder} herring.")
    sources, out = [tmp_path / "first", tmp_path / "second", tmp_path / "third"], tmp_path / "out"

    def stopping(stage: str, done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    limits = replace(LIMITS, shard_passages=1)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            build_index(sources, out, progress=stopping, limits=limits)
    build_index(sources, out, limits=limits)
    found = {hit.id: hit.text for hit in Index.open(out).search("herring", 9)}
    assert found == {
        "notes#0": "The first herring.",
        "notes~2#0": "The second herring.",
        "notes~3#0": "The third herring.",
    }


def test_a_source_that_is_named_twice_is_read_once(corpus: Path, tmp_path: Path) -> None:
    assert build_index([corpus, str(corpus)], tmp_path / "out").documents == len(TEXTS)


@pytest.mark.parametrize(
    ("text", "says"), [("", "holds no document"), ('{"text": "*** !!! ***"}\n', "no word"), ('{"a": 1}\n', "text")]
)
def test_texts_without_words_are_refused(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "texts.jsonl").write_text(text)
    with pytest.raises(BadInput, match=says):
        build_index([tmp_path / "texts.jsonl"], tmp_path / "out")


def test_no_source_and_settings_that_make_no_index_are_refused(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nothing to index"):
        build_index([], tmp_path / "out")
    for wrong in ({"words": 0}, {"k1": -1.0}, {"b": 1.5}, {"k1": float("nan")}):
        with pytest.raises(BadInput, match="An index needs"):
            IndexSettings(**wrong)
    with pytest.raises(BadInput, match="no stemmer for 'klingon'"):
        make(corpus, tmp_path / "out", language="klingon")
    assert not (tmp_path / "out").exists()
