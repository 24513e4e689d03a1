"""The run folder: nothing that was acknowledged is lost, nothing damaged is read, nothing foreign is touched."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolwise.core.errors import BadInput, Corrupt, InProgress, SettingsDiffer, StorageUnavailable
from toolwise.teach.records import Augmented, Passage
from toolwise.teach.store import Store, put
from toolwise.teach.store.shards import BLOCK

SETTINGS = {"model": "m1", "seed": 0, "tools": {"Calculator": {"tau_f": 0.5, "version": "a"}}}
SHARDS = 2
# What a run does to the disk, and so where it can be interrupted.
CALLS = ("open", "write", "fsync", "replace", "ftruncate")


def rows(index: int, count: int = 2) -> list[Passage]:
    return [Passage(f"doc{index}#{n}", f"doc{index}", n, f"text {n} of {index}") for n in range(count)]


def run(folder: Path) -> None:
    """A whole run: continue where it was left, make what is missing, finish."""
    with Store.open(folder, SETTINGS) as store:
        if store.manifest is not None:
            return
        for index in range(SHARDS):
            if index not in store.done("passages"):
                store.write_shard("passages", index, rows(index))
        store.finish({"kept": 0})


def everything() -> list[Passage]:
    return [row for index in range(SHARDS) for row in rows(index)]


def on_call(number: int, act: Callable[[], None], patch: Callable[[str, Any], None]) -> Callable[[], int]:
    """Do `act` instead of the number-th of CALLS; what is returned counts them so far."""
    seen = 0

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            nonlocal seen
            seen += 1
            if seen == number:
                act()
            return real(*args, **named)

        return call

    for name in CALLS:
        patch(name, counted(getattr(os, name)))
    return lambda: seen


def in_child(work: Callable[[], None]) -> int:
    """Run `work` in a forked child and give its exit status: 0, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


WHOLE = {"settings.json", "journal", "manifest.json", "lock", *(f"passages/0000{n}.parquet" for n in range(SHARDS))}


def test_rows_come_back_in_the_order_of_their_shards(tmp_path: Path) -> None:
    with Store.open(tmp_path / "run", SETTINGS) as store:
        for index in (1, 0):
            store.write_shard("passages", index, rows(index))
        assert sorted(store.done("passages")) == [0, 1]
        assert store.done("augmented") == {}
        store.finish({"kept": 7})
    store = Store.load(tmp_path / "run")
    assert list(store.read("passages", Passage)) == everything()
    assert list(store.read("augmented", Augmented)) == []
    assert store.settings == SETTINGS
    assert store.manifest is not None
    assert store.manifest["counts"]["passages"] == {"shards": 2, "rows": 4}
    assert store.manifest["report"] == {"kept": 7}
    assert store.manifest["fingerprint"] == store.fingerprint
    assert files(tmp_path / "run") == WHOLE


def test_a_folder_that_is_not_finished_is_read_only_when_asked_for_in_part(tmp_path: Path) -> None:
    with Store.open(tmp_path, SETTINGS) as store:
        store.write_shard("passages", 0, rows(0))
    with pytest.raises(BadInput, match="not finished"):
        Store.load(tmp_path)
    assert list(Store.load(tmp_path, partial=True).read("passages", Passage)) == rows(0)


def test_a_folder_that_is_no_run_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not the folder of a run"):
        Store.load(tmp_path, partial=True)


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    run(tmp_path)
    with pytest.raises(BadInput, match=r"Store\.open"):
        Store.load(tmp_path).write_shard("passages", 0, rows(0))


def test_an_unknown_kind_and_rows_of_another_kind_are_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path, SETTINGS) as store:
        with pytest.raises(BadInput, match="kinds are"):
            store.write_shard("others", 0, [])  # type: ignore[arg-type]
        with pytest.raises(BadInput, match="cannot be stored as Augmented"):
            store.write_shard("augmented", 0, rows(0))
        with pytest.raises(BadInput, match="rows of Passage"):
            store.read("passages", Augmented)


def test_a_changed_folder_is_not_finished_until_it_is_finished_again(tmp_path: Path) -> None:
    run(tmp_path)
    with Store.open(tmp_path, SETTINGS) as store:
        store.write_shard("passages", SHARDS, rows(SHARDS))
        with pytest.raises(BadInput, match="not finished"):
            Store.load(tmp_path)
        store.finish({})
    assert len(list(Store.load(tmp_path).read("passages", Passage))) == 2 * (SHARDS + 1)


def test_workers_write_shards_and_the_owner_records_them(tmp_path: Path) -> None:
    with Store.open(tmp_path, SETTINGS) as store:
        with multiprocessing.get_context("fork").Pool(2) as pool:
            infos = pool.starmap(put, [(tmp_path, "passages", index, rows(index)) for index in range(SHARDS)])
        assert store.done("passages") == {}
        for info in infos:
            store.commit(info)
        store.finish({})
    assert list(Store.load(tmp_path).read("passages", Passage)) == everything()


