"""Documents from files: everything is read or refused with its place, and nothing is skipped."""

from __future__ import annotations

import errno
import gzip
import json
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS
from toolwise.core.types import Document
from toolwise.documents import corpus_digest, read_documents

SMALL = replace(LIMITS, document_bytes=1000)


def lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), "utf-8")
    return path


def refused(path: Path, **options: Any) -> str:
    with pytest.raises(BadInput) as error:
        list(read_documents(path, **options))
    assert "\n" not in str(error.value)
    return str(error.value)


def ids(path: Path) -> list[str]:
    return [document.id for document in read_documents(path)]


def test_a_text_file_is_one_document(tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_bytes("\ufeffÉin Text.\r\n".encode())
    assert list(read_documents(tmp_path / "story.txt")) == [Document("story", "Éin Text.\r\n")]


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.txt").write_text("b")
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "sub" / "a.txt").write_text("sub a")
    (tmp_path / "notes.md").write_text("not a corpus")
    lines(tmp_path / "c.jsonl", {"text": "c"})
    assert ids(tmp_path) == ["a", "b", "c-000001", "sub/a"]


def test_fields_of_a_line_become_the_document(tmp_path: Path) -> None:
    row = {
        "id": "x",
        "text": "T",
        "date": "2023-01-30T08:00Z",
        "url": "https://example.org/2022/05/01/",
        "language": "en",
        "title": "Title",
        "more": {"deep": [1, None]},
    }
    assert list(read_documents(lines(tmp_path / "c.jsonl", row))) == [
        Document("x", "T", "2023-01-30", row["url"], "en", {"title": "Title", "more": {"deep": [1, None]}})  # type: ignore[arg-type]
    ]


def test_an_id_is_the_file_and_the_line_unless_one_is_given(tmp_path: Path) -> None:
    path = lines(tmp_path / "c.v2.jsonl", {"text": "a"}, "  ", {"text": "b", "id": 7}, {"text": "c", "id": None})
    assert ids(path) == ["c.v2-000001", "7", "c.v2-000004"]


def test_an_id_that_nobody_gave_makes_way_for_one_that_is_taken(tmp_path: Path) -> None:
    texts = ({"text": "a", "id": "c-000002"}, {"text": "b"}, {"text": "c", "id": "c-000003~2"}, {"text": "d"})
    assert ids(lines(tmp_path / "c.jsonl", *texts)) == ["c-000002", "c-000002~2", "c-000003~2", "c-000004"]


def test_a_date_comes_from_the_field_or_else_from_the_address(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "c.jsonl",
        {"text": "a", "url": "https://example.org/2023/01/30/x"},
        {"text": "b", "date": "last week", "url": "https://example.org/2023/01/30/x"},
        {"text": "c", "date": 1790},
        {"text": "d", "date": None, "url": None},
    )
    documents = list(read_documents(path))
    assert [document.date for document in documents] == ["2023-01-30", "2023-01-30", "1790", None]
    assert [dict(document.metadata) for document in documents] == [{}, {"date": "last week"}, {}, {}]


