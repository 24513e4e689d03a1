"""Rates that several machines share are counted by a real Redis server: one of our own, on a socket in a folder."""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from gate_bench import ANN, Bench

from toolwise.core.types import Call, Principal
from toolwise.gate.budget import Budgets, Cap
from toolwise.gate.rates import Rates


@pytest.fixture
def storage() -> Iterator[str]:
    program = shutil.which("redis-server")
    if program is None:
        missing = "no Redis server is installed (Debian: apt-get install redis-server)"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    with TemporaryDirectory(dir="/tmp") as folder:  # a socket's path must be short
        socket = Path(folder) / "s"
        options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", folder]
        server = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
        try:
            for _ in range(500):
                if socket.exists():
                    break
                threading.Event().wait(0.01)
            yield f"redis+unix://{socket}"
        finally:
            server.kill()
            server.wait(30)


def test_gates_that_share_a_server_share_its_counts(storage: str) -> None:
    gates = [Bench(settings={"rates": Rates({"probe": "5/hour"}, storage=storage)}) for _ in range(2)]
    codes = [gates[number % 2].call({}).code for number in range(8)]
    assert codes == ["ok"] * 5 + ["limit"] * 3
    assert gates[0].call({}, context=replace(ANN, principal=Principal("eve"))).ok


def test_calls_at_once_never_pass_a_rate_together(storage: str) -> None:
    settings = {"rates": Rates({"probe": "10/hour"}, storage=storage), "budgets": Budgets(Cap())}
    bench = Bench(settings=settings)
    codes: list[str] = []
    threads = [
        threading.Thread(target=lambda n=n: codes.append(bench.gate.execute(Call(f"c{n}", "probe", {}), ANN).code))
        for n in range(60)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(codes) == ["limit"] * 50 + ["ok"] * 10
