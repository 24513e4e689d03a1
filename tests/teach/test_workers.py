"""Processes that work for one owner: they end with it, however it ends, and say nothing of their own."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from toolwise.core.errors import BadInput, LimitExceeded
from toolwise.teach.workers import spread

# Of two workers one never finishes and one has nothing left to do. Whoever holds the output open is alive, so its end
# is the end of them all.
OWNER = """
import os, sys, threading
from toolwise.teach.workers import spread

def work(item):
    if item == "endless":
        os.write(1, b"working\\n")  # in one piece: two processes write here
        threading.Event().wait()
    return item

if __name__ == "__main__":
    try:
        for item in spread(work, ["endless", "quick"], 2):
            os.write(1, f"{item}\\n".encode())
    except KeyboardInterrupt:
        sys.exit(130)
"""


def double(item: int) -> int:
    return 2 * item


def hears_interrupts(item: int) -> bool:
    return signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def refuse(item: int) -> int:
    raise BadInput(f"{item} cannot be used")


def die(item: int) -> int:
    os._exit(7)


@contextmanager
def at_work(tmp_path) -> Iterator[subprocess.Popen]:
    """An owner in a session of its own, once one of its workers works and the other one waits."""
    script = tmp_path / "owner.py"
    script.write_text(OWNER)
    owner = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert owner.stdout is not None
        assert sorted(owner.stdout.readline() for _ in range(2)) == ["quick\n", "working\n"]
        yield owner
    finally:
        with suppress(ProcessLookupError):
            os.killpg(owner.pid, signal.SIGKILL)
        owner.communicate()


def test_every_item_gives_its_result():
    assert sorted(spread(double, range(5), 2)) == [0, 2, 4, 6, 8]


def test_only_the_owner_hears_interrupts():
    assert list(spread(hears_interrupts, [1, 2, 3], 2)) == [False, False, False]
    assert hears_interrupts(0)


def test_what_the_work_raises_is_raised():
    with pytest.raises(BadInput, match="cannot be used"):
        list(spread(refuse, [1, 2, 3], 2))


def test_a_worker_that_dies_is_an_error_that_says_how_to_go_on():
    with pytest.raises(LimitExceeded, match="run the same command again"):
        list(spread(die, [1, 2], 2))


@pytest.mark.parametrize("whom", ["the owner", "everybody, as a terminal does"])
def test_an_interrupt_ends_all_at_once_and_only_the_owner_speaks(whom, tmp_path):
    with at_work(tmp_path) as owner:
        (os.kill if whom == "the owner" else os.killpg)(owner.pid, signal.SIGINT)
        out, err = owner.communicate(timeout=60)
    assert (owner.returncode, out, err) == (130, "", "")


@pytest.mark.parametrize("with_", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_when_their_owner_was_killed(with_, tmp_path):
    with at_work(tmp_path) as owner:
        owner.send_signal(with_)
        assert owner.communicate(timeout=60)[0] == "", "the output ended, so nobody holds it open any more"
        assert owner.returncode == -with_
