"""The standard streams of a process that is an MCP server: one message a line, and nothing else on either of them.

Covered: whatever tools print, and their children, goes to standard error, and nobody but this reads the input; lines
are bounded and read strictly, and one that is no message is answered as such. One that is too long ends it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, BinaryIO

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types
from mcp.shared.message import SessionMessage

from toolwise.core.errors import ModelFault
from toolwise.core.limits import Limits
from toolwise.tools.mcp.program import read_message


def claimed() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output, which from now on are nothing and standard error to everybody else.

    To be called before anything is loaded that may print.
    """
    sys.stdout.flush()
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return incoming, outgoing


@asynccontextmanager
async def standard_streams(incoming: BinaryIO, outgoing: BinaryIO, limits: Limits) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of a session with whoever started this process, over what was `claimed`."""
    lock = threading.Lock()
    given, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, taken = anyio.create_memory_object_stream[SessionMessage](0)

    def put(message: Any) -> None:
        line = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        with lock:
            outgoing.write(line)
            outgoing.flush()

    async def hear() -> None:
        async with given:
            while True:
                line = await anyio.to_thread.run_sync(incoming.readline, limits.mcp_bytes + 1, abandon_on_cancel=True)
                if not line.endswith(b"\n"):
                    return
                if line.isspace():
                    continue
                try:
                    message = read_message(line, limits)
                except ModelFault as fault:
                    error = mcp_types.ErrorData(code=mcp_types.PARSE_ERROR, message=f"This is no message: {fault}")
                    await anyio.to_thread.run_sync(put, mcp_types.JSONRPCError(jsonrpc="2.0", id=None, error=error))
                    continue
                await given.send(SessionMessage(message))

    async def tell() -> None:
        async with taken:
            async for said in taken:
                await anyio.to_thread.run_sync(put, said.message)

    async with anyio.create_task_group() as group:
        group.start_soon(hear)
        group.start_soon(tell)
        yield read, write
        group.cancel_scope.cancel()
