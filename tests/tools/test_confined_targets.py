"""Which addresses are public, and how a URL is read: strictly, and whole."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback_site import ODD_SPELLINGS

from toolwise.core.errors import UnsafeTarget
from toolwise.core.limits import LIMITS
from toolwise.tools.confined.addresses import is_public
from toolwise.tools.confined.targets import Target, read_host


def refused(url: str) -> None:
    with pytest.raises(UnsafeTarget) as caught:
        Target.read(url)
    assert len(str(caught.value)) < 150


# Addresses


@pytest.mark.case("I5")
@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.255.255.255", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255"),
        *("192.168.1.1", "169.254.169.254", "100.64.0.1", "100.127.255.255", "100.100.100.200", "168.63.129.16"),
        *("192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1"),
        *("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:93.184.216.34", "::ffff:0:7f00:1", "fe80::1"),
        *("fe80::1%lo", "2606:4700::1%lo", "fc00::1", "fd00:ec2::254", "fd20:ce::254", "fec0::1", "ff02::1"),
        *("64:ff9b::7f00:1", "64:ff9b::5db8:d822", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:5db8:d822::1"),
        *("2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:10::1", "2001:20::1", "2001:db8::1", "100::1"),
        *("3fff::1", "5f00::1", "4000::1", "1fff::1"),
    ],
)
def test_an_address_of_the_own_network_or_of_nobody_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        *("1.1.1.1", "93.184.216.34", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255"),
        *("128.0.0.0", "172.15.255.255", "172.32.0.0", "169.253.255.255", "168.63.129.15", "223.255.255.255"),
        *("2606:4700:4700::1111", "2a00:1450:4001::1", "2001:200::1", "2001:4860:4860::8888", "3ffe::1"),
    ],
)
def test_the_addresses_beside_them_are_public(address: str) -> None:
    assert is_public(ip_address(address))


@given(st.builds(IPv4Address, st.integers(0, 2**32 - 1)) | st.builds(IPv6Address, st.integers(0, 2**128 - 1)))
def test_nothing_is_public_that_python_takes_for_private(address: IPv4Address | IPv6Address) -> None:
    assert not (is_public(address) and (not address.is_global or address.is_multicast or address.is_reserved))


# URLs


@pytest.mark.case("I5")
@pytest.mark.parametrize("host", ODD_SPELLINGS)
@pytest.mark.parametrize("form", ["http://{}", "https://{}/", "http://{}:80/x?y"])
def test_a_host_that_readers_take_for_different_things_is_refused(host: str, form: str) -> None:
    refused(form.format(host))


@pytest.mark.parametrize(
    "url",
    [
        *("", "x", "//example.com/", "example.com", "http:example.com", "http:/example.com", "http:///example.com"),
        *("ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "data:,x", "javascript:1", "HTTP2://a.b/"),
        *("http://user@example.com/", "http://user:pw@example.com/", "https://good.example@evil.example/", "http://@a.b/"),
        *("http://example.com:/", "http://example.com:x/", "http://example.com:-1/", "http://example.com:123456/"),
        *("http://exa\tmple.com/", "http://example.com/\n", " http://example.com/", "http://example.com/ x", "http://a.b/\0"),
        *("http://evil.example\\@good.example/", "http:\\\\example.com\\", "http://example.com/ü", "http://a.b/\ud800"),
        *("http://a.b/" + "x" * LIMITS.url_chars, "http://" + "a." * 130 + "b/", "http://a.b:80:80/", "http://a.b;c/"),
    ],
)  # fmt: skip
def test_what_is_no_plain_web_address_is_refused(url: str) -> None:
    refused(url)


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("HTTP://Example.COM", "http://example.com/"),
        ("http://example.com:80?q=/a#frag", "http://example.com/?q=/a"),
        ("https://example.com:0443/a%2fb//c?d=%00@e", "https://example.com/a%2fb//c?d=%00@e"),
        ("https://xn--bcher-kva.example:8443/'(x)'", "https://xn--bcher-kva.example:8443/'(x)'"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/"),
        ("http://[2606:4700::0001]:80/", "http://[2606:4700::1]/"),
        ("http://[::FFFF:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
        ("http://a_b.example-1.co/", "http://a_b.example-1.co/"),
        ("http://localhost/", "http://localhost/"),
    ],
)
def test_a_web_address_has_one_form(url: str, read: str) -> None:
    target = Target.read(url)
    assert str(target).replace("::ffff:127.0.0.1", "::ffff:7f00:1") == read  # the form depends on Python's version
    assert Target.read(str(target)) == target


@pytest.mark.parametrize(
    ("host", "near"),
    [
        ("127.0.0.1", True),
        ("10.1.2.3", True),
        ("[::1]", True),
        ("LocalHost", True),
        ("api.localhost", True),
        ("8.8.8.8", False),
        ("[2606:4700::1]", False),
        ("notlocalhost", False),
        ("localhost.example.org", False),
        ("intranet", False),  # it may lead anywhere
    ],
)
def test_only_localhost_and_an_address_that_is_not_public_are_near(host: str, near: bool) -> None:
    assert Target.read(f"http://{host}:8000/v1").is_near is near


def test_a_host_is_what_stands_between_the_slashes_and_not_how_it_begins() -> None:
    assert Target.read("https://good.example.evil.net/").host == "good.example.evil.net"
    assert Target.read("https://evil.net/@good.example").host == "evil.net"
    assert Target.read("https://evil.net?@good.example/").host == "evil.net"
    assert Target.read("https://evil.net#@good.example/").host == "evil.net"


@pytest.mark.parametrize(
    ("location", "read"),
    [
        ("/b", "https://example.com/b"),
        ("c?d", "https://example.com/a/c?d"),
        ("../../c", "https://example.com/c"),
        ("//evil.example/x", "https://evil.example/x"),
        ("http://169.254.169.254/", "http://169.254.169.254/"),
        ("?q", "https://example.com/a/b?q"),
        ("", None),
        ("//user@example.com/", None),
        ("file:///etc/passwd", None),
        ("https://2130706433/", None),
        ("/\t/evil.example", None),
        ("/\\evil.example", None),
        ("/ü", None),
        ("/" + "x" * LIMITS.url_chars, None),
    ],
)
def test_a_redirect_is_read_as_strictly_as_any_address(location: str, read: str | None) -> None:
    start = Target.read("https://example.com/a/b")
    if read is not None:
        assert str(start.follow(location)) == read
        return
    with pytest.raises(UnsafeTarget):
        start.follow(location)


@given(
    st.text(st.characters(max_codepoint=0x2FFFF), max_size=40) | st.text("0123456789abcxABCX.-[]:%@/\\?#", max_size=30)
)
def test_any_text_is_read_or_refused(text: str) -> None:
    """And what was read is read the same again, and would be by the standard library."""
    try:
        target = Target.read("http://" + text)
    except UnsafeTarget:
        return
    parts = urlsplit("http://" + text)
    assert Target.read(str(target)) == target
    assert (read_host(parts.hostname or ""), parts.port or 80) == (target.host, target.port)
    assert (parts.username, parts.password) == (None, None)
