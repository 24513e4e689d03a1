"""The journal: what was acknowledged is recovered, and nothing else ever is."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwise.core.errors import BadInput, StorageUnavailable
from toolwise.teach.store.journal import Journal, recover

RECORDS = [b"first", b"", b"third \x00\xff record", b"x" * 60]


def written(path: Path, records: list[bytes] = RECORDS) -> bytes:
    journal = Journal(path)
    for record in records:
        journal.append(record)
    journal.close()
    return path.read_bytes()


def ends(data: bytes) -> list[int]:
    """Where each whole prefix ends, found by the slow way: growing the file byte by byte."""
    return [n for n in range(len(data) + 1) if recover(data[:n]).torn == 0]


def test_records_come_back_in_order(tmp_path: Path) -> None:
    written(tmp_path / "log")
    journal = Journal(tmp_path / "log")
    assert list(journal.recovered.records) == RECORDS
    assert journal.recovered.torn == 0


@pytest.mark.case("F3")
def test_a_log_cut_at_any_byte_gives_exactly_its_longest_whole_prefix(tmp_path: Path) -> None:
    data = written(tmp_path / "log")
    whole = ends(data)
    assert len(whole) == len(RECORDS) + 1
    for n in range(len(data) + 1):
        found = recover(data[:n])
        count = sum(end <= n for end in whole) - 1
        assert list(found.records) == RECORDS[:count]
        assert (found.length, found.torn) == (whole[count], n - whole[count])


@pytest.mark.case("F4")
def test_what_is_appended_after_a_torn_tail_is_readable_and_so_is_what_stood_before_it(tmp_path: Path) -> None:
    path = tmp_path / "log"
    data = written(path)
    whole = ends(data)
    for n in range(len(data) + 1):
        path.write_bytes(data[:n])
        journal = Journal(path)
        journal.append(b"new")
        journal.close()
        count = sum(end <= n for end in whole) - 1
        found = recover(path.read_bytes())
        assert list(found.records) == [*RECORDS[:count], b"new"]
        assert found.torn == 0


@pytest.mark.case("F3")
def test_no_flipped_bit_yields_a_record_that_was_not_written(tmp_path: Path) -> None:
    data = written(tmp_path / "log")
    for bit in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        found = recover(bytes(flipped))
        assert list(found.records) == RECORDS[: len(found.records)]
        assert len(found.records) < len(RECORDS)
        assert found.torn > 0


def test_a_tail_of_zeros_is_not_a_record(tmp_path: Path) -> None:
    data = written(tmp_path / "log")
    assert list(recover(data + bytes(4096)).records) == RECORDS


@given(st.lists(st.binary(max_size=40), max_size=6), st.integers(0, 400), st.binary(max_size=30))
@settings(max_examples=100, deadline=None)
def test_any_cut_and_any_tail_give_a_prefix(
    tmp_path_factory: pytest.TempPathFactory, records: list[bytes], cut: int, tail: bytes
) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    data = written(path, records)
    found = recover(data[:cut] + tail) if cut < len(data) else recover(data)
    assert found.length <= len(data[:cut] + tail)
    before = [record for record in found.records if record in records]
    # A random tail can only read as a record by a 32-bit accident.
    assert list(found.records) == before == records[: len(before)]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EINTR])
@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_record_that_could_not_be_stored_is_reported_and_nothing_follows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    path = tmp_path / "log"
    written(path)
    journal = Journal(path)

    def fail(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(StorageUnavailable):
            journal.append(b"lost?")
    with pytest.raises(StorageUnavailable, match="run again"):
        journal.append(b"after")
    journal.close()
    again = Journal(path)
    assert list(again.recovered.records)[: len(RECORDS)] == RECORDS
    again.append(b"after")
    assert recover(path.read_bytes()).records[-1] == b"after"


def test_the_system_may_take_a_record_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    assert list(recover(written(tmp_path / "log")).records) == RECORDS


def test_a_path_in_a_folder_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nowhere"):
        Journal(tmp_path / "nowhere" / "log")
