"""Frozen records <-> Parquet, by the records' own type hints.

A field is a str, int, float or bool, one of these or None, or a tuple of them or of such records. Nothing is guessed or
coerced: another hint is refused when the columns are made, a value that is not what its hint says when it is written.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from toolwise.core.errors import BadInput, Corrupt
from toolwise.documents.arrow import arrow

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Column:
    """How one hint is stored: pyarrow's type, whether None may stand, and the two directions of a value."""

    type: Any
    nullable: bool
    store: Callable[[Any], Any]
    load: Callable[[Any], Any]


def to_parquet(rows: Sequence[Any], row: type[Any]) -> bytes:
    """The rows, all of type `row`, as the bytes of a Parquet file (zstd). Equal rows give equal bytes."""
    pa, _ = arrow()
    sink = pa.BufferOutputStream()
    write_parquet(sink, [rows], row)
    return bytes(sink.getvalue())


def write_parquet(
    where: Any, batches: Iterable[Sequence[Any]], row: type[Any], metadata: Mapping[str, str] | None = None
) -> None:
    """The same into a path or a stream of pyarrow's, a row group for each batch, with `metadata` in the file's own."""
    pa, parquet = arrow()
    record = _record(row)
    schema = pa.schema(list(record.type), metadata=metadata)
    with parquet.ParquetWriter(where, schema, compression="zstd") as writer:
        for rows in batches:
            try:
                table = pa.Table.from_pylist([record.store(value) for value in rows], schema=schema)
            except (OverflowError, TypeError, UnicodeError, pa.ArrowException) as error:
                raise BadInput(f"a row cannot be stored as {row.__name__}: {error}") from error
            writer.write_table(table)


def from_parquet(data: bytes, row: type[T]) -> Iterator[T]:
    """The rows of a file that `to_parquet` made, in order. Raises Corrupt when it is not such a file."""
    pa, parquet = arrow()
    record = _record(row)
    try:
        # One thread: this runs in forked workers too, where a pool of the parent is not there. `read_table` would start
        # threads all the same, and a process that ends soon after aborts in them (pyarrow 26 beside torch).
        table = parquet.ParquetFile(pa.BufferReader(data)).read(use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise Corrupt(f"not a Parquet file of {row.__name__} rows: {error}") from error
    if not table.schema.equals(pa.schema(list(record.type))):
        raise Corrupt(f"not a Parquet file of {row.__name__} rows: its columns are {', '.join(table.column_names)}")
    for batch in table.to_batches(max_chunksize=1024):
        yield from map(record.load, batch.to_pylist())


def _record(row: type[Any]) -> _Column:
    pa, _ = arrow()
    hints = get_type_hints(row)
    columns = {field.name: _column(hints[field.name]) for field in fields(row)}

    def store(value: Any) -> dict[str, Any]:
        if type(value) is not row:
            raise TypeError(f"{type(value).__name__} is not {row.__name__}")
        return {name: column.store(getattr(value, name)) for name, column in columns.items()}

    def load(value: dict[str, Any]) -> Any:
        return row(**{name: column.load(value[name]) for name, column in columns.items()})

    struct = pa.struct([pa.field(name, one.type, nullable=one.nullable) for name, one in columns.items()])
    return _Column(struct, False, store, load)


def _column(hint: Any) -> _Column:
    pa, _ = arrow()
    scalars = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in scalars:
        return _Column(scalars[hint], False, _only(hint), _same)
    if origin in (Union, types.UnionType) and len(arguments) == 2 and types.NoneType in arguments:
        inner = _column(next(one for one in arguments if one is not types.NoneType))
        return _Column(inner.type, True, _or_none(inner.store), _or_none(inner.load))
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        inner = _column(arguments[0])
        return _Column(
            pa.list_(pa.field("element", inner.type, nullable=inner.nullable)),
            False,
            lambda values: [inner.store(value) for value in values],
            lambda values: tuple(inner.load(value) for value in values),
        )
    if is_dataclass(hint) and isinstance(hint, type):
        return _record(hint)
    raise BadInput(f"a field of type {hint} has no column type; use str, int, float, bool, None or a tuple of them")


def _only(kind: type[Any]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        # pyarrow would cut 1.5 down to 1 and take bytes for text; bool is an int in Python.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise TypeError(f"{type(value).__name__} is not {kind.__name__}")
        return value

    return check


def _same(value: Any) -> Any:
    return value


def _or_none(inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else inner(value)
