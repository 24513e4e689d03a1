"""Fetching a page whose address a model chose: where the connection goes, what is sent along, and when it ends."""

from __future__ import annotations

import gzip
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loopback_site import CERTIFICATE, ODD_SPELLINGS, OTHER, PUBLIC, Site, moved, page, site, trusting

from toolwise.core.errors import BadInput, DeadlineExceeded, LimitExceeded, ToolFailed, UnsafeTarget
from toolwise.tools.confined.fetch import safe_fetch
from toolwise.tools.confined.network import ScriptedNetwork, SystemNetwork


def refused(url: str, network: ScriptedNetwork, **settings: Any) -> None:
    """Not even a connection is tried."""
    with pytest.raises(UnsafeTarget) as caught:
        safe_fetch(url, network=network, **settings)
    assert network.connected == []
    assert len(str(caught.value)) < 160


# What comes back


def test_a_page_comes_back_whole_with_the_headers_that_carry_no_secret() -> None:
    with site(index=page(b"hello", "Content-Type: text/plain", "Set-Cookie: a=secret", "X-Internal: secret")) as there:
        response = there.fetch()
    assert (response.status, response.url, response.body) == (200, f"{there.url}/", b"hello")
    assert response.headers == {"content-length": "5", "content-type": "text/plain"}


def test_a_refusal_of_the_server_is_a_response() -> None:
    with site(teapot=page(b"short and stout", status="418 I'm a teapot"), nomore=moved("")) as there:
        assert there.fetch("/teapot").status == 418
        assert (there.fetch("/none").status, there.fetch("/none").body) == (404, b"nothing")


def test_the_request_says_who_asks_and_what_the_tool_adds() -> None:
    with site(index=page()) as there:
        there.fetch(headers={"Accept": "text/html", "X-Key": "k"})
    ((path, headers),) = there.requests
    assert path == "/"
    assert headers == {
        "host": there.url.removeprefix("http://"),
        "user-agent": "toolwise",
        "accept": "text/html",
        "x-key": "k",
        "accept-encoding": "gzip",
        "connection": "close",
    }


@pytest.mark.parametrize("form", ["length", "chunked", "until closed", "gzip", "interim", "no body"])
def test_every_way_to_send_a_body_is_read(form: str) -> None:
    body = b"body " * 10_000
    chunks = (
        b"".join(b"%x;note=1\r\n%b\r\n" % (len(part), part) for part in (body[:7], body[7:])) + b"0\r\nT: x\r\n\r\n"
    )
    answer = {
        "length": page(body),
        "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks,
        "until closed": b"HTTP/1.0 200 OK\r\n\r\n" + body,
        "gzip": page(gzip.compress(body), "Content-Encoding: GZip"),
        "interim": b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + page(body),
        "no body": b"HTTP/1.1 204 No Content\r\nContent-Encoding: gzip\r\n\r\n",
    }[form]
    with site(index=answer) as there:
        assert there.fetch().body == (b"" if form == "no body" else body)


# Where the connection goes


@pytest.mark.case("I5")
@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0", "[::]", "[::1]", "[::ffff:127.0.0.1]"),
        *("[64:ff9b::7f00:1]", "[2002:7f00:1::]", "169.254.169.254", "100.100.100.200", "168.63.129.16", "localhost."),
        *(
            "①②⑦.⓪.⓪.①",
            "localhost",
            "intranet",
            "LOCALHOST",
            "[fe80::1]",
            "[fd00:ec2::254]",
            "10.0.0.1",
            *ODD_SPELLINGS,
        ),
    ],
)
def test_a_local_address_is_refused_before_anything_is_asked_or_sent(host: str) -> None:
    network = ScriptedNetwork({})
    refused(f"http://{host}", network)
    assert network.asked == []


@pytest.mark.case("I6")
@pytest.mark.parametrize(
    "answers",
    [
        *(["127.0.0.1"], [PUBLIC, "127.0.0.1"], ["127.0.0.1", PUBLIC], ["::1"], ["fe80::1%eth0"], ["169.254.169.254"]),
        *(["::ffff:127.0.0.1"], [PUBLIC, OTHER, "64:ff9b::7f00:1"], ["0.0.0.0"], ["100.100.100.200"]),
    ],
)
def test_a_name_with_one_unsafe_address_is_refused(answers: list[str]) -> None:
    refused("http://rebind.example/", ScriptedNetwork({"rebind.example": [answers]}))


@pytest.mark.case("I6")
def test_the_address_that_was_checked_is_connected_to_and_the_name_is_not_asked_again() -> None:
    with site(index=page(b"hello"), again=moved("/")) as there:
        network = ScriptedNetwork({"rebind.example": [[PUBLIC], ["127.0.0.1"]]}, there.address)
        assert safe_fetch("http://rebind.example/", network=network).body == b"hello"
        assert (network.asked, network.connected) == (["rebind.example"], [(PUBLIC, 80)])
        assert there.requests[0][1]["host"] == "rebind.example"
        refused("http://rebind.example/", replace(network, connected=[]))


