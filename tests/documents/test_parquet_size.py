"""Parquet files of some hundred bytes that stand for gigabytes: read in bounded memory, or refused."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS
from toolwise.documents import read_documents

pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

MB = 2**20
#: Little, so that a test that fails takes no gigabytes.
SMALL = replace(LIMITS, parquet_batch_bytes=MB)
LONG = "x" * (200 * 1024)


def same(value: Any, times: int) -> Any:
    """An array that has a value so many times, and holds it once."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), pa.array([value]))


def written(path: Path, group: int = 10**6, **columns: Any) -> Path:
    """The columns, of which the file does not say that some came from dictionaries."""
    parquet.write_table(pa.table(columns), path, compression="zstd", row_group_size=group, store_schema=False)
    return path


def lists(values: Any, *ends: int) -> Any:
    return pa.ListArray.from_arrays(pa.array([0, *ends], pa.int32()), values)


def refused(path: Path) -> str:
    with pytest.raises(BadInput) as error:
        list(read_documents(path, limits=SMALL))
    return str(error.value)


def test_a_long_text_in_every_row_is_read_a_few_rows_at_a_time(tmp_path: Path) -> None:
    path = written(tmp_path / "c.parquet", text=same(LONG, 400))
    assert path.stat().st_size < 1000  # of 80 MB
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    found = taken = 0
    for document in read_documents(path, limits=SMALL):
        found += document.text == LONG
        taken = max(taken, pa.total_allocated_bytes() - before)
    assert found == 400
    assert taken < 4 * MB
    assert tracemalloc.get_traced_memory()[1] < 8 * MB
    tracemalloc.stop()


def test_a_page_that_unpacks_to_far_more_than_it_takes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    zeros = pa.table({"text": [LONG] * 50})
    parquet.write_table(zeros, path, compression="zstd", use_dictionary=False)
    assert path.stat().st_size < 10_000  # of 10 MB
    said = refused(path)
    assert "row group 1 has a column" in said
    assert "unpacks to more than 1048576 bytes" in said


@pytest.mark.parametrize("kind", ["list", "large", "struct", "map", "nested"])
def test_a_long_text_in_every_item_of_a_list_is_refused_before_it_is_unpacked(tmp_path: Path, kind: str) -> None:
    texts = same(LONG, 300)
    items = {
        "list": lambda: lists(texts, 300),
        "large": lambda: pa.LargeListArray.from_arrays(pa.array([0, 300], pa.int64()), texts),
        "struct": lambda: lists(pa.StructArray.from_arrays([texts], ["name"]), 300),
        "map": lambda: pa.MapArray.from_arrays(pa.array([0, 300], pa.int32()), pa.array(map(str, range(300))), texts),
        "nested": lambda: lists(lists(texts, 100, 300), 2),
    }[kind]()
    path = written(tmp_path / "c.parquet", text=pa.array(["a text"]), tags=items)
    before = pa.total_allocated_bytes()
    assert "lists that unpack" in refused(path)
    assert pa.total_allocated_bytes() - before < 2 * MB


def test_a_list_with_more_items_than_the_memory_should_hold_is_refused_before_it_is_read(tmp_path: Path) -> None:
    flags = lists(pa.array([True] * 200_000), 200_000)
    path = written(tmp_path / "c.parquet", text=pa.array(["a text"]), flags=flags)
    assert path.stat().st_size < 1000
    assert 'column "flags.list.element"' in refused(path)


def test_lists_of_texts_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = [{"text": f"text {n}", "tags": ["a", None, f"b{n % 7}"], "of": [{"name": "c", "n": n}]} for n in range(150)]
    rows += [{"text": "last", "tags": None, "of": []}]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "c.parquet", row_group_size=40)
    found = [{"text": one.text, **one.metadata} for one in read_documents(tmp_path / "c.parquet")]
    assert found == rows


def test_a_large_row_group_that_is_packed_as_text_is_read_row_by_row(tmp_path: Path) -> None:
    texts = [f"{n} " + " ".join(str((n * 7919 + m) % 10_007) for m in range(2_000)) for n in range(200)]
    parquet.write_table(pa.table({"text": texts}), tmp_path / "c.parquet", compression="zstd", use_dictionary=False)
    assert [one.text for one in read_documents(tmp_path / "c.parquet", limits=SMALL)] == texts
