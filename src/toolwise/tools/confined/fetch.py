"""`safe_fetch`: an HTTP request for a tool whose address a model chooses.

Covers: every hop's name is looked up, every address that comes back is checked, and the connection goes to a checked
one, so that neither a spelling, a name of the attacker's, a redirect nor an answer that changes leads into the own
network; what the tool sends along stays with the first origin; the body is bounded after decoding, and the whole
fetch by one deadline. Private hosts are reached only where the author allowed exactly this host and port. Only GET and
HEAD follow a redirect: what changes something is asked of one server, once.

Not covered
- what the page says: it is data from outside, and the gate labels it so
- where the address itself carries data away (`?q=...`): that is a policy's part
- a name that the author allowed: whoever answers for it chooses the address
- encodings other than gzip, which is all that is asked for; a body that does not fit into memory
- a name server that never answers keeps a thread until the system gives up
"""

from __future__ import annotations

import re
import ssl
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from toolwise.core.clock import Clock, SystemClock
from toolwise.core.errors import BadInput, DeadlineExceeded, LimitExceeded, ToolFailed, UnsafeTarget
from toolwise.core.jsonio import quote
from toolwise.core.limits import LIMITS, Limits
from toolwise.tools.confined.addresses import is_public
from toolwise.tools.confined.exchange import Leaving, Left, Reply, Request, exchange
from toolwise.tools.confined.network import Network, SystemNetwork
from toolwise.tools.confined.targets import Target, read_host

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
"""What may be asked; TRACE would send secrets back."""

_CLOCK, _NETWORK = SystemClock(), SystemNetwork()
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_FOLLOWS = frozenset({"GET", "HEAD"})
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_NAME, _VALUE = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+"), re.compile(r"[!-~](?:[\t -~]*[!-~])?")
# These say how the request itself is carried, which is not the tool's to choose
_OURS = frozenset({"accept-encoding", "connection", "content-length", "expect", "host", "te", "trailer"}) | {
    *("transfer-encoding", "upgrade")
}
_FOR_ANYBODY = frozenset({"accept", "accept-language", "user-agent"})  # all others may be secrets of the first origin
_SHOWN = frozenset(
    {
        *("age", "cache-control", "content-language", "content-length", "content-type", "date", "etag", "expires"),
        *("last-modified", "retry-after"),
    }
)


@dataclass(frozen=True, slots=True)
class Response:
    """What came back from `url`, after redirects. `headers` has those that carry no secret, names in lower case."""

    status: int
    url: str
    headers: Mapping[str, str]
    body: bytes


def safe_fetch(
    url: str,
    *,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    allowed: Collection[tuple[str, int]] = (),
    network: Network = _NETWORK,
    limits: Limits = LIMITS,
    clock: Clock = _CLOCK,
    tls: ssl.SSLContext | None = None,
    leaving: Leaving = lambda: None,
) -> Response:
    """Ask a public http or https address. A status such as 404 is a response as well, and so is a redirect of a
    request that is neither GET nor HEAD.

    `headers` go to the first origin alone, but for what to accept and who asks. `allowed` names hosts and ports that
    may be private, as `{("127.0.0.1", 8080)}`; each is compared whole. `tls` replaces the machine's authorities.
    `leaving` is called whenever a part of a request is about to leave: what fails before the first reached nobody.

    Raises UnsafeTarget (the address, or one that it redirects to, may not be reached), LimitExceeded (redirects,
    size), DeadlineExceeded, ToolFailed (no such host, no answer, no HTTP), and BadInput for a method or headers that
    cannot be sent.
    """
    if method not in METHODS or (body is not None and method in _FOLLOWS):
        raise BadInput(f"{quote(method)} cannot be sent: use {', '.join(METHODS)}; GET and HEAD take no body.")
    if body is None and method in _WITH_BODY:
        body = b""  # servers are told, lest they wait for one
    left = countdown(clock, limits.fetch_seconds)
    sent = {"user-agent": "toolwise", **checked_headers(headers or {})}
    private = frozenset((_allowed_host(host), port) for host, port in allowed)
    target = Target.read(url, limits)
    for _ in range(limits.redirects + 1):
        addresses = checked_addresses(target, private, network, left)
        request = Request(method, {**sent, "accept-encoding": "gzip"}, body)
        with exchange(target, addresses, request, network=network, left=left, leaving=leaving, tls=tls) as reply:
            follows = method in _FOLLOWS and reply.status in _REDIRECTS
            location = reply.headers.get("location") if follows else None
            if location is None:
                shown = {name: value for name, value in reply.headers.items() if name in _SHOWN}
                return Response(reply.status, str(target), shown, _body(reply, limits.response_bytes))
        following = target.follow(location, limits)
        if (target.scheme, following.scheme) == ("https", "http"):
            raise UnsafeTarget("The page redirects from https to http, which anybody can read: choose another.")
        if following.origin != target.origin:
            sent = {name: value for name, value in sent.items() if name in _FOR_ANYBODY}
        target = following
    raise LimitExceeded(f"The page redirects more than {limits.redirects} times: choose another.")


def countdown(clock: Clock, seconds: float) -> Left:
    deadline = clock.monotonic() + seconds

    def left() -> float:
        remaining = deadline - clock.monotonic()
        if remaining <= 0:
            raise DeadlineExceeded(f"The page took longer than {seconds:g} seconds: try another.")
        return remaining

    return left


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """A tool's own headers, names in lower case. Raises BadInput for one that would change more than itself."""
    checked = {name.lower(): value for name, value in headers.items()}
    for name, value in checked.items():
        if name in _OURS or name.startswith("proxy-") or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise BadInput(f"The header {quote(name)} cannot be sent: leave it out, or give it one line of ASCII text.")
    return checked


def _allowed_host(text: str) -> str:
    try:
        return read_host(text)
    except UnsafeTarget as error:
        raise BadInput(f"{quote(text)} is no host that can be allowed: give a plain name or an address.") from error


def checked_addresses(target: Target, private: Collection[tuple[str, int]], network: Network, left: Left) -> list[str]:
    """The addresses that may be connected to: all that the name has, if every one may."""
    refusal = UnsafeTarget(f"The host {quote(target.host)} is not a public one on its usual port: choose another.")
    may_be_private = (target.host, target.port) in private
    if not may_be_private and not (target.has_default_port and (target.address or "." in target.host)):
        raise refusal
    found = [str(target.address)] if target.address else network.resolve(target.host, target.port, left())
    if not found:
        raise ToolFailed(f"There is no host {quote(target.host)}: choose another.")
    if not may_be_private and not all(is_public(ip_address(address)) for address in found):
        raise refusal
    return list(found)


def _body(reply: Reply, most: int) -> bytes:
    """The whole body, decoded. Raises LimitExceeded before more than `most` bytes are held."""
    encoding = reply.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip"):
        raise ToolFailed("The server sent an encoding that was not asked for: try another.")
    inflate = zlib.decompressobj(wbits=31) if encoding != "identity" else None
    body, received = bytearray(), False
    try:
        for part in reply.parts:
            received = True
            body += part if inflate is None else inflate.decompress(part, most + 1 - len(body))
            if len(body) > most:
                raise LimitExceeded(f"The page is longer than {most} bytes: choose another.")
            if inflate is not None and inflate.unused_data:  # it is kept, so it may not grow
                raise zlib.error
        if inflate is not None and received and not inflate.eof:
            raise zlib.error
    except zlib.error as error:
        raise ToolFailed("The server sent bytes that do not decode: try another.") from error
    return bytes(body)
