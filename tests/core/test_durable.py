"""Whole files by rename: after any failure the old file or the new one stands there, and no leftover."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from toolwise.core.durable import replace_file, storage, write_all
from toolwise.core.errors import BadInput, StorageUnavailable


def test_a_full_disk_is_storage_unavailable_and_says_what_to_do() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    descriptor = os.open("/dev/full", os.O_WRONLY)
    try:
        with pytest.raises(StorageUnavailable, match="No space left on device; free space"), storage(Path("/dev/full")):
            write_all(descriptor, b"data")
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENOTDIR, errno.ENAMETOOLONG])
def test_a_path_that_cannot_be_used_is_bad_input_in_one_line(code: int) -> None:
    with pytest.raises(BadInput) as refused, storage(Path("a\nb")):
        raise OSError(code, os.strerror(code))
    assert "\n" not in str(refused.value)
    assert os.strerror(code) in str(refused.value)


@pytest.mark.case("F9")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EINTR, errno.EROFS])
@pytest.mark.parametrize("call", ["open", "write", "fsync", "replace"])
def test_after_a_failure_the_old_file_or_the_new_one_stands_whole_and_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    path = tmp_path / "file"
    real = getattr(os, call)
    for failing in range(1, 20):
        path.write_bytes(b"old")
        seen = 0

        def faulty(*args: object, failing: int = failing, **named: object) -> object:
            nonlocal seen
            seen += 1
            if seen == failing:
                raise OSError(code, os.strerror(code))
            return real(*args, **named)

        with monkeypatch.context() as patch:
            patch.setattr(os, call, faulty)
            try:
                replace_file(path, b"new")
                failed = False
            except (BadInput, StorageUnavailable):
                failed = True
        assert os.listdir(tmp_path) == ["file"]
        assert path.read_bytes() == b"new" if not failed else path.read_bytes() in (b"old", b"new")
        if not failed:
            assert failing > 1
            return
    pytest.fail("never got through")


def test_a_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:2]))
    replace_file(tmp_path / "file", b"seven b")
    assert (tmp_path / "file").read_bytes() == b"seven b"