@pytest.mark.case("I6")
def test_a_name_that_rebinds_between_two_hops_is_refused_at_the_second() -> None:
    with site(index=moved("/again"), again=page(b"inside")) as there:
        network = ScriptedNetwork({"rebind.example": [[PUBLIC], ["127.0.0.1"]]}, there.address)
        with pytest.raises(UnsafeTarget):
            safe_fetch("http://rebind.example/", network=network)
    assert network.connected == [(PUBLIC, 80)]
    assert [path for path, _ in there.requests] == ["/"]


def test_an_address_that_refuses_gives_way_to_the_next_one() -> None:
    class OneDown(ScriptedNetwork):
        def connect(self, address: str, port: int, seconds: float) -> socket.socket:
            if address == PUBLIC:
                self.connected.append((address, port))
                raise ConnectionRefusedError
            return super().connect(address, port, seconds)

    with site(index=page(b"hello")) as there:
        network = OneDown({"two.example": [[PUBLIC, OTHER]]}, there.address)
        assert safe_fetch("http://two.example", network=network).body == b"hello"
    assert network.connected == [(PUBLIC, 80), (OTHER, 80)]
    network.server = None
    with pytest.raises(ToolFailed, match="cannot be reached"):
        safe_fetch("http://two.example", network=network)


def test_a_name_that_nobody_has_is_the_models_mistake() -> None:
    with pytest.raises(ToolFailed, match=r'no host "none\.example"'):
        safe_fetch("http://none.example/", network=ScriptedNetwork({}))


def test_only_the_usual_ports_are_open_and_each_belongs_to_its_scheme() -> None:
    network = ScriptedNetwork({"a.example": [[PUBLIC]]})
    for url in ("http://a.example:8080/", "http://a.example:443/", "https://a.example:80/", "http://a.example:0/"):
        refused(url, network)


def test_a_private_host_is_allowed_whole_and_with_its_port() -> None:
    with site(index=page(b"inside")) as there:
        port = there.address[1]
        network = ScriptedNetwork({"intranet": [["10.0.0.7"]], "intranet.evil.example": [["10.0.0.7"]]}, there.address)
        allowed = {("Intranet", port), ("127.0.0.1", port), ("[::1]", port)}
        for host in ("intranet", "127.0.0.1", "[::1]", "[0:0::1]"):
            assert safe_fetch(f"http://{host}:{port}/", network=network, allowed=allowed).body == b"inside"
        assert network.connected == [(address, port) for address in ("10.0.0.7", "127.0.0.1", "::1", "::1")]
        network.connected.clear()
        for url in (
            "http://intranet/",
            f"http://intranet:{port + 1}/",
            f"http://intranet.evil.example:{port}/",
            f"http://evil.intranet:{port}/",
            f"http://127.0.0.11:{port}/",
            f"http://127.1:{port}/",
            f"http://intranet.:{port}/",
            f"http://intranet@evil.example:{port}/",
        ):
            refused(url, network, allowed=allowed)
        with pytest.raises(BadInput, match="no host that can be allowed"):
            safe_fetch("http://a.example/", allowed={("*.example", 80)})


def test_proxies_and_credentials_of_the_environment_take_no_part(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login a password secret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with site(index=page(b"hello")) as there:
        assert there.fetch().body == b"hello"
    assert "authorization" not in there.requests[0][1]


def test_the_systems_own_network_is_asked_within_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "127.0.0.1" in SystemNetwork().resolve("localhost", 80, 5.0)
    answered = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answered.wait(5) and [])
    with pytest.raises(DeadlineExceeded):
        SystemNetwork().resolve("slow.example", 80, 0.05)
    answered.set()
    assert SystemNetwork().resolve("nobody.example", 80, 5.0) == []


# TLS


@pytest.fixture
def https() -> Iterator[tuple[Site, list[str | None]]]:
    """A site for `example.test`, and the names that it was called by."""
    named: list[str | None] = []
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(CERTIFICATE)
    serving.sni_callback = lambda connection, name, context: named.append(name)
    with site(serving, index=page(b"hello"), down=moved("http://example.test/")) as there:
        yield there, named


@pytest.mark.case("I6")
def test_tls_keeps_the_name_while_the_connection_is_pinned(https: tuple[Site, list[str | None]]) -> None:
    there, named = https
    network = ScriptedNetwork({"example.test": [[PUBLIC]]}, there.address)
    assert safe_fetch("https://example.test/", network=network, tls=trusting()).body == b"hello"
    assert (network.connected, named) == ([(PUBLIC, 443)], ["example.test"])
    assert there.requests[0][1]["host"] == "example.test"


