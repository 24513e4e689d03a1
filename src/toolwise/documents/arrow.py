"""pyarrow, imported when a Parquet file is first read or written."""

from __future__ import annotations

from typing import Any

from toolwise.core.errors import BadInput


def arrow() -> tuple[Any, Any]:
    """`pyarrow` and `pyarrow.parquet`. Raises BadInput where they are not installed."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as error:
        raise BadInput("Parquet files need pyarrow: pip install 'toolwise[teach]' or 'toolwise[search]'") from error
    return pyarrow, pyarrow.parquet
