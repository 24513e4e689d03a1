"""The engines on which a state can lie: what must survive a crash is tried on each of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import Server

from toolwise.gate.state import State, open_state


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One PostgreSQL server for all tests of this process."""
    if "CI" not in os.environ:
        pytest.importorskip("psycopg")
    server = Server()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty state, for as many processes as want to open it."""
    if request.param == "sqlite":
        return str(tmp_path / "state.db")
    server: Server = request.getfixturevalue("server")
    return server.address()


@pytest.fixture
def state(where: str) -> Iterator[State]:
    """An empty state."""
    opened = open_state(where)
    yield opened
    opened.close()
