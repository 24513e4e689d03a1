"""Files below one folder: what a path may say, what may stand there, and what a reader sees while it is written."""

import errno
import os
import socket
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from toolwise.core.errors import BadInput, LimitExceeded, StorageUnavailable, ToolFailed, UnsafeTarget
from toolwise.core.limits import LIMITS
from toolwise.tools.confined import paths
from toolwise.tools.confined.paths import ConfinedFolder

SECRET = b"a secret outside"
SMALL = replace(LIMITS, file_bytes=64, folder_names=8)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with `a/b/file.txt`, beside a file and a folder that nobody may reach."""
    root = tmp_path / "sandbox"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "file.txt").write_bytes(b"inside")
    (tmp_path / "sandbox-evil").mkdir()
    (tmp_path / "sandbox-evil" / "x").write_bytes(SECRET)
    (tmp_path / "secret").write_bytes(SECRET)
    return root


def refuses_everything(folder: ConfinedFolder, path: str) -> None:
    """Neither reading nor writing nor listing, and no word about where the outside is."""
    for attempt in (lambda: folder.read(path), lambda: folder.write(path, b"x"), lambda: folder.names(path)):
        with pytest.raises(UnsafeTarget) as caught:
            attempt()
        assert len(str(caught.value)) < 120
        assert not any(word in str(caught.value) for word in ("secret", "sandbox", "evil", "proc", "/tmp"))


def everything_below(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


# What a path may say


@pytest.mark.case("I1")
@pytest.mark.parametrize(
    "path",
    [
        *("../../etc/passwd", "/etc/passwd", "a/../../secret", "../sandbox-evil/x", "..\\..\\x", "C:\\x", "\\\\srv\\s"),
        *("~/.ssh/id_rsa", "~root/x", "", ".", "..", "./a", "a/.", "a//b", "a/", "/", "C:x", "c:/x", "a/..", "a\\b"),
        *("a\0b", "a/b/file.txt\0.png", "\ud800", "a/\udcff", "x" * 1_025, "a/" * 600 + "x", "x" * 300),
    ],
)
def test_a_path_that_could_leave_the_root_is_refused(root: Path, path: str) -> None:
    before = everything_below(root.parent)
    refuses_everything(ConfinedFolder(root), path)
    assert everything_below(root.parent) == before


@pytest.mark.case("I1")
def test_the_folder_beside_the_root_whose_name_begins_alike_is_not_below_it(root: Path) -> None:
    refuses_everything(ConfinedFolder(root), str(root.parent / "sandbox-evil" / "x"))


@pytest.mark.case("I1")
@pytest.mark.parametrize(
    "name", ["%2e%2e", "%2E%2E%2F", "．．", "…", "...", "ab:c", "file~", " ", "new\nline", "ü", "$HOME"]
)
def test_a_name_means_itself_and_nothing_is_decoded_or_expanded(root: Path, name: str) -> None:
    (root / name).mkdir()
    folder = ConfinedFolder(root)
    folder.write(f"{name}/x", b"itself")
    assert (root / name / "x").read_bytes() == folder.read(f"{name}/x") == b"itself"
    assert name in folder.names()


def test_reading_writing_and_listing(root: Path) -> None:
    folder = ConfinedFolder(root)
    assert folder.read("a/b/file.txt") == b"inside"
    folder.write("a/new.txt", b"made")
    folder.write("a/b/file.txt", b"")
    assert (folder.read("a/new.txt"), folder.read("a/b/file.txt")) == (b"made", b"")
    assert (folder.names(), folder.names("a"), folder.names("a/b")) == (("a",), ("b", "new.txt"), ("file.txt",))


def test_what_is_not_there_is_the_models_mistake_and_not_an_attack(root: Path) -> None:
    folder = ConfinedFolder(root)
    for attempt in (
        lambda: folder.read("a/none"),
        lambda: folder.read("none/none"),
        lambda: folder.write("none/x", b""),
        lambda: folder.names("none"),
    ):
        with pytest.raises(ToolFailed, match="list the folder"):
            attempt()


def test_the_root_is_the_operators_word(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be a link and have an odd name; a later change of folder does not move it."""
    (root.parent / "a link\nä").symlink_to(root)
    assert ConfinedFolder(root.parent / "a link\nä").read("a/b/file.txt") == b"inside"
    monkeypatch.chdir(root.parent)
    folder = ConfinedFolder("sandbox")
    monkeypatch.chdir("/")
    assert folder.read("a/b/file.txt") == b"inside"


def test_a_root_that_is_no_folder_and_a_system_without_descriptors_are_said_at_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for no_root in (root / "none", root / "a" / "b" / "file.txt"):
        with pytest.raises(BadInput, match="make it first"):
            ConfinedFolder(no_root)
    monkeypatch.setattr(paths, "_SUPPORTED", False)
    with pytest.raises(BadInput, match="Linux or macOS"):
        ConfinedFolder(root)


def test_a_name_that_is_no_text_is_listed_and_cannot_be_opened(root: Path) -> None:
    try:
        os.close(os.open(os.fsencode(root) + b"/\xff", os.O_CREAT))
    except OSError:
        pytest.skip("this file system takes only text as names")
    folder = ConfinedFolder(root)
    assert folder.names() == ("\\xff", "a")
    refuses_everything(folder, "\\xff")


# What may stand there


