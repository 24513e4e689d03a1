"""A server that is a program: started from a list of arguments, spoken to over its standard input and output.

Covered: what is read before a line ends is bounded, and so is everything else: standard error, of which the end is
kept, the time until it has gone after its input was closed. Whatever is no JSON of one message a line ends this
server's session. It has the environment that the operator chose, and PATH, HOME, LANG and TMPDIR.

Not covered: what the program does (it runs as this user, with this user's files); its children that moved into a group
of their own; that it ends when this process is killed, beyond the end of its input.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolwise.core import jsonio
from toolwise.core.errors import BadInput, ModelFault
from toolwise.core.limits import Limits
from toolwise.tools.mcp.config import ServerConfig
from toolwise.tools.mcp.life import Life

_INHERITED = ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT")
_KEPT = 2_048  # bytes of standard error, for the operator
_TICK = 0.02


def environment_of(config: ServerConfig, ours: Mapping[str, str]) -> dict[str, str]:
    """All that the program sees of an environment. Raises BadInput for a variable that is not set."""
    chosen = {name: ours[name] for name in _INHERITED if name in ours}
    for name, value in config.environment.items():
        if value.startswith("$"):
            if value[1:] not in ours:
                raise BadInput(f"the variable {value[1:]} is not set: export it")
            value = ours[value[1:]]
        chosen[name] = value
    return chosen


def argv_of(config: ServerConfig, path: str) -> list[str]:
    """The program's absolute path, and its arguments. Raises BadInput where there is none."""
    program, *args = config.argv
    found = shutil.which(program, path=path)
    if found is None or not Path(found).is_absolute():
        raise BadInput(f"there is no program {jsonio.quote(program)} here")
    return [found, *args]


@asynccontextmanager
async def program(config: ServerConfig, life: Life, limits: Limits) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of a session with a new process of this server. Raises BadInput, OSError."""
    import anyio
    from mcp.shared.message import SessionMessage

    environment = environment_of(config, os.environ)
    process = await asyncio.create_subprocess_exec(
        *argv_of(config, environment.get("PATH", "")),
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        limit=limits.mcp_bytes,
    )
    given, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, taken = anyio.create_memory_object_stream[SessionMessage](0)
    work = [
        asyncio.ensure_future(_hear(process, given, life, limits)),
        asyncio.ensure_future(_tell(process, taken, life)),
        asyncio.ensure_future(_keep_last_words(process, life)),
    ]
    try:
        yield read, write
    finally:
        with suppress(asyncio.CancelledError):
            await _end(process, limits.mcp_close_seconds)
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        for stream in (given, read, write, taken):
            stream.close()
        getattr(process, "_transport").close()  # noqa: B009  a survivor may hold its pipes, and nothing public lets go


async def _hear(process: asyncio.subprocess.Process, given: Any, life: Life, limits: Limits) -> None:
    """Hand on what the server says, a message a line, until it says something else."""
    import anyio
    from mcp.shared.message import SessionMessage

    assert process.stdout is not None
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError), given:
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:
                life.end(f"wrote a line of more than {limits.mcp_bytes} bytes")
                return
            if not line.endswith(b"\n"):
                life.end("ended in the middle of a message" if line else "ended")
                return
            if line.isspace():
                continue
            try:
                message = read_message(line, limits)
            except ModelFault:
                life.end("wrote something to its standard output that is no message")
                return
            await given.send(SessionMessage(message))


def read_message(line: bytes, limits: Limits) -> Any:
    """The message of JSON-RPC that a line says, read strictly. Raises ModelFault."""
    from mcp_types import jsonrpc_message_adapter

    bounds = replace(limits, json_depth=limits.openapi_depth, string_bytes=limits.mcp_bytes)
    value = jsonio.loads(line.strip(), bounds)
    try:
        return jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValueError:
        raise ModelFault("no message of JSON-RPC") from None


async def _tell(process: asyncio.subprocess.Process, taken: Any, life: Life) -> None:
    assert process.stdin is not None
    try:
        async for said in taken:
            line = said.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()
    except OSError:
        life.end("does not read any more")


async def _keep_last_words(process: asyncio.subprocess.Process, life: Life) -> None:
    assert process.stderr is not None
    while piece := await process.stderr.read(_KEPT):
        life.said = (life.said + piece)[-_KEPT:]


async def _end(process: asyncio.subprocess.Process, seconds: float) -> None:
    """Close its input, and give it time to go by itself; then it is killed with its whole group."""
    if process.stdin is not None:
        process.stdin.close()
    for last in (signal.SIGTERM, signal.SIGKILL, None):
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while process.returncode is None:  # `wait` would wait for its pipes as well, which a child may hold
                    await asyncio.sleep(_TICK)
        if process.returncode is not None:
            last = signal.SIGKILL  # those that it left behind
        if last is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, last)
        if process.returncode is not None:
            return
