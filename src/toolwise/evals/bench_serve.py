"""What the server costs beside the model alone, and whether many clients at once get what each would get alone.

A server is started as its own process (`toolwise serve`) and asked over the loopback by streaming clients, each with a
prompt of its own. Before that every prompt is answered once with nobody else there: what the clients get later must be
the same text. Some clients hang up in the middle; their places must be free again. A stream is *lost* when it ended
without an end, *mixed* when its text is not the one that its prompt has.

Not covered: networks, TLS, and clients that are slower than this process.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import h11
import numpy as np
from rich.table import Table

from toolwise.core.chat import ChatModel, ChatRequest, Message, ReplyEnded, Role, StopReason, TextDelta
from toolwise.core.clock import SystemClock
from toolwise.core.errors import ModelUnavailable
from toolwise.notation.wire import openai_chat, sse

Say = Callable[[str], None]
_CLOCK = SystemClock()
_WORDS = ("a river", "the sea", "bread", "an old clock", "snow", "a bridge", "iron", "the moon")


@dataclass(frozen=True, slots=True)
class Plan:
    """`clients` stream for `seconds`, `tokens` a reply; every `hang_up`-th reply is left after its first pieces."""

    model: str
    clients: int
    seconds: float
    tokens: int
    hang_up: int = 10
    threads: int | None = None


@dataclass(slots=True)
class Found:
    """Times in seconds. `alone` are the prompts, one after the other: of the model in this process, of the server."""

    plan: Plan
    model_alone: list[float] = field(default_factory=list)
    server_alone: list[float] = field(default_factory=list)
    first_alone: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    pieces: int = 0
    seconds: float = 0.0
    replies: int = 0
    hung_up: int = 0
    lost: int = 0
    mixed: int = 0
    refused: int = 0
    left_over: float = -1.0
    memory: list[int] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "overhead": self.overhead}

    @property
    def overhead(self) -> float:
        """Seconds that a reply takes longer through the server than from the model itself, in the median."""
        return float(np.median(self.server_alone) - np.median(self.model_alone))


def bench_serve(plan: Plan, model: ChatModel, say: Say) -> Found:
    """`model` is the same that the server is started with, for asking it directly. Raises ModelUnavailable."""
    found = Found(plan)
    prompts = [_prompt(plan, number) for number in range(plan.clients)]
    say(f"the model alone, {len(prompts)} prompts")
    for prompt in prompts[: min(8, plan.clients)]:
        begun = _CLOCK.monotonic()
        for _ in model.reply(ChatRequest((Message(Role.USER, prompt),), max_tokens=plan.tokens, temperature=0.0)):
            pass
        found.model_alone.append(_CLOCK.monotonic() - begun)
    with _server(plan) as (port, process):
        asyncio.run(_measure(plan, found, prompts, port, process, say))
    return found


async def _measure(plan: Plan, found: Found, prompts: list[str], port: int, process: int, say: Say) -> None:
    say("the server, one client")
    texts = []
    for prompt in prompts:
        begun, first, said = _CLOCK.monotonic(), 0.0, ""
        async for delta in _stream(port, prompt, plan):
            first = first or _CLOCK.monotonic() - begun
            said += delta.text if isinstance(delta, TextDelta) else ""
        found.first_alone.append(first)
        found.server_alone.append(_CLOCK.monotonic() - begun)
        texts.append(said)
    del found.server_alone[len(found.model_alone) :]  # the same prompts
    say(f"{plan.clients} clients for {plan.seconds:g} seconds")
    begun = _CLOCK.monotonic()
    until = begun + plan.seconds
    watcher = asyncio.create_task(_watch(found, process))
    async with asyncio.TaskGroup() as clients:
        for number, (prompt, text) in enumerate(zip(prompts, texts, strict=True)):
            clients.create_task(_client(plan, found, port, number, prompt, text, until))
    found.seconds = _CLOCK.monotonic() - begun
    watcher.cancel()
    for _ in range(100):  # a place is given back when the model's thread is done with the client that hung up
        found.left_over = await _taken(port)
        if found.left_over == 0:
            break
        await asyncio.sleep(0.1)


async def _client(plan: Plan, found: Found, port: int, number: int, prompt: str, text: str, until: float) -> None:
    turn = number
    while _CLOCK.monotonic() < until:
        turn += 1
        leaves = turn % plan.hang_up == 0
        begun, first, said, ended = _CLOCK.monotonic(), 0.0, "", False
        try:
            async for delta in _stream(port, prompt, plan):
                first = first or _CLOCK.monotonic() - begun
                found.pieces += 1
                said += delta.text if isinstance(delta, TextDelta) else ""
                ended = isinstance(delta, ReplyEnded) and delta.stop is not StopReason.REFUSED
                if leaves and len(said) > 4:
                    break
        except ModelUnavailable:
            found.refused += 1
            await asyncio.sleep(0.05)
            continue
        if leaves:
            found.hung_up += 1
            continue
        found.replies += 1
        found.first.append(first)
        found.whole.append(_CLOCK.monotonic() - begun)
        found.lost += not ended
        found.mixed += said != text


async def _watch(found: Found, process: int) -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    while True:
        found.memory.append(int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1]) * page)
        await asyncio.sleep(1)


async def _stream(port: int, prompt: str, plan: Plan) -> AsyncIterator[Any]:
    """The pieces of one reply, without an end where the server sent none; closing the iterator closes the connection.

    Raises ModelUnavailable when refused.
    """
    request = ChatRequest(
        (Message(Role.USER, prompt),),
        model=plan.model,
        max_tokens=plan.tokens,
        temperature=0.0,
        stream=True,
        stream_usage=True,
    )
    body = json.dumps(openai_chat.write_request(request)).encode()
    decoder, reader = sse.Decoder(), openai_chat.reader()
    async for chunk in _exchange(port, "POST", "/v1/chat/completions", body):
        for event in decoder.push(chunk):
            for delta in reader.push(event):
                yield delta


async def _taken(port: int) -> float:
    text = b"".join([chunk async for chunk in _exchange(port, "GET", "/metrics", b"")]).decode()
    found = re.search(r"^toolwise_places_taken (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else -1.0


async def _exchange(port: int, method: str, path: str, body: bytes) -> AsyncIterator[bytes]:
    streams = await asyncio.open_connection("127.0.0.1", port)
    connection = h11.Connection(h11.CLIENT)
    head = [("host", f"127.0.0.1:{port}"), ("content-type", "application/json"), ("content-length", str(len(body)))]
    sent = [h11.Request(method=method, target=path, headers=head), h11.Data(data=body), h11.EndOfMessage()]
    try:
        streams[1].write(b"".join(connection.send(event) or b"" for event in sent))
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await streams[0].read(65_536))
            elif isinstance(event, h11.Response) and event.status_code != 200:
                raise ModelUnavailable(f"The server answered {event.status_code}.")
            elif isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                return
    except (OSError, h11.RemoteProtocolError) as error:
        raise ModelUnavailable("The server broke the connection off.") from error
    finally:
        streams[1].close()


@contextmanager
def _server(plan: Plan) -> Iterator[tuple[int, int]]:
    """A server of its own process; its port and its process."""
    command = [sys.executable, "-m", "toolwise", "serve", "--model", plan.model, "--port", "0"]
    command += ["--places", str(plan.clients), *(["--threads", str(plan.threads)] if plan.threads else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - ourselves
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            port = re.search(r"http://\S+:(\d+)", said)
            if port is None:
                raise ModelUnavailable("The server did not start; run `toolwise serve` to see why.")
            yield int(port[1]), process.pid
        finally:
            process.terminate()


def _prompt(plan: Plan, number: int) -> str:
    if plan.model == "scripted":
        return f"say client {number} of {plan.clients}\npace 0.01\nlong {plan.tokens}"
    return f"Write number {number + 1} of a list of short stories about {_WORDS[number % len(_WORDS)]}."


def table(found: Found) -> Table:
    plan, ms = found.plan, 1_000.0
    shown = Table(title=f"{plan.model}: {plan.clients} streaming clients, {found.seconds:.0f} seconds")
    shown.add_column("")
    shown.add_column("", justify="right")

    def row(name: str, value: str) -> None:
        shown.add_row(name, value)

    def middle(values: list[float], share: float = 0.5) -> float:
        return float(np.quantile(values, share)) * ms if values else float("nan")

    row("a reply of the model alone, median", f"{middle(found.model_alone):,.1f} ms")
    row("the same through the server", f"{middle(found.server_alone):,.1f} ms")
    row("first piece, one client, median", f"{middle(found.first_alone):,.1f} ms")
    row("first piece, all clients, median and 99 %", f"{middle(found.first):,.1f}, {middle(found.first, 0.99):,.1f} ms")
    row("a reply, all clients, median and 99 %", f"{middle(found.whole):,.1f}, {middle(found.whole, 0.99):,.1f} ms")
    row("replies, and how many were left on purpose", f"{found.replies:,}, {found.hung_up:,}")
    row("pieces a second", f"{found.pieces / max(found.seconds, 1e-9):,.0f}")
    row("lost, mixed, refused", f"{found.lost}, {found.mixed}, {found.refused}")
    row("places still taken afterwards", f"{found.left_over:g}")
    if len(found.memory) > 4:
        quarter, last = found.memory[len(found.memory) // 4], max(found.memory[-3:])
        row("memory of the server after a quarter, and at the end", f"{quarter / 2**20:,.0f}, {last / 2**20:,.0f} MiB")
    return shown