def test_a_shard_that_is_gone_before_it_is_recorded_is_not_recorded(tmp_path: Path) -> None:
    with Store.open(tmp_path, SETTINGS) as store:
        info = put(tmp_path, "passages", 0, rows(0))
        (tmp_path / info.name).unlink()
        with pytest.raises(Corrupt, match="not what its writer reported"):
            store.commit(info)


@pytest.mark.case("F5")
def test_a_flipped_bit_anywhere_names_shard_and_block_and_the_shard_is_made_again(tmp_path: Path) -> None:
    big = [Passage(f"d#{n}", "d", n, os.urandom(40).hex()) for n in range(4000)]
    with Store.open(tmp_path, SETTINGS) as store:
        store.write_shard("passages", 0, rows(0))
        info = store.write_shard("passages", 1, big)
        store.finish({})
    path = tmp_path / info.name
    data = path.read_bytes()
    assert len(info.blocks) > 2
    for at in range(0, len(data), 97 * 41):
        damaged = bytearray(data)
        damaged[at] ^= 1 << at % 8
        path.write_bytes(damaged)
        with pytest.raises(Corrupt, match=rf"00001\.parquet .* block at byte {at // BLOCK * BLOCK}:"):
            Store.load(tmp_path).read("passages", Passage)  # refused before a row is asked for
        assert not path.exists()
        assert path.with_name(path.name + ".corrupt").read_bytes() == damaged
        path.write_bytes(data)
    path.unlink()
    with pytest.raises(Corrupt, match=r"00001\.parquet is missing"):
        Store.load(tmp_path)
    with pytest.raises(Corrupt, match=r"00001\.parquet is missing"):
        Store.load(tmp_path, partial=True).read("passages", Passage)
    with Store.open(tmp_path, SETTINGS) as store:
        assert store.manifest is None
        assert list(store.done("passages")) == [0]
        with pytest.raises(Corrupt, match="missing"):
            store.finish({})
        store.write_shard("passages", 1, big)
        store.finish({})
    assert list(Store.load(tmp_path).read("passages", Passage)) == rows(0) + big


@pytest.mark.case("F5")
def test_every_97th_byte_of_a_small_shard_matters(tmp_path: Path) -> None:
    run(tmp_path)
    path = tmp_path / "passages" / "00001.parquet"
    data = path.read_bytes()
    for at in range(0, len(data), 97):
        path.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        with pytest.raises(Corrupt, match="block at byte 0"):
            Store.load(tmp_path).read("passages", Passage)
        path.write_bytes(data)
    assert list(Store.load(tmp_path).read("passages", Passage)) == everything()


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"\0"])
def test_a_shard_cut_short_or_grown_is_not_done(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    run(tmp_path)
    path = tmp_path / "passages" / "00001.parquet"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(Corrupt, match="00001"):
        Store.load(tmp_path)
    run(tmp_path)
    assert list(Store.load(tmp_path).read("passages", Passage)) == everything()


@pytest.mark.parametrize("name", ["settings.json", "manifest.json", "journal"])
def test_a_flipped_bit_in_the_folders_own_files_is_never_read_over(tmp_path: Path, name: str) -> None:
    run(tmp_path)
    path = tmp_path / name
    data = path.read_bytes()
    for at in range(0, len(data), 7):
        path.write_bytes(data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :])
        with pytest.raises(Corrupt):
            Store.load(tmp_path)
        path.write_bytes(data)


def test_a_damaged_manifest_is_written_again_and_damaged_settings_are_refused(tmp_path: Path) -> None:
    run(tmp_path)
    whole = (tmp_path / "manifest.json").read_bytes()
    (tmp_path / "manifest.json").write_bytes(whole[:-20])
    run(tmp_path)
    assert (tmp_path / "manifest.json").read_bytes() == whole
    (tmp_path / "settings.json").write_bytes(b"{}")
    with pytest.raises(Corrupt, match=r"settings\.json"):
        run(tmp_path)


def test_what_a_damaged_journal_lost_is_made_again(tmp_path: Path) -> None:
    run(tmp_path)
    data = (tmp_path / "journal").read_bytes()
    (tmp_path / "journal").write_bytes(data[: len(data) // 2 + 3])
    run(tmp_path)
    store = Store.load(tmp_path)
    assert list(store.read("passages", Passage)) == everything()
    assert store.manifest is not None
    assert store.manifest["journal_bytes_dropped"] > 0


@pytest.mark.case("F7")
def test_a_kill_at_any_point_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    killed = 0
    for number in range(1, 200):
        folder = tmp_path / str(number)

        def work(number: int = number, folder: Path = folder) -> None:
            on_call(number, lambda: os.kill(os.getpid(), signal.SIGKILL), lambda name, call: setattr(os, name, call))
            run(folder)

        status = in_child(work)
        if status == 0:
            break
        assert status == -signal.SIGKILL
        killed += 1
        run(folder)
        assert list(Store.load(folder).read("passages", Passage)) == everything()
        assert files(folder) == WHOLE
    assert killed > 20


@pytest.mark.case("F9")
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EINTR])
def test_the_nth_failure_is_one_of_our_errors_and_a_rerun_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    failed = 0
    for number in range(1, 200):
        folder = tmp_path / str(number)

        def fail() -> None:
            raise OSError(code, os.strerror(code))

        with monkeypatch.context() as patch:
            on_call(number, fail, lambda name, call, patch=patch: patch.setattr(os, name, call))
            try:
                run(folder)
                break
            except StorageUnavailable as refused:
                said = str(refused)
        failed += 1
        assert os.strerror(code) in said
        assert "\n" not in said
        assert not [name for name in files(folder) if name.endswith(".tmp")]
        run(folder)
        assert list(Store.load(folder).read("passages", Passage)) == everything()
        assert files(folder) == WHOLE
    assert failed > 20


