"""A server of the chat APIs on this machine's loopback, and the official clients, unmodified."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import anthropic
import httpx2
import openai
from google import genai

from toolwise.core.chat import ChatModel
from toolwise.core.limits import LIMITS, Limits
from toolwise.models.scripted_chat import ScriptedChat
from toolwise.serve.app import api_app
from toolwise.serve.run import bound, server

ADD = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
USED_KEY = "tw-the-key-that-tests-send"


@dataclass(frozen=True)
class Served:
    """A server that answers, and its clients."""

    port: int
    key: str = USED_KEY

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def openai(self, key: str | None = None) -> openai.OpenAI:
        return openai.OpenAI(api_key=key or self.key, base_url=f"{self.url}/v1", max_retries=0, timeout=20)

    def anthropic(self, key: str | None = None) -> anthropic.Anthropic:
        return anthropic.Anthropic(api_key=key or self.key, base_url=self.url, max_retries=0, timeout=20)

    def gemini(self, key: str | None = None) -> genai.Client:
        options = genai.types.HttpOptions(base_url=self.url, timeout=20_000)
        return genai.Client(api_key=key or self.key, http_options=options)

    def http(self, **headers: str) -> httpx2.Client:
        return httpx2.Client(base_url=self.url, timeout=20, headers=headers)

    def get(self, path: str, **headers: str) -> httpx2.Response:
        with self.http(**headers) as client:
            return client.get(path)

    def post(self, path: str, body: Any, **headers: str) -> httpx2.Response:
        with self.http(**headers) as client:
            return client.post(path, json=body)

    def raw(self, data: bytes, seconds: float = 20) -> bytes:
        """What the server answers to these bytes, until it hangs up."""
        with closing(socket.create_connection(("127.0.0.1", self.port), timeout=seconds)) as end:
            end.sendall(data)
            return b"".join(iter(lambda: end.recv(65_536), b""))


@contextmanager
def serving(
    models: Iterable[ChatModel] | None = None, *, limits: Limits = LIMITS, connections: int = 256, **settings: Any
) -> Iterator[Served]:
    """A server until the end of the block; with the scripted model unless others are given."""
    app = api_app([ScriptedChat()] if models is None else models, limits=limits, **settings)
    made, where = server(app, limits, connections), bound(0)
    port = where.getsockname()[1]
    thread = threading.Thread(target=made.run, kwargs={"sockets": [where]})
    thread.start()
    try:
        yield Served(port)
    finally:
        made.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


def until(holds: Callable[[], bool], seconds: float = 10) -> None:
    """Wait until something holds, which another thread brings about."""
    done = threading.Event()
    for _ in range(int(seconds / 0.01)):
        if holds():
            return
        done.wait(0.01)
    raise AssertionError(f"it does not hold after {seconds} seconds")


def metric(text: str, name: str) -> float:
    """One figure of /metrics; 0 where it is not there."""
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return next((float(value) for told, value in lines if told == name), 0.0)
