"""A web server on the loopback that answers as a test says, well or badly."""

from __future__ import annotations

import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from toolwise.tools.confined.fetch import Response, safe_fetch

PUBLIC, OTHER = "93.184.216.34", "1.1.1.1"
CERTIFICATE = Path(__file__).with_name("example_test.pem")

#: Hosts that one reader takes for an address and another for a name, or that are neither.
ODD_SPELLINGS = [
    *("2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "127.1", "127.0.1", "0", "00", "1.2.3.4.5", "256.1.1.1"),
    *("127.0.0.1.", "localhost.", "a..b", ".a", "-a.b", "a-.b", "1.0x", "a.0x7f", "a.1", "_", "a" * 64 + ".b"),
    *("①②⑦.⓪.⓪.①", "１２７.0.0.1", "127。0。0。1", "lоcalhost", "a%2eb", "%31", "[::1", "::1]", "[127.0.0.1]"),
    *("[::1%25lo]", "[::1%lo]", "[::ffff:127.1]", "[1]", "[]", "", "a b", "a\tb", "a\0b", "a\\b", "a,b", "a@b", "*.b"),
]
Page = bytes | Callable[[], Iterator[bytes]]


def page(body: bytes = b"", *headers: str, status: str = "200 OK") -> bytes:
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers])
    return head.encode() + b"\r\n\r\n" + body


def moved(location: str, status: int = 302) -> bytes:
    return page(b"moved", f"Location: {location}", status=f"{status} Moved")


def trusting() -> ssl.SSLContext:
    """A client's side of TLS that believes in the tests' own authority."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.load_verify_locations(CERTIFICATE)
    return trusting


class Site:
    """A server on the loopback. A path has the bytes, or the pieces, that it answers with; requests are kept."""

    def __init__(self, pages: dict[str, Page], tls: ssl.SSLContext | None = None) -> None:
        self.pages, self.requests, self.gone = pages, [], threading.Event()

        class Handler(socketserver.StreamRequestHandler):
            def handle(handler) -> None:
                with suppress(OSError):
                    if tls is not None:
                        handler.request = tls.wrap_socket(handler.request, server_side=True)
                        handler.rfile, handler.wfile = handler.request.makefile("rb"), handler.request.makefile("wb")
                    self.answer(handler.rfile, handler.wfile)
                self.gone.set()

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address: tuple[str, int] = self.server.server_address  # type: ignore[assignment]
        self.url = f"http://127.0.0.1:{self.address[1]}"

    def answer(self, received: Any, sent: Any) -> None:
        _, path, _ = received.readline().decode().split(" ")
        lines = iter(lambda: received.readline().decode().strip(), "")
        self.requests.append(
            (path, {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)})
        )
        found = self.pages.get(path.partition("?")[0], page(b"nothing", status="404 Not Found"))
        for part in [found] if isinstance(found, bytes) else found():
            sent.write(part)
            sent.flush()

    def fetch(self, path: str = "/", **settings: Any) -> Response:
        return safe_fetch(self.url + path, **{"allowed": {self.address}, **settings})


@contextmanager
def site(tls: ssl.SSLContext | None = None, **pages: Page) -> Iterator[Site]:
    """A site with the pages that are named, `index` being the first."""
    made = Site({f"/{name.removeprefix('index')}": content for name, content in pages.items()}, tls)
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        thread.join()
        made.server.server_close()
