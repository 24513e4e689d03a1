"""Which IP addresses belong to the public internet.

Covers: the special-purpose registries of IANA (loopback, private, link-local, shared, benchmark, documentation,
multicast, reserved, unspecified), the metadata services of clouds, and IPv4 that is carried inside IPv6 (mapped,
compatible, 6to4, NAT64, Teredo), which is refused whatever it carries. IPv6 is public only where addresses are
handed out at all, 2000::/3. Python's own `is_global` changes with its version, and says yes to some of these.

Not covered: a network that reaches its own machines through public addresses, or IPv4 through a NAT64 prefix of its
own.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

_NOT_PUBLIC_4 = tuple(
    map(
        IPv4Network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
            *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
            "168.63.129.16/32",  # Azure's own services; looks public. Other clouds' metadata lies in the ranges above
        ),
    )
)
_PUBLIC_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocols, Teredo among them
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4
            "3fff::/20",  # documentation
        ),
    )
)


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether this is one machine's address on the public internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    return (
        address.scope_id is None and address in _PUBLIC_6 and not any(address in network for network in _NOT_PUBLIC_6)
    )