def test_gzip_lines_read_like_plain_ones(tmp_path: Path) -> None:
    path = lines(tmp_path / "c.jsonl", {"text": "a"}, {"text": "日本"})
    (tmp_path / "z").mkdir()
    (tmp_path / "z" / "c.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert list(read_documents(tmp_path / "z" / "c.jsonl.gz")) == list(read_documents(path))


def test_parquet_rows_read_like_lines(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [{"text": f"text {n}", "id": f"i{n}", "date": "2023-01", "n": n} for n in range(150)]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "c.parquet")
    assert list(read_documents(tmp_path / "c.parquet")) == list(read_documents(lines(tmp_path / "c.jsonl", *rows)))
    assert len(list(read_documents(tmp_path / "c.parquet", limit=3))) == 3


def test_parquet_faults_are_bad_input(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "c.parquet"
    parquet.write_table(pa.table({"body": ["a"]}), path)
    assert "row 1: there is no" in refused(path)
    parquet.write_table(pa.table({"text": ["a", None]}), path)
    assert "row 2" in refused(path)
    parquet.write_table(pa.table({"text": ["a", "b" * 2000]}), path)
    assert "row 2: more than 1000 bytes" in refused(path, limits=SMALL)
    parquet.write_table(pa.table({"text": pa.array([], pa.string())}), path)
    assert "no document" in refused(path)
    path.write_bytes(path.read_bytes()[:-5])
    assert "not a whole Parquet file" in refused(path)


@pytest.mark.parametrize(
    ("kind", "value"),
    [("timestamp[us]", 2**62), ("date32[day]", 2**31 - 1), ("duration[s]", 2**62), ("time64[us]", 2**60)],
)
def test_a_parquet_value_that_python_cannot_hold_is_bad_input(tmp_path: Path, kind: str, value: int) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    of = {"timestamp[us]": pa.timestamp("us"), "date32[day]": pa.date32(), "duration[s]": pa.duration("s")}
    stored = pa.array([value], pa.int32() if value < 2**31 else pa.int64()).view(of.get(kind, pa.time64("us")))
    parquet.write_table(pa.table({"text": ["a text"], "date": stored}), tmp_path / "c.parquet")
    assert "c.parquet' after row 0" in refused(tmp_path / "c.parquet")


def test_two_parquet_columns_of_one_name_are_refused_by_name(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.Table.from_arrays([pa.array(["one"]), pa.array(["other"])], names=["text", "text"])
    parquet.write_table(table, tmp_path / "c.parquet")
    assert 'two columns "text"' in refused(tmp_path / "c.parquet")


def test_names_of_fields_cannot_flood_or_command_a_terminal(tmp_path: Path) -> None:
    message = refused(lines(tmp_path / "c.jsonl", {"\x1b[2J\n" + "a" * 100_000: 1}))
    assert len(message) < 1_000
    assert message.isprintable()


def test_the_limit_stops_before_a_later_fault(tmp_path: Path) -> None:
    path = lines(tmp_path / "c.jsonl", {"text": "a"}, {"text": "b"}, "broken")
    assert len(list(read_documents(path, limit=2))) == 2


def test_a_missing_file_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no file or folder"):
        read_documents(tmp_path / "nowhere.txt")


@pytest.mark.parametrize("path", ["a" * 5000, "nul\0byte", ""])
def test_a_path_that_cannot_be_is_refused(tmp_path: Path, path: str) -> None:
    assert refused(tmp_path / "x" / path)


def test_a_folder_without_texts_and_an_unknown_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("not a corpus")
    assert ".jsonl" in refused(tmp_path)
    assert ".jsonl" in refused(tmp_path / "notes.md")


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    assert "neither a file nor a folder" in refused(tmp_path / "pipe.txt")


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("/nowhere"), os.mkfifo], ids=["link", "pipe"])
def test_nothing_that_is_named_like_a_corpus_is_left_out_of_a_folder_silently(tmp_path: Path, make: Any) -> None:
    (tmp_path / "a.txt").write_text("text")
    make(tmp_path / "b.txt")
    assert "b.txt' is a link to nowhere, or no regular file" in refused(tmp_path)


def test_a_folder_below_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "below").mkdir()
    scan = os.scandir

    def refuse(path: Any) -> Any:
        if str(path).endswith("below"):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)  # root may read everywhere, so the system's refusal is played
    assert "Permission denied" in refused(tmp_path)


def test_a_file_name_of_another_encoding_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")).write_text("text")
    assert "a name that is not UTF-8" in refused(tmp_path)
    with pytest.raises(BadInput, match="not UTF-8"):
        corpus_digest(tmp_path)


@pytest.mark.parametrize("name", ["id", "url", "language"])
def test_what_every_passage_repeats_of_a_document_is_bounded(tmp_path: Path, name: str) -> None:
    path = lines(tmp_path / "c.jsonl", {"text": "a", name: "y" * (LIMITS.label_chars + 1)})
    assert f"line 1: the {name} has more than 4096 characters" in refused(path)


