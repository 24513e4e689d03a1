"""One HTTP request to addresses that were checked before, over httpcore, within one deadline.

Covers: the connection goes to one of the given addresses, whatever the name says meanwhile; TLS and the Host header
keep the name. Every wait on the socket ends at the deadline, so that a server which sends a byte a second gains
nothing. Neither proxies nor redirects, cookies or credentials of the environment take part. Whoever has to know
whether a request may have arrived is told before its first byte leaves.

Not covered: HTTP/2; what the certificate authorities of this machine vouch for.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from socket import socket
from typing import Any, cast

from toolwise.core.errors import BadInput, DeadlineExceeded, ToolFailed
from toolwise.tools.confined.network import Network
from toolwise.tools.confined.targets import Target

Left = Callable[[], float]
"""Seconds until the deadline; raises DeadlineExceeded when there are none."""
Leaving = Callable[[], object]
"""Called whenever a part of the request is about to leave; what fails before the first did not reach the server."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a target. `body` None: there is none, which is not the same as an empty one."""

    method: str
    headers: Mapping[str, str]
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answers. Names of headers are in lower case, repeated ones joined by commas."""

    status: int
    headers: Mapping[str, str]
    parts: Iterator[bytes]


@contextmanager
def exchange(
    target: Target,
    addresses: Sequence[str],
    request: Request,
    *,
    network: Network,
    left: Left,
    leaving: Leaving,
    tls: ssl.SSLContext | None,
) -> Iterator[Reply]:
    """The reply to a request; its parts can be read until the block ends.

    Raises ToolFailed, DeadlineExceeded, and BadInput where httpcore is missing.
    """
    try:
        import httpcore2 as httpcore
    except ModuleNotFoundError as error:
        raise BadInput("Fetching needs more packages: pip install 'toolwise[fetch]'.") from error
    scheme, host = target.scheme.encode(), target.host.encode()
    # httpcore asks a backend for its methods, not for its class, and a subclass would import it with this module
    backend = cast(Any, _Pinned(addresses, network, left, leaving))
    origin = httpcore.Origin(scheme, host, target.port)
    url = httpcore.URL(scheme=scheme, host=host, port=target.port, target=target.path.encode())
    sent = [*request.headers.items(), ("host", target.authority), ("connection", "close")]
    try:
        with (
            httpcore.HTTPConnection(origin, ssl_context=tls, network_backend=backend) as connection,
            connection.stream(request.method, url, headers=sent, content=request.body) as response,
        ):
            yield Reply(response.status, _joined(response.headers), response.iter_stream())
    except httpcore.ProtocolError as error:
        raise ToolFailed("The server does not answer in plain HTTP, or ended too early: try another.") from error


class _Pinned:
    """httpcore's network backend: the checked addresses in turn, and no others."""

    def __init__(self, addresses: Sequence[str], network: Network, left: Left, leaving: Leaving) -> None:
        self._addresses, self._network, self._left, self._leaving = addresses, network, left, leaving

    def connect_tcp(self, host: str, port: int, **_: Any) -> _Stream:
        for number, address in enumerate(self._addresses):
            share = self._left() / (len(self._addresses) - number)  # one that never answers leaves time for the next
            try:
                return _Stream(self._network.connect(address, port, share), self._left, self._leaving)
            except OSError:
                continue
        self._left()
        raise ToolFailed("The server cannot be reached: try another, or again later.")


class _Stream:
    """httpcore's network stream: a socket whose every wait ends at the deadline."""

    def __init__(self, connection: socket, left: Left, leaving: Leaving) -> None:
        self._socket, self._left, self._leaving = connection, left, leaving

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with self._waiting():
            return self._socket.recv(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        with self._waiting():
            self._leaving()
            self._socket.sendall(buffer)

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> _Stream:
        with self._waiting():
            secured = ssl_context.wrap_socket(self._socket, server_hostname=server_hostname)
            return _Stream(secured, self._left, self._leaving)

    def close(self) -> None:
        self._socket.close()

    def get_extra_info(self, info: str) -> None:
        return None

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        try:
            self._socket.settimeout(self._left())
            yield
        except BaseException as error:
            self._socket.close()
            if isinstance(error, TimeoutError):
                raise DeadlineExceeded("The server did not answer in time: try another, or again later.") from error
            if isinstance(error, ssl.SSLCertVerificationError):
                raise ToolFailed("The server's certificate is not valid for its name: choose another.") from error
            if isinstance(error, OSError):
                raise ToolFailed("The connection to the server broke off: try again later.") from error
            raise


def _joined(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    joined: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("ascii").lower(), raw_value.decode("latin-1")
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined
