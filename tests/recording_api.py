"""An HTTP API on the loopback that keeps what it was sent, byte for byte, and answers as a test says."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

Answer = Response | Any  # what is no response is sent as JSON; a function is given what was received


@dataclass(frozen=True)
class Received:
    method: str
    path: str  # as it was sent, still encoded
    query: str
    headers: dict[str, str]
    body: bytes


@dataclass
class RecordingApi:
    """`answers` has what a method and path, `GET /pets`, is answered with; all else gets `{"ok": true}`."""

    url: str
    address: tuple[str, int]
    received: list[Received] = field(default_factory=list, repr=False)
    answers: dict[str, Answer] = field(default_factory=dict, repr=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        path, query = scope["raw_path"].decode("ascii"), scope["query_string"].decode("ascii")
        body = await request.body()
        self.received.append(Received(request.method, path, query, dict(request.headers), body))
        answer = self.answers.get(f"{request.method} {path}", {"ok": True})
        if callable(answer) and not isinstance(answer, Response):
            answer = answer(self.last)
        await (answer if isinstance(answer, Response) else JSONResponse(answer))(scope, receive, send)

    @property
    def last(self) -> Received:
        return self.received[-1]


@contextmanager
def recording_api() -> Iterator[RecordingApi]:
    listening = socket.create_server(("127.0.0.1", 0))
    address = listening.getsockname()
    api = RecordingApi(f"http://127.0.0.1:{address[1]}", address)
    config = uvicorn.Config(api, http="h11", ws="none", lifespan="off", access_log=False, log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield api
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