@pytest.mark.parametrize("data", [b"", b" \n\t\n", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", ["c.txt", "c.jsonl"])
def test_an_empty_file_is_refused(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    assert name in refused(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("c.txt", b"good\nb\xe9d", "line 2: not UTF-8 at byte 6"),
        ("c.txt", "\ufeffa\n".encode() + b"\xff", "line 2: not UTF-8 at byte 5"),
        ("c.txt", "text".encode("utf-16"), "line 1: not UTF-8 at byte 0"),
        ("c.txt", bytes(range(256)), "not UTF-8 at byte 128"),
        ("c.txt", b"ELF\0\0", "NUL character at character 3"),
        ("c.jsonl", b'{"text": "a"}\n{"text": "\xe9"}\n', "line 2: not UTF-8 at byte 24"),
        ("c.jsonl", b'{"text": "a"}\n{"text": "a\\u0000"}\n', "line 2: NUL character at character 1"),
        ("c.jsonl", b'{"text": "a", "id": "\\u0000"}\n', "line 1: NUL character"),
        ("c.jsonl", b'{"text": "a\\ud800"}\n', "line 1: unpaired surrogate"),
        ("c.jsonl", b'{"text": "a"\n', "line 1: not JSON"),
        ("c.jsonl", b'{"text": "a"}{"text": "b"}\n', "line 1: not JSON"),
        ("c.jsonl", b'{"text": "a", "text": "b"}\n', "line 1: duplicate key"),
        ("c.jsonl", b'["text"]\n', "line 1: not an object"),
        ("c.jsonl", b'{"Text": "a", "title": "b"}\n', 'no "text" field among Text, title'),
        ("c.jsonl", b"{}\n", 'no "text" field'),
        ("c.jsonl", b'{"text": null}\n', "the text field is NoneType"),
        ("c.jsonl", b'{"text": ["a"]}\n', "the text field is list"),
        ("c.jsonl", b'{"text": "a", "id": ""}\n', "the id field"),
        ("c.jsonl", b'{"text": "a", "id": true}\n', "the id field"),
        ("c.jsonl", b'{"text": "a", "url": 5}\n', "the url field"),
        ("c.jsonl", b'{"text": "a", "id": "x"}\n{"text": "b", "id": "x"}\n', 'line 2: the id "x" is taken'),
        ("c.jsonl.gz", b'{"text": "a"}\n', "not a whole gzip file"),
        ("c.jsonl.gz", gzip.compress(b'{"text": "a"}\n' * 99, mtime=0)[:-9], "not a whole gzip file"),
        ("c.parquet", b"PAR1 and nothing", "not a whole Parquet file"),
    ],
)
def test_wrong_input_is_refused_with_its_place(tmp_path: Path, name: str, data: bytes, expected: str) -> None:
    (tmp_path / name).write_bytes(data)
    message = refused(tmp_path / name)
    assert expected in message
    assert name in message


@pytest.mark.parametrize("name", ["c.jsonl", "c.jsonl.gz", "c.txt"])
def test_a_line_of_ten_megabytes_is_refused_without_being_read_whole(tmp_path: Path, name: str) -> None:
    data = b'{"text": "' + b"a" * 10_000_000 + b'"}\n'
    limits = replace(LIMITS, document_bytes=100_000)
    (tmp_path / name).write_bytes(gzip.compress(data, 1) if name.endswith("gz") else data)
    tracemalloc.start()
    try:
        assert "more than 100000 bytes" in refused(tmp_path / name, limits=limits)
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()
    assert "more than 8388608 bytes" in refused(tmp_path / name)


def test_a_document_may_be_as_long_as_the_bound(tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text("a" * 1000)
    assert len(next(read_documents(tmp_path / "c.txt", limits=SMALL)).text) == 1000
    (tmp_path / "c.txt").write_text("a" * 1001)
    assert "more than 1000 bytes" in refused(tmp_path / "c.txt", limits=SMALL)


def test_a_long_text_is_read_from_a_line(tmp_path: Path) -> None:
    text = 'Long "text"\n' * 200_000
    assert next(read_documents(lines(tmp_path / "c.jsonl", {"text": text}))).text == text


def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c.txt").write_text("text")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "open", refuse)  # root may read everywhere, so the system's refusal is played
    assert "Permission denied" in refused(tmp_path / "c.txt")


@pytest.mark.case("F14")
@pytest.mark.parametrize("name", ["with space.txt", "new\nline.txt", "наука 日本 🧮.txt"])
def test_any_file_name_works_and_a_refusal_stays_on_one_line(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("text")
    assert ids(tmp_path / name) == [name.removesuffix(".txt")]
    (tmp_path / name).write_bytes(b"\xff")
    refused(tmp_path / name)
