"""Where requests go, and what the operator sends along.

The operator's `base_url` decides. Without one the document's own server does, and only where there is exactly one, for
all of it, with https, a public host on its usual port, and nothing to fill in. What is sent along (`auth`) comes from
the environment, and goes only where the operator said: the document must not choose who is told a secret.

Not covered: a name in `base_url` that leads into the own network, unless the operator says so (`own_network`): such a
call is refused when it is made, as every other one (`tools.confined.fetch`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from toolwise.core import jsonio
from toolwise.core.errors import BadInput, UnsafeTarget
from toolwise.core.jsonio import quote
from toolwise.core.limits import Limits
from toolwise.tools.confined.fetch import checked_headers
from toolwise.tools.confined.targets import Target
from toolwise.tools.openapi.document import Description
from toolwise.tools.openapi.parameters import leaves_its_place

_VARIABLE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
_SHORTEST = 4  # characters; to blank "1" out of every answer would hide everything and protect nothing


@dataclass(frozen=True, slots=True)
class Server:
    """`url` has no slash at its end. `private` is what `safe_fetch` is allowed beyond the public internet, and `away`
    says whether what a tool is given leaves the house."""

    url: str
    private: frozenset[tuple[str, int]]
    away: bool


@dataclass(frozen=True, slots=True)
class Secrets:
    """What is added to every request: headers, their names in lower case, and query parameters."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    texts: tuple[str, ...] = field(default=(), repr=False)

    @property
    def names(self) -> frozenset[str]:
        """As `operations.read_operation` takes them."""
        return frozenset(self.headers) | {f"?{name}" for name in self.query}

    def blanked(self, text: str) -> str:
        """The text without any of them: a server may repeat what it was sent."""
        for secret in self.texts:
            text = text.replace(secret, "[secret]")
        return text


def server_of(description: Description, base_url: str | None, own_network: bool, limits: Limits) -> Server:
    """Raises BadInput where nobody said in one way only where to go."""
    url = _servers_own(description) if base_url is None else str(base_url)
    try:
        target = Target.read(url, limits)
    except UnsafeTarget as error:
        raise BadInput(f"The server {quote(url)} is no address: {error}") from None
    path = target.path.rstrip("/")
    if "?" in target.path or "#" in url or leaves_its_place(path, limits):
        raise BadInput(f"The server {quote(url)} has a query, a fragment or .. in it: leave that out.")
    literal, away = target.address, not target.is_near
    if base_url is None:
        public = target.has_default_port and away and (literal is not None or "." in target.host)
        if target.scheme != "https" or not public:
            raise BadInput(
                f"The description wants to be asked at {quote(url)}, which is no public https server: give base_url."
            )
    chosen = base_url is not None and (literal is not None or not away or own_network)
    private = frozenset({(target.host, target.port)}) if chosen else frozenset()
    return Server(str(target).removesuffix(target.path) + path, private, away and not own_network)


def secrets_of(auth: str | Mapping[str, str] | None, server: Server, *, given: bool) -> Secrets:
    """`Authorization: Bearer $TOKEN`, several with `;` between or as a mapping; `?key: $KEY` goes into the query.

    `given` says whether the operator gave the server's address. Raises BadInput, which never quotes a value.
    """
    pairs = dict(auth) if isinstance(auth, Mapping) else _pairs(str(auth or ""))
    if not pairs:
        return Secrets()
    if not given:
        raise BadInput("Give base_url with auth: where a secret goes is not the description's to say.")
    if server.url.startswith("http:") and server.away:
        raise BadInput("auth would cross the network in plain text: give an https base_url, or say own_network.")
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    texts: set[str] = set()
    for name, template in pairs.items():
        value, secret = _filled(name, template)
        if name.startswith("?"):
            query[name[1:]] = value
        else:
            headers |= checked_headers({name: value})
        texts |= {spelled for text in (value, secret) for spelled in (text, jsonio.dumps(text)[1:-1])}
    texts = {text for text in texts if len(text) >= _SHORTEST}
    return Secrets(headers, query, tuple(sorted(texts, key=lambda text: (-len(text), text))))


def _servers_own(description: Description) -> str:
    servers = description.root.get("servers")
    only = servers[0] if isinstance(servers, list) and len(servers) == 1 else None
    if not isinstance(only, Mapping) or not isinstance(only.get("url"), str) or "{" in only["url"]:
        raise BadInput("The description does not name exactly one server, ready to be asked: give base_url.")
    url: str = only["url"]
    return url


def _pairs(text: str) -> dict[str, str]:
    pairs = [part.partition(":") for part in text.split(";") if part.strip()]
    return {name.strip(): value.strip() for name, _, value in pairs}


def _filled(name: str, template: str) -> tuple[str, str]:
    """The value to send, and the part of it that is secret."""
    found = _VARIABLE.findall(template) if isinstance(template, str) else []
    if len(found) != 1:
        raise BadInput(f"auth {quote(name)}: name one variable of the environment, as in 'Bearer $API_TOKEN'.")
    variable = "".join(found[0])
    secret = os.environ.get(variable, "").strip()
    if not secret:
        raise BadInput(f"auth {quote(name)}: the variable {variable} is not set: export it.")
    return _VARIABLE.sub(lambda _: secret, template), secret
