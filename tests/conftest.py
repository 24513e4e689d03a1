"""Shared by every test: quiet and deterministic libraries, no model hub, and the pulled model."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# Before torch, tokenizers and the hub client are imported: they read these once.
os.environ.setdefault("OMP_NUM_THREADS", "1")  # two threads collapse on a busy machine
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["HF_HUB_OFFLINE"] = "1"

# A run that was started in the background ignores interrupts, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no failure; on CI the same examples every time.
settings.register_profile("toolwise", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("toolwise")


@pytest.fixture
def toolwise(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """Runs a command line in this process."""
    from command_line import runner

    return runner(monkeypatch, capsys)


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The folder of the pulled SmolLM2-135M; the test is skipped where nobody pulled it."""
    from toolwise.core.errors import ModelUnavailable
    from toolwise.models import hub

    try:
        return Path(hub.resolve("smollm2-135m"))
    except ModelUnavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def embedded_model(smollm2: Path):  # type: ignore[no-untyped-def]
    """SmolLM2-135M, loaded once: what is claimed about models is shown on a real one."""
    from toolwise.models.load import load_model

    return load_model(str(smollm2), threads=1)
