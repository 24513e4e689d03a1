"""Records and Parquet: what goes in comes out, and what does not fit is refused."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwise.core.errors import BadInput, Corrupt
from toolwise.teach.records import Augmented, Candidate, Passage, Span
from toolwise.teach.store.rows import from_parquet, to_parquet

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBER = st.integers(-(2**63), 2**63 - 1)
MAYBE = st.none() | st.floats(allow_nan=False)
CANDIDATES = st.builds(
    Candidate, TEXT, TEXT, NUMBER, NUMBER, TEXT, TEXT, MAYBE, st.none() | TEXT, MAYBE, MAYBE, MAYBE, reason=TEXT
)
AUGMENTED = st.builds(
    Augmented,
    TEXT,
    TEXT,
    TEXT,
    TEXT,
    st.lists(st.builds(Span, NUMBER, NUMBER, NUMBER, NUMBER, TEXT), max_size=3).map(tuple),
)
PASSAGE = Passage("d#0", "d", 0, "text")


@given(st.lists(CANDIDATES, max_size=4))
@settings(max_examples=40)
def test_candidates_round_trip(rows: list[Candidate]) -> None:
    assert list(from_parquet(to_parquet(rows, Candidate), Candidate)) == rows


@given(st.lists(AUGMENTED, max_size=4))
@settings(max_examples=40)
def test_records_with_nested_records_round_trip(rows: list[Augmented]) -> None:
    assert list(from_parquet(to_parquet(rows, Augmented), Augmented)) == rows


def test_equal_rows_give_equal_bytes() -> None:
    rows = [replace(PASSAGE, start=start) for start in range(3000)]
    assert to_parquet(rows, Passage) == to_parquet(list(rows), Passage)
    assert list(from_parquet(to_parquet(rows, Passage), Passage)) == rows


@pytest.mark.parametrize(
    "row",
    [
        replace(PASSAGE, start=1.5),  # type: ignore[arg-type]
        replace(PASSAGE, start=True),
        replace(PASSAGE, start=2**70),
        replace(PASSAGE, text=b"bytes"),  # type: ignore[arg-type]
        replace(PASSAGE, text=None),  # type: ignore[arg-type]
        replace(PASSAGE, text="\ud800"),
        Span(0, 0, 0, 0, "t"),
    ],
)
def test_a_value_that_is_not_what_its_hint_says_is_refused(row: object) -> None:
    with pytest.raises(BadInput, match="cannot be stored as Passage"):
        to_parquet([row], Passage)


def test_a_field_without_a_column_type_is_refused() -> None:
    with pytest.raises(BadInput, match="no column type"):
        to_parquet([], _Odd)


def test_bytes_that_are_no_parquet_or_hold_other_rows_are_corrupt() -> None:
    with pytest.raises(Corrupt, match="not a Parquet file"):
        list(from_parquet(b"PAR1 but not really", Passage))
    with pytest.raises(Corrupt, match="Augmented"):
        list(from_parquet(to_parquet([PASSAGE], Passage), Augmented))


@dataclass(frozen=True)
class _Odd:
    field: dict[str, str]


_READ_AND_END = """
import torch, transformers
from toolwise.teach.records import Passage
from toolwise.teach.store.rows import from_parquet, to_parquet
row = Passage("d#0", "d", 0, "text")
assert list(from_parquet(to_parquet([row], Passage), Passage)) == [row]
"""


def test_a_process_that_reads_rows_and_ends_at_once_ends_well() -> None:
    """Threads that a reader leaves behind abort the process after its work is done, so that a script sees a failure."""
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", _READ_AND_END], capture_output=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr.decode()