@pytest.mark.case("F10")
def test_a_second_writer_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
    with Store.open(tmp_path, SETTINGS):
        with pytest.raises(InProgress, match=f"process {os.getpid()}"):
            Store.open(tmp_path, SETTINGS)

        def other() -> None:
            with pytest.raises(InProgress):
                Store.open(tmp_path, SETTINGS)

        assert in_child(other) == 0
    Store.open(tmp_path, SETTINGS).close()


@pytest.mark.case("F10")
def test_the_lock_of_a_killed_owner_is_free_even_while_its_workers_live(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from toolwise.teach.store import Store\n"
        "store = Store.open(sys.argv[1], {})\n"
        "alive, say = os.pipe()\n"
        "if os.fork() == 0: os.write(say, b'.'); sys.stdin.read(); os._exit(0)\n"
        "os.read(alive, 1)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdin=subprocess.PIPE) as owner:
        # The worker holds the other end of the pipe open until it is closed here.
        status = os.waitid(os.P_PID, owner.pid, os.WEXITED | os.WNOWAIT)
        assert status is not None
        assert status.si_status == signal.SIGKILL
        Store.open(tmp_path, {}).close()


@pytest.mark.case("F11")
@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({**SETTINGS, "seed": 1}, r"seed \(0 -> 1\)"),
        ({**SETTINGS, "model": "m2"}, "model"),
        ({**SETTINGS, "tools": {"Calculator": {"tau_f": 0.5, "version": "b"}}}, r"tools\.Calculator\.version"),
        ({**SETTINGS, "tools": {"Calculator": {"tau_f": 1.0, "version": "a"}}}, r"tools\.Calculator\.tau_f"),
        ({**SETTINGS, "seed": False}, r"seed \(0 -> false\)"),
        ({**SETTINGS, "new": None}, r"new \(unset -> null\)"),
        (
            {**SETTINGS, "tools": {"Calculator": SETTINGS["tools"]["Calculator"], "A": "x" * 99}},
            r'tools\.A \(unset -> "x{23}…\)',
        ),
        ({**SETTINGS, "seed": 1, "a": 1, "b": 1, "c": 1}, r"a .* b .* c .* and 1 more"),
        ({}, r'model \("m1" -> unset\), seed .*, tools \(given -> unset\)'),
    ],
)
def test_other_settings_are_refused_by_name_and_change_nothing(tmp_path: Path, settings: Any, named: str) -> None:
    run(tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in WHOLE - {"lock"}}
    with pytest.raises(SettingsDiffer, match=named):
        Store.open(tmp_path, settings)
    assert {name: (tmp_path / name).read_bytes() for name in WHOLE - {"lock"}} == before
    Store.open(tmp_path, {**SETTINGS}).close()


def test_settings_that_are_no_json_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        Store.open(tmp_path, {"path": tmp_path})


@pytest.mark.case("F14")
@pytest.mark.parametrize("name", ["with space", "new\nline", "наука 日本 🧮", "-dash", "a" * 200])
def test_any_folder_name_works(tmp_path: Path, name: str) -> None:
    run(tmp_path / name)
    assert list(Store.load(tmp_path / name).read("passages", Passage)) == everything()
    assert os.listdir(tmp_path) == [name]


@pytest.mark.case("F14")
def test_a_linked_folder_works_and_nothing_is_written_beside_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    run(tmp_path / "link")
    assert files(tmp_path / "real") == WHOLE
    assert sorted(os.listdir(tmp_path)) == ["link", "real"]


@pytest.mark.case("F14")
@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_folder_that_may_not_be_written_is_bad_input_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "open", refuse)  # root may write everywhere, so the system's refusal is played
    with pytest.raises(BadInput, match="choose another path") as refused:
        Store.open(tmp_path / "new\nrun", SETTINGS)
    assert "\n" not in str(refused.value)


def test_a_file_where_the_folder_should_be_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    with pytest.raises(BadInput):
        Store.open(tmp_path / "run", SETTINGS)
    assert (tmp_path / "run").read_text() == "mine"


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    (tmp_path / ".draft.tmp").write_text("mine too")
    with pytest.raises(BadInput, match=r"thesis\.txt"):
        Store.open(tmp_path, SETTINGS)
    assert files(tmp_path) == {"thesis.txt", ".draft.tmp"}
