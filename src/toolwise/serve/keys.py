"""Who may use the server for programs: keys, of which only digests are kept, each with whom it stands for.

    [[keys]]
    sha256 = "..."                      of the key
    principal = "ann"                   who every call is for
    expires = 2027-01-01T00:00:00Z      if it does
    audience = ["lab"]                  servers (`--audience`) that it is for; without: every one that has this file
    doors = ["messages", "models"]      what it opens there; without: everything

A request brings its key as the official clients send it: `Authorization: Bearer`, `x-api-key`, `x-goog-api-key`, or
`?key=`. One that brings several must bring the same person's in each.

Covered: a key that is guessed by its timing, keys in a stolen file, names compared by their beginnings. Not covered:
whoever reads this process's memory, or the connection where no TLS stands in front.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from starlette.datastructures import Headers, QueryParams

from toolwise.core.clock import Clock, SystemClock
from toolwise.core.errors import BadInput, Unauthenticated
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.toml import quoted, read_toml
from toolwise.core.types import Principal

_CLOCK = SystemClock()
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)
_FIELDS = frozenset({"sha256", "principal", "expires", "audience", "doors"})
_ENTRY_BYTES = 512  # of one key; its digest, a name, a time
#: On the machine itself, where no keys are asked for.
LOCAL = Principal("local")


@dataclass(frozen=True, slots=True)
class Key:
    """`digest` is the key's SHA-256. None: for ever, for every server, for all of its doors."""

    digest: bytes
    principal: str
    expires: datetime | None = None
    audience: frozenset[str] | None = None
    doors: frozenset[str] | None = None


class Keys:
    """The keys of one server, whose name is `audience`."""

    def __init__(self, keys: Iterable[Key], audience: str = "", clock: Clock = _CLOCK) -> None:
        self._keys = tuple(keys)
        self._audience = audience
        self._clock = clock
        if len({key.digest for key in self._keys}) < len(self._keys):
            raise BadInput("A key stands twice among the keys: give everybody one of their own.")

    def principal(self, headers: Headers, query: QueryParams, door: str) -> Principal:
        """Who the request's key stands for. Raises Unauthenticated, which does not say what is wrong with the key."""
        found = {self._owner(given, door) for given in brought(headers, query)}
        if len(found) != 1 or None in found:
            raise Unauthenticated("Send a key that opens this, such as Authorization: Bearer KEY.")
        (owner,) = found
        return Principal(str(owner))

    def _owner(self, given: str, door: str) -> str | None:
        digest, owner = digest_of(given), None
        for key in self._keys:  # all of them, so that the time says nothing
            if hmac.compare_digest(key.digest, digest) and self._opens(key, door):
                owner = key.principal
        return owner

    def _opens(self, key: Key, door: str) -> bool:
        expired = key.expires is not None and key.expires <= self._clock.now()
        elsewhere = key.audience is not None and self._audience not in key.audience
        return not expired and not elsewhere and (key.doors is None or door in key.doors)


def brought(headers: Headers, query: QueryParams) -> list[str]:
    """Every key that a request brings."""
    given = [*headers.getlist("x-api-key"), *headers.getlist("x-goog-api-key"), *query.getlist("key")]
    for line in headers.getlist("authorization"):
        scheme, _, key = line.partition(" ")
        given.append(key.strip() if scheme.lower() == "bearer" else "")
    return given


def digest_of(key: str) -> bytes:
    """SHA-256 of a key, by which it is known here; also of one that is no Unicode, which opens nothing."""
    return hashlib.sha256(key.encode(errors="surrogateescape")).digest()


def new_key() -> str:
    """A key that nobody can guess."""
    return f"tw-{secrets.token_urlsafe(32)}"


def entry(key: str, principal: str, expires: datetime | None = None) -> str:
    """What a file of keys says of a key. Raises BadInput."""
    _check_name(principal, "principal", LIMITS)
    until = f"expires = {expires.isoformat()}\n" if expires else ""
    return f'[[keys]]\nsha256 = "{digest_of(key).hex()}"\nprincipal = {quoted(principal)}\n{until}'


def readable_by_others(file: Path) -> bool:
    """Whether other users of this machine can read the digests, and for whom keys are."""
    return os.name == "posix" and bool(_mode(file) & 0o004)


def read_keys(file: Path, audience: str = "", clock: Clock = _CLOCK, limits: Limits = LIMITS) -> Keys:
    """The keys of a file. Raises BadInput naming the file and the key that cannot be used, and for a file to which
    anybody on this machine can add a key."""
    if os.name == "posix" and _mode(file) & 0o002:
        raise BadInput(f"Every user of this machine can write keys into {str(file)!r}: chmod 600 it.")
    told = read_toml(file, replace(limits, settings_bytes=limits.keys * _ENTRY_BYTES))
    listed = told.get("keys")
    if set(told) != {"keys"} or not isinstance(listed, list) or not 0 < len(listed) <= limits.keys:
        raise BadInput(f"{str(file)!r} needs tables [[keys]] and nothing else, at most {limits.keys}.")
    try:
        return Keys([_key(number, each, limits) for number, each in enumerate(listed, 1)], audience, clock)
    except BadInput as error:
        raise BadInput(f"{str(file)!r}: {error}") from None


def _mode(file: Path) -> int:
    """Its permissions; none where it cannot be looked at, which whoever reads it will say."""
    try:
        return file.stat().st_mode
    except OSError:
        return 0


def _key(number: int, told: Any, limits: Limits) -> Key:
    where = f"key {number}"
    if not isinstance(told, dict) or not set(told) <= _FIELDS:
        raise BadInput(f"{where} may have {', '.join(sorted(_FIELDS))}.")
    digest, expires = told.get("sha256"), told.get("expires")
    if not isinstance(digest, str) or not _HEX.fullmatch(digest):
        raise BadInput(f"{where} needs sha256, the key's digest in 64 hex digits.")
    _check_name(told.get("principal"), f"{where}: principal", limits)
    if expires is not None and (not isinstance(expires, datetime) or expires.tzinfo is None):
        raise BadInput(f"{where}: expires is a time with its zone, such as 2027-01-01T00:00:00Z.")
    audience, doors = (_names(told.get(name), f"{where}: {name}", limits) for name in ("audience", "doors"))
    return Key(bytes.fromhex(digest), told["principal"], expires, audience, doors)


def _names(told: Any, what: str, limits: Limits) -> frozenset[str] | None:
    if told is None:
        return None
    if not isinstance(told, list):
        raise BadInput(f"{what} is a list of names.")
    for name in told:
        _check_name(name, what, limits)
    return frozenset(told)


def _check_name(name: Any, what: str, limits: Limits) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= limits.id_chars or not name.isprintable():
        raise BadInput(f"{what} is a name of at most {limits.id_chars} characters that print.")
