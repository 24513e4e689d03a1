"""Another process swaps a folder and a file for links to the outside, as fast as it can, while a tool reads and writes.

`TOOLWISE_RACE_TRIES=200000` tries harder than the quick suite does.
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolwise.core.errors import ToolFailed, UnsafeTarget
from toolwise.tools.confined.paths import ConfinedFolder

TRIES = int(os.environ.get("TOOLWISE_RACE_TRIES", "5000"))
INSIDE, OUTSIDE = b"inside", b"a secret outside"
PATHS = ("folder/file", "file")
SWAP = """
import ctypes, os, sys
libc, here, exchange, parent = ctypes.CDLL(None, use_errno=True), -100, 2, os.getppid()
def swap(a, b):
    if libc.renameat2(here, a, here, b, exchange):
        raise OSError(ctypes.get_errno(), "renameat2")
pairs = [(name.encode(), name.encode() + b"-link") for name in sys.argv[1:]]
swap(*pairs[0])
print("swapping", flush=True)
while os.getppid() == parent:
    for pair in pairs * 100:
        swap(*pair)
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="renameat2 swaps two names at once, on Linux alone")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """`folder/file` and `file` say that they are inside; beside each is a link to its like outside."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for place, text in ((root, INSIDE), (outside, OUTSIDE)):
        (place / "folder").mkdir(parents=True)
        for path in PATHS:
            (place / path).write_bytes(text)
    for name in ("folder", "file"):
        (root / f"{name}-link").symlink_to(outside / name)
    return root


@pytest.fixture
def swapping(root: Path) -> Iterator[None]:
    """While a test runs, each name and its link take turns at being the other."""
    names = [str(root / name) for name in ("folder", "file")]
    with subprocess.Popen([sys.executable, "-c", SWAP, *names], stdout=subprocess.PIPE, text=True) as swapper:
        try:
            assert swapper.stdout is not None
            if swapper.stdout.readline() != "swapping\n":
                pytest.skip("this file system cannot swap two names at once")
            yield
            assert swapper.poll() is None, "the swapping ended before the test did"
        finally:
            swapper.kill()


def check_then_open(root: Path, path: str) -> bytes:
    """What many tools do: resolve the path, see that it is below the root, open it."""
    resolved = os.path.realpath(root / path)
    if not resolved.startswith(f"{root}/"):
        raise UnsafeTarget
    with open(resolved, "rb") as file:
        return file.read()


@pytest.mark.case("I3")
@pytest.mark.usefixtures("swapping")
def test_a_swap_never_wins_against_descriptors_and_does_against_a_check(root: Path) -> None:
    folder, confined, checked = ConfinedFolder(root), Counter[bytes](), Counter[bytes]()
    for number in range(40 * TRIES):  # far fewer, but on a machine so busy that the careless tool is lucky for long
        if number >= TRIES and checked[OUTSIDE]:
            break
        path = PATHS[number % len(PATHS)]
        try:
            confined[folder.read(path)] += 1
        except UnsafeTarget:
            confined[b"refused"] += 1
        try:
            checked[check_then_open(root, path)] += 1
        except (UnsafeTarget, OSError):
            checked[b"refused"] += 1
    print(f"descriptors {dict(confined)}; check, then open {dict(checked)}")
    assert confined.keys() == {INSIDE, b"refused"}, "both sides of the swap must have been met, and nothing else"
    assert checked[OUTSIDE] > 0, "where a careless tool never fails, a careful one proves nothing"


@pytest.mark.case("I3")
@pytest.mark.usefixtures("swapping")
def test_a_swap_never_leads_a_write_outside(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda file: None)  # more tries in the same time
    folder, outcomes = ConfinedFolder(root), Counter[str]()
    for number in range(TRIES // 10):
        try:
            folder.write(PATHS[number % len(PATHS)], INSIDE)
            folder.write(f"folder/new-{number}", b"")
            outcomes["written"] += 1
        except (UnsafeTarget, ToolFailed) as error:
            outcomes[error.code] += 1
    outside = {str(file.relative_to(root.parent / "outside")) for file in (root.parent / "outside").rglob("*")}
    assert outside == {"folder", *PATHS}
    assert all((root.parent / "outside" / path).read_bytes() == OUTSIDE for path in PATHS)
    assert outcomes["written"]
    assert outcomes["unsafe_target"]
