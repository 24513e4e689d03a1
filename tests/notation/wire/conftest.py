"""What the tests of the official clients share: a door on the loopback, and both ways to answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from recording_api import RecordingApi, recording_api


@pytest.fixture(scope="module")
def api() -> Iterator[RecordingApi]:
    with recording_api() as found:
        yield found


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def streamed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)