def test_a_certificate_for_another_name_or_of_an_unknown_authority_is_refused(
    https: tuple[Site, list[str | None]],
) -> None:
    there, _ = https
    network = ScriptedNetwork({"other.test": [[PUBLIC]], "example.test": [[PUBLIC]]}, there.address)
    for url, tls in (("https://other.test/", trusting()), ("https://example.test/", None)):
        with pytest.raises(ToolFailed, match="certificate"):
            safe_fetch(url, network=network, tls=tls)
    assert there.requests == []


@pytest.mark.case("I7")
def test_a_redirect_from_https_to_http_is_refused(https: tuple[Site, list[str | None]]) -> None:
    network = ScriptedNetwork({"example.test": [[PUBLIC]]}, https[0].address)
    with pytest.raises(UnsafeTarget, match="https to http"):
        safe_fetch("https://example.test/down", network=network, tls=trusting())
    assert network.connected == [(PUBLIC, 443)]


# Redirects


@pytest.mark.case("I7")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "location",
    [
        *("http://169.254.169.254/", "//127.0.0.1/", "http://localhost/", "http://2130706433/", "file:///etc/passwd"),
        *("http://a.example:22/", "http://inside.example/", "http://user:pw@a.example/", "http://[::1]/", ""),
    ],
)
def test_a_redirect_into_the_own_network_is_refused(location: str, status: int) -> None:
    with site(index=moved(location, status)) as there:
        network = ScriptedNetwork({"a.example": [[PUBLIC]], "inside.example": [["192.168.1.1"]]}, there.address)
        with pytest.raises(UnsafeTarget):
            safe_fetch("http://a.example/", network=network)
    assert network.connected == [(PUBLIC, 80)]


@pytest.mark.case("I7")
def test_five_redirects_are_followed_and_fifty_are_not() -> None:
    hops = {f"h{number}": moved(f"/h{number - 1}") for number in range(1, 51)}
    with site(h0=page(b"there"), **hops) as there:
        response = there.fetch("/h5")
        assert (response.body, response.url) == (b"there", f"{there.url}/h0")
        there.requests.clear()
        with pytest.raises(LimitExceeded, match="more than 5"):
            there.fetch("/h50")
        assert len(there.requests) == 6
        there.requests.clear()
        there.pages["/round"] = moved("/round")
        with pytest.raises(LimitExceeded):
            there.fetch("/round")


@pytest.mark.case("I7")
def test_secrets_stay_with_the_first_origin_and_do_not_come_back() -> None:
    with site(index=moved("/same"), same=moved("http://b.example/away"), away=moved("http://a.example/back")) as there:
        there.pages["/back"] = page(b"end")
        network = ScriptedNetwork({"a.example": [[PUBLIC]], "b.example": [[OTHER]]}, there.address)
        secrets = {"Authorization": "Bearer canary", "Cookie": "canary", "X-Api-Key": "canary"}
        safe_fetch("http://a.example/", network=network, headers={**secrets, "Accept-Language": "nn"})
    sent = dict(there.requests)
    assert list(sent) == ["/", "/same", "/away", "/back"]
    for path, headers in sent.items():
        assert headers["accept-language"] == "nn"
        assert headers["host"] == ("b.example" if path == "/away" else "a.example")
        carried = [name for name, value in headers.items() if "canary" in value]
        assert carried == (["authorization", "cookie", "x-api-key"] if path in ("/", "/same") else [])


@pytest.mark.case("I7")
def test_another_port_or_scheme_of_the_same_host_is_another_origin() -> None:
    with site(index=page()) as other, site(index=moved(other.url)) as there:
        there.fetch(headers={"Authorization": "canary"}, allowed={there.address, other.address})
    assert "authorization" in there.requests[0][1]
    assert "authorization" not in other.requests[0][1]


def test_a_cookie_is_neither_kept_nor_sent() -> None:
    with site(index=page(b"", "Set-Cookie: a=b", "Location: /next", status="302 Moved"), next=page()) as there:
        there.fetch()
    assert "cookie" not in there.requests[1][1]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("X", "a\r\nHost: evil"), ("X\r\nHost", "evil"), ("X", "a\nb"), ("X", "a\0"), ("X", "ü"), ("X", "")),
        *(("", "x"), ("X Y", "z"), ("Host", "evil"), ("HOST", "evil"), ("Connection", "close"), ("Upgrade", "h2c")),
        *(("Content-Length", "5"), ("Transfer-Encoding", "x"), ("Accept-Encoding", "br"), ("Proxy-Connection", "x")),
    ],
)
def test_a_header_that_would_change_the_request_is_refused(name: str, value: str) -> None:
    network = ScriptedNetwork({"a.example": [[PUBLIC]]})
    with pytest.raises(BadInput, match="cannot be sent"):
        safe_fetch("http://a.example/", network=network, headers={name: value})
    assert network.asked == []


def test_where_the_extra_is_missing_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpcore2", None)
    with pytest.raises(BadInput, match=r"pip install 'toolwise\[fetch\]'"):
        safe_fetch("http://a.example/", network=ScriptedNetwork({"a.example": [[PUBLIC]]}))
