"""Rows of a Parquet file, in memory that the file cannot choose.

Some hundred bytes of Parquet can stand for gigabytes: a long value stands once in a dictionary and is referred to by
every row, or by every item of one row's list; a page of zeros packs to nothing. So as many rows are decoded at a time
as fit into `limits.parquet_batch_bytes` if each of them were all that its row group holds; a row group of which one row
may be more than that is refused, unless it is no better packed than text can be. Lists of texts stay references until
it is known what they unpack to.

Not covered: a file whose pages are larger than its own footer says. A page has at most 2 GiB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from toolwise.core import jsonio
from toolwise.core.errors import BadInput
from toolwise.core.limits import Limits
from toolwise.documents.arrow import arrow

_ROWS = 64  # at a time, where they are of a usual size: more are hardly faster
_ITEM_BYTES = 8  # of a list's item in memory, at least: a number, or a reference and what says which list it is in


def rows(path: Path, limits: Limits) -> Iterator[Mapping[str, Any]]:
    """The rows in their order. Raises BadInput for a file that is made to fill the memory, or with two columns of one
    name; OSError, ValueError, OverflowError and pyarrow's own errors for what is no such file or cannot be held.
    """
    _, parquet = arrow()
    with parquet.ParquetFile(path) as file:
        lists = _lists_of_text(file.schema)
    with parquet.ParquetFile(path, read_dictionary=lists) as file:
        twice = [name for name, times in Counter(file.schema_arrow.names).items() if times > 1]
        if twice:
            raise BadInput(f"{str(path)!r} has two columns {jsonio.quote(twice[0])}; leave one of them out")
        for number in range(file.num_row_groups):
            size = _checked_size(file, number, path, limits)
            some = min(_ROWS, max(1, limits.parquet_batch_bytes // max(size, 1)))
            for batch in file.iter_batches(batch_size=some, row_groups=[number], use_threads=False):
                if sum(map(_unpacked, batch.columns)) > limits.parquet_batch_bytes:
                    raise _refused(path, number, "has lists that unpack", limits)
                yield from batch.to_pylist()


def _lists_of_text(schema: Any) -> list[str]:
    """The paths of the columns whose values are texts in lists."""
    columns = [schema.column(number) for number in range(len(schema))]
    return [
        column.path
        for column in columns
        if column.max_repetition_level
        and column.physical_type == "BYTE_ARRAY"
        and column.logical_type.type in ("STRING", "NONE", "JSON", "ENUM")
    ]


def _checked_size(file: Any, number: int, path: Path, limits: Limits) -> int:
    """The bytes of a row group in memory, where no value stands twice."""
    group, size = file.metadata.row_group(number), 0
    for place in range(group.num_columns):
        chunk = group.column(place)
        column, most = file.schema.column(place), chunk.total_uncompressed_size
        if column.max_repetition_level:  # one row may have all of the items
            most += chunk.num_values * max(_ITEM_BYTES, column.length or 0)
        if most > max(limits.parquet_batch_bytes, limits.parquet_ratio * chunk.total_compressed_size):
            name = jsonio.quote(chunk.path_in_schema)
            raise _refused(path, number, f"has a column {name} that unpacks", limits)
        size += most
    return size


def _unpacked(array: Any) -> int:
    """At most how many bytes the texts in an array's lists are, when each stands for itself."""
    pa, _ = arrow()
    kind, types = array.type, pa.types
    if types.is_dictionary(kind):
        texts = array.dictionary
        long = types.is_string(texts.type) or types.is_binary(texts.type)
        return len(array) * (pa.compute.max(pa.compute.binary_length(texts)).as_py() or 0) if long else 0
    if types.is_struct(kind):
        return sum(map(_unpacked, array.flatten()))
    if types.is_map(kind):
        return _unpacked(array.keys) + _unpacked(array.items)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _unpacked(array.flatten())
    return 0


def _refused(path: Path, number: int, what: str, limits: Limits) -> BadInput:
    most = limits.parquet_batch_bytes
    return BadInput(
        f"{str(path)!r}: row group {number + 1} {what} to more than {most} bytes, far more than the file has; "
        "do not trust it, or write it anew in smaller row groups"
    )