@pytest.mark.case("I2")
def test_no_link_is_followed_neither_at_the_end_nor_on_the_way(root: Path) -> None:
    (root / "file").symlink_to("../secret")
    (root / "folder").symlink_to("../sandbox-evil")
    (root / "top").symlink_to("/")
    (root / "here").symlink_to("a")
    (root / "self").symlink_to("self")
    (root / "dangling").symlink_to("../not-yet")
    (root / "environment").symlink_to("/proc/self/environ")
    folder, before = ConfinedFolder(root), everything_below(root.parent)
    for path in ("file", "folder", "folder/x", "top/etc/passwd", "here/b/file.txt", "self", "dangling", "environment"):
        refuses_everything(folder, path)
    assert everything_below(root.parent) == before
    assert not (root.parent / "not-yet").exists()
    assert (root / "file").is_symlink()
    assert "file" in folder.names()


@pytest.mark.case("I4")
def test_only_a_regular_file_is_opened_and_nothing_is_waited_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)  # the address of a socket may not be long
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for path in ("pipe", "socket"):
            for attempt in (ConfinedFolder(root).read, lambda path: ConfinedFolder(root).write(path, b"")):
                with pytest.raises(UnsafeTarget):
                    attempt(path)
    assert stat.S_ISFIFO((root / "pipe").stat().st_mode)
    for attempt in (ConfinedFolder(root).read, lambda path: ConfinedFolder(root).write(path, b"")):
        with pytest.raises(UnsafeTarget):
            attempt("a")
    with pytest.raises(UnsafeTarget):
        ConfinedFolder(root).names("a/b/file.txt")


@pytest.mark.case("I4")
def test_a_device_is_no_file() -> None:
    devices = ConfinedFolder("/dev")
    for path in ("zero", "null"):
        for attempt in (devices.read, lambda path: devices.write(path, b"")):
            with pytest.raises(UnsafeTarget):
                attempt(path)


@pytest.mark.case("I4")
def test_a_file_with_a_second_name_is_refused(root: Path) -> None:
    os.link(root.parent / "secret", root / "hard")
    folder = ConfinedFolder(root)
    for attempt in (lambda: folder.read("hard"), lambda: folder.write("hard", b"x")):
        with pytest.raises(UnsafeTarget, match="another name"):
            attempt()
    assert (root.parent / "secret").read_bytes() == SECRET


@pytest.mark.case("I4")
def test_a_file_is_bounded_before_it_is_read_and_a_listing_too(root: Path) -> None:
    with (root / "sparse").open("wb") as file:
        file.truncate(10 * 1024**3)
    with pytest.raises(LimitExceeded, match="longer"):
        ConfinedFolder(root).read("sparse")
    folder = ConfinedFolder(root, SMALL)
    folder.write("most", b"x" * 64)
    assert folder.read("most") == b"x" * 64
    (root / "more").write_bytes(b"x" * 65)
    with pytest.raises(LimitExceeded, match="longer"):
        folder.read("more")
    with pytest.raises(LimitExceeded, match="write less"):
        folder.write("most", b"x" * 65)
    assert folder.read("most") == b"x" * 64
    for number in range(5):
        (root / f"f{number}").touch()
    with pytest.raises(LimitExceeded, match="8 names"):
        folder.names()
    (root / "f0").unlink()
    assert len(folder.names()) == 8


def test_a_file_that_grows_while_it_is_read_is_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "grown").write_bytes(b"x" * 65)
    look, known = os.fstat, os.stat(root / "a" / "b" / "file.txt")
    monkeypatch.setattr(os, "fstat", lambda file: known if look(file).st_size == 65 else look(file))
    with pytest.raises(LimitExceeded):
        ConfinedFolder(root, SMALL).read("grown")


# What a reader sees while it is written


def test_a_reader_sees_the_old_file_or_the_new_one_and_never_a_part(root: Path) -> None:
    folder = ConfinedFolder(root)
    old, new = b"o" * 300_000, b"n" * 200_000
    folder.write("page", old)
    done = threading.Event()

    def read() -> set[bytes]:
        seen = set()
        while not done.is_set():
            seen.add(folder.read("page"))
        return seen

    with ThreadPoolExecutor() as reading:
        reader = reading.submit(read)
        try:
            for number in range(40):
                folder.write("page", old if number % 2 else new)
        finally:
            done.set()
        seen = reader.result()
    assert seen
    assert seen <= {old, new}
    assert folder.names() == ("a", "page")


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ConfinedFolder(root)
    for step in ("fsync", "fchmod", "rename"):

        def full(*_: object, **__: object) -> None:
            raise OSError(errno.ENOSPC, "no space", "/a/path/outside")

        with monkeypatch.context() as failing:
            failing.setattr(os, step, full)
            with pytest.raises(StorageUnavailable) as caught:
                folder.write("a/b/file.txt", b"new")
        assert "outside" not in str(caught.value)
        assert everything_below(root) == {"a/b/file.txt": b"inside"}


def test_a_replaced_file_keeps_its_permissions(root: Path) -> None:
    (root / "a" / "b" / "file.txt").chmod(0o640)
    ConfinedFolder(root).write("a/b/file.txt", b"new")
    assert stat.S_IMODE((root / "a" / "b" / "file.txt").stat().st_mode) == 0o640


def test_no_descriptor_stays_open(root: Path) -> None:
    (root / "link").symlink_to("a")
    folder, before = ConfinedFolder(root), len(os.listdir("/dev/fd"))
    for path in ("a/b/file.txt", "link/b", "a/none", "a", "a/b/file.txt/x"):
        for attempt in (folder.read, folder.names, lambda path: folder.write(path, b"x")):
            try:
                attempt(path)
            except (UnsafeTarget, ToolFailed):
                continue
    assert len(os.listdir("/dev/fd")) == before
