"""The network seam: where names are looked up and connections made, and a fake for tests."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from toolwise.core.errors import DeadlineExceeded


class Network(Protocol):
    def resolve(self, host: str, port: int, seconds: float) -> Sequence[str]:
        """Every address of a name, none where it has none. Raises DeadlineExceeded."""

    def connect(self, address: str, port: int, seconds: float) -> socket.socket:
        """A connection to exactly this address. Raises OSError."""


class SystemNetwork:
    """The machine's own network."""

    def resolve(self, host: str, port: int, seconds: float) -> Sequence[str]:
        # The system's resolver takes no deadline, so it is waited for, and left to itself when it takes too long.
        answer = queue.SimpleQueue[list[str]]()

        def ask() -> None:
            try:
                found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError):
                found = []
            answer.put([str(where[0]) for *_, where in found])

        threading.Thread(target=ask, daemon=True, name="toolwise-resolve").start()
        try:
            return list(dict.fromkeys(answer.get(timeout=seconds)))
        except queue.Empty:
            raise DeadlineExceeded("The name of the host was not found in time: try again later.") from None

    def connect(self, address: str, port: int, seconds: float) -> socket.socket:
        return socket.create_connection((address, port), timeout=seconds)


@dataclass
class ScriptedNetwork:
    """Names have the answers of a script, one a question, the last one for ever; whatever address is connected to,
    the connection leads to `server`, a host and port of this machine. What was asked and connected is kept."""

    answers: Mapping[str, Sequence[Sequence[str]]]
    server: tuple[str, int] | None = None
    asked: list[str] = field(default_factory=list)
    connected: list[tuple[str, int]] = field(default_factory=list)

    def resolve(self, host: str, port: int, seconds: float) -> Sequence[str]:
        script = self.answers.get(host, [[]])
        number = min(self.asked.count(host), len(script) - 1)
        self.asked.append(host)
        return script[number]

    def connect(self, address: str, port: int, seconds: float) -> socket.socket:
        self.connected.append((address, port))
        if self.server is None:
            raise ConnectionRefusedError
        return socket.create_connection(self.server, timeout=seconds)
