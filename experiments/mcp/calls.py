"""The time of one call through the gate: of a local tool, and of the same one behind an MCP server of ours.

    python experiments/mcp/calls.py

Prints the median and the 90th percentile of 300 calls each, over stdio and HTTP on the loopback, in both revisions.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from toolwise import Call, CallContext, CedarPolicy, Gate, Principal, Registry, Tool, mcp_tools, open_state
from toolwise.tools import CALCULATOR

CALLS = 300
WHO = Principal("ann")
PERMIT = CedarPolicy.from_text("permit (principal, action, resource);")
SERVE = [sys.executable, "-m", "toolwise", "mcp", "--tools", "Calculator"]


def measured(tool: Tool) -> str:
    took = []
    with Gate(Registry([tool]), PERMIT, open_state(":memory:")) as gate:
        for number in range(CALLS):
            call, context = Call(str(number), tool.name, {"expression": f"{number} * 3"}), CallContext(WHO, f"{number}")
            before = time.perf_counter()
            assert gate.execute(call, context).ok
            took.append(1_000 * (time.perf_counter() - before))
    took.sort()
    return f"{took[CALLS // 2]:6.1f} ms, 90 %: {took[9 * CALLS // 10]:6.1f} ms"


@contextmanager
def over_http(state: str) -> Iterator[dict[str, Any]]:
    argv = [*SERVE, "--state", state, "--port", "0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as program:  # noqa: S603 - our own command
        assert program.stdout
        try:
            yield {"url": program.stdout.readline().split()[0]}
        finally:
            program.terminate()


def main(folder: Path) -> Iterator[str]:
    yield f"{'local':24}{measured(CALCULATOR)}"
    for revision in ("2025-11-25", "2026-07-28"):
        stdio = {"command": SERVE[0], "args": [*SERVE[1:], "--state", str(folder / f"{revision}.db")]}
        yield f"{f'stdio, {revision}':24}{of_server(stdio, revision)}"
        with over_http(str(folder / f"{revision}-http.db")) as http:
            yield f"{f'HTTP, {revision}':24}{of_server(http, revision)}"


def of_server(said: dict[str, Any], revision: str) -> str:
    found = mcp_tools({"servers": {"s": said | {"revision": revision, "effects": {"Calculator": "read"}}}})
    try:
        return measured(found.tools[0])
    finally:
        found.close()


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        for line in main(Path(folder)):
            print(line)  # noqa: T201
