"""A web address, read strictly: what cannot be read in one way only is refused.

Covers: every spelling in which `getaddrinfo` or a browser sees an address and a careful reader sees a name (`127.1`,
`2130706433`, `0x7f000001`, `0177.0.0.1`, full-width digits, a dot at the end), a user name before the host, other
schemes, backslashes, control characters. A host is compared whole, after reading, never by how its text begins.

Not covered: names outside ASCII, which are to be given in their `xn--` form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Self
from urllib.parse import urljoin

from toolwise.core.errors import UnsafeTarget
from toolwise.core.limits import LIMITS, Limits
from toolwise.tools.confined.addresses import is_public

_PLAIN = re.compile(r"[!-\[\]-~]+")  # visible ASCII without the backslash, which readers take for different things
_URL = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?(/[^?#]*)?(\?[^#]*)?(?:#.*)?", re.I)
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")  # what makes a host an IPv4 address in the URL Standard
_NAME_CHARS = 253  # RFC 1035
_PORTS = {"http": 80, "https": 443}
_PORT = range(1, 2**16)

Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes. `host` is a lower-case name, or an address in its shortest form without brackets."""

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def read(cls, url: str, limits: Limits = LIMITS) -> Self:
        """The target of a URL; its fragment is dropped. Raises UnsafeTarget."""
        found = _URL.fullmatch(url) if len(url) <= limits.url_chars and _PLAIN.fullmatch(url) else None
        if found is None or int(found[3] or 1) not in _PORT:
            raise UnsafeTarget(
                "Give a plain http or https address: ASCII, percent-encoded, no user name, no backslash."
            )
        scheme, host, port, path, query = found.groups("")
        scheme = scheme.lower()
        return cls(scheme, read_host(host), int(port or _PORTS[scheme]), (path or "/") + query)

    def follow(self, location: str, limits: Limits = LIMITS) -> Self:
        """Where a redirect leads. Raises UnsafeTarget."""
        # urljoin drops some control characters, so they are refused before it can
        joined = urljoin(str(self), location) if _PLAIN.fullmatch(location) else ""
        return self.read(joined, limits)

    @property
    def address(self) -> Address | None:
        """The address that the host is, if it is not a name."""
        return _address(self.host)

    @property
    def is_near(self) -> bool:
        """Whether the host says by itself that a request stays here: it is localhost, or an address that is not public.

        Any other name may lead anywhere, until it is looked up.
        """
        if self.address is not None:
            return not is_public(self.address)
        return self.host == "localhost" or self.host.endswith(".localhost")

    @property
    def origin(self) -> tuple[str, str, int]:
        """Who sees what is sent there (RFC 6454)."""
        return self.scheme, self.host, self.port

    @property
    def has_default_port(self) -> bool:
        return self.port == _PORTS[self.scheme]

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.has_default_port else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def read_host(text: str) -> str:
    """The one form of a host: a name, an IPv4 address, or an IPv6 address (in brackets or not).

    Raises UnsafeTarget for whatever another reader could take for another host.
    """
    host = text.lower()
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    address = _address(bare)
    if address is not None and (bare is host or address.version == 6):
        return str(address)
    labels = host.split(".")
    if len(host) > _NAME_CHARS or not all(map(_LABEL.fullmatch, labels)) or _NUMBER.fullmatch(labels[-1]):
        raise UnsafeTarget("Give the host as a plain name, or as an address in its usual form.")
    return host


def _address(text: str) -> Address | None:
    for kind in (IPv4Address, IPv6Address):
        try:
            return kind(text)
        except AddressValueError:
            continue
    return None
