"""How much of an answer is taken, and for how long: bombs, endless and dripping answers, and what is no HTTP."""

from __future__ import annotations

import gzip
import itertools
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loopback_site import PUBLIC, moved, page, site, trusting

from toolwise.core.clock import FakeClock
from toolwise.core.errors import DeadlineExceeded, LimitExceeded, ToolFailed, ToolwiseError, UnsafeTarget
from toolwise.core.limits import LIMITS
from toolwise.tools.confined.fetch import Response, safe_fetch
from toolwise.tools.confined.network import ScriptedNetwork

SMALL = replace(LIMITS, response_bytes=10_000)
QUICK = replace(LIMITS, fetch_seconds=0.4)


def bomb(megabytes: int) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return b"".join(packer.compress(bytes(1024**2)) for _ in range(megabytes)) + packer.flush()


@pytest.mark.case("I8")
def test_a_small_answer_that_unpacks_to_a_large_one_ends_at_the_cap() -> None:
    packed = bomb(64)
    assert len(packed) < 100_000
    with site(index=page(packed, "Content-Encoding: gzip")) as there:
        tracemalloc.start()
        try:
            with pytest.raises(LimitExceeded, match="longer than 10000 bytes"):
                there.fetch(limits=SMALL)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.case("I8")
def test_a_body_of_exactly_the_cap_is_whole_and_one_byte_more_is_refused() -> None:
    for size, fits in ((10_000, True), (10_001, False)):
        for answer in (page(b"x" * size), page(gzip.compress(b"x" * size), "Content-Encoding: gzip")):
            with site(index=answer) as there:
                if fits:
                    assert len(there.fetch(limits=SMALL).body) == size
                else:
                    with pytest.raises(LimitExceeded):
                        there.fetch(limits=SMALL)


@pytest.mark.case("I8")
@pytest.mark.parametrize("encoding", ["br", "zstd", "deflate", "gzip, gzip", "gzip, br", "identity, gzip", "x", ""])
def test_an_encoding_that_was_not_asked_for_is_refused(encoding: str) -> None:
    with (
        site(index=page(bomb(1), f"Content-Encoding: {encoding}")) as there,
        pytest.raises(ToolFailed, match="encoding"),
    ):
        there.fetch()


@pytest.mark.case("I8")
@pytest.mark.parametrize("packed", [b"no gzip", gzip.compress(b"cut" * 99)[:-9], gzip.compress(b"a") + b"behind"])
def test_bytes_that_do_not_decode_are_refused(packed: bytes) -> None:
    with site(index=page(packed, "Content-Encoding: gzip")) as there, pytest.raises(ToolFailed, match="decode"):
        there.fetch()


@pytest.mark.case("I8")
@pytest.mark.parametrize("what", ["body", "bytes behind gzip", "empty gzip", "interim", "head", "trailer", "chunk"])
def test_an_answer_without_an_end_stops_in_bounded_memory(what: str) -> None:
    start = b"HTTP/1.1 200 OK\r\n"
    chunked = start + b"Transfer-Encoding: chunked\r\n\r\n"
    packer = zlib.compressobj(9, wbits=31)
    opened = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    first, more = {
        "body": (start + b"\r\n", bytes(65_536)),
        "bytes behind gzip": (start + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"a"), bytes(65_536)),
        "empty gzip": (start + b"Content-Encoding: gzip\r\n\r\n" + opened, b"\x00\x00\x00\xff\xff" * 10_000),
        "interim": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000),
        "head": (start, b"X: y\r\n" * 1_000),
        "trailer": (chunked + b"0\r\n", b"X: y\r\n" * 1_000),
        "chunk": (chunked + b"1;", b"x" * 65_536),
    }[what]
    with site(index=lambda: itertools.chain([first], itertools.repeat(more))) as there:
        tracemalloc.start()
        try:
            with pytest.raises((LimitExceeded, ToolFailed, DeadlineExceeded)):
                there.fetch(limits=replace(SMALL, fetch_seconds=0.5))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert there.gone.wait(5), "the connection was not closed"
    assert peak < 2_000_000


@pytest.mark.case("I8")
@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 200 OK\r\n", page(b"x" * 99)[:-99]], ids=["status", "head", "body"])
def test_a_server_that_drips_ends_at_the_deadline(first: bytes) -> None:
    gone = threading.Event()

    def drip() -> Iterator[bytes]:
        yield first
        while not gone.wait(0.03):
            yield b"x"

    with site(index=drip) as there:
        started = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            there.fetch(limits=QUICK)
        took = time.monotonic() - started
        assert there.gone.wait(5), "the connection was not closed"
    assert 0.3 < took < 1.5


@pytest.mark.case("I8")
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_server_that_says_nothing_ends_at_the_deadline(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        network = ScriptedNetwork({"example.test": [[PUBLIC]]}, silent.getsockname())
        started = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            safe_fetch(f"{scheme}://example.test/", network=network, limits=QUICK, tls=trusting())
    assert 0.3 < time.monotonic() - started < 1.5


@pytest.mark.case("I8")
def test_all_hops_and_look_ups_share_one_deadline() -> None:
    clock = FakeClock(datetime(2024, 1, 1, tzinfo=UTC))

    class Slow(ScriptedNetwork):
        def resolve(self, host: str, port: int, seconds: float) -> Any:
            clock.advance(3.0)
            return super().resolve(host, port, seconds)

    with site(index=moved("/")) as there:
        network = Slow({"a.example": [[PUBLIC]]}, there.address)
        with pytest.raises(DeadlineExceeded, match="8 seconds"):
            safe_fetch("http://a.example/", network=network, clock=clock)
    assert len(network.asked) == 3


ODD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = ODD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        *(b"", b"x", b"SSH-2.0-OpenSSH_9\r\n", b"HTTP/1.1 999999 OK\r\n\r\n", b"HTTP/1.1 OK\r\n\r\n"),
        *(page(b"short")[:-1], ODD + b"Content-Length: -1\r\n\r\n", ODD + b"\0: x\r\n\r\n"),
        *(ODD + b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\n", ODD + b"X" * 200_000 + b": y\r\n\r\n"),
        *(ODD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", ODD + b"Transfer-Encoding: gzip\r\n\r\n"),
        *(CHUNKED + b"f" * 5_000 + b"\r\n", CHUNKED + b"x", CHUNKED + b"5\r\nab"),
        b"HTTP/1.1 302 Moved\r\nLocation: a\0b\r\n\r\n",
    ],
)
def test_an_answer_that_is_no_http_is_one_clear_error(answer: bytes) -> None:
    with site(index=answer) as there, pytest.raises((ToolFailed, UnsafeTarget)) as caught:
        there.fetch()
    assert len(str(caught.value)) < 150


WORDS = [
    *(b"HTTP/1.1 ", b"200 OK", b"302 x", b"\r\n", b"\n", b": ", b"Content-Length", b"5", b"Location", b"\xff"),
    *(b"Transfer-Encoding", b"chunked", b"Content-Encoding", b"gzip", b"http://10.0.0.1"),
]


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=60) | st.lists(st.sampled_from(WORDS), max_size=20).map(b"".join))
def test_whatever_a_server_says_is_a_response_or_an_error_of_ours(answer: bytes) -> None:
    with site(index=answer) as there, suppress(ToolwiseError):
        assert isinstance(there.fetch(), Response)


def test_nothing_that_was_sent_stands_in_an_error() -> None:
    with site(index=b"no http") as there, pytest.raises(ToolFailed) as caught:
        there.fetch("?key=canary", headers={"Authorization": "canary"})
    assert "canary" not in str(caught.value)
