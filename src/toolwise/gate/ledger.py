"""One call id of one run executes once: the same call again gets the stored result, another one is a conflict.

In memory, for the lifetime of the gate; of the finished calls the oldest are forgotten when there are more than
`limits.replays`. Refusals, and results that could not be recorded, are not stored: such a call may be tried again under
its id. Not covered: several
processes, crashes, and forgotten calls; for `write` tools the gate asks the audit log about those.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from toolwise.core.errors import Conflict, InProgress, StorageUnavailable
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Result

Key = tuple[str, str, str]  # principal, run, call: nobody can ask for another principal's result


@dataclass(slots=True)
class Claim:
    """A call's place in the ledger. Whoever holds it executes and sets `result`, if it is not set already."""

    fingerprint: str
    result: Result | None = None


class Ledger:
    def __init__(self, limits: Limits = LIMITS) -> None:
        self._most = limits.replays
        self._claims: OrderedDict[Key, Claim] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def claim(self, key: Key, fingerprint: str) -> Iterator[Claim]:
        """The claim on this call: with its earlier result, or held by the caller alone until the block ends.

        Raises Conflict when the key was used for another call, InProgress while another thread executes it.
        """
        with self._lock:
            claim = self._claims.get(key)
            if claim is None:
                claim = self._claims[key] = Claim(fingerprint)
            elif claim.fingerprint != fingerprint:
                raise Conflict("This call id was used for another call; give every call an id of its own.")
            elif claim.result is None:
                raise InProgress("This call is being executed; wait for its result.")
        try:
            yield claim
        finally:
            with self._lock:
                if claim.result is None or claim.result.code == StorageUnavailable.code:
                    self._claims.pop(key, None)
                self._forget()

    def _forget(self) -> None:
        excess = len(self._claims) - self._most
        if excess > 0:
            finished = [key for key, claim in self._claims.items() if claim.result is not None]
            for key in finished[:excess]:
                del self._claims[key]
