"""The life of one connection to a server, which ends once and for one reason; and what its server said meanwhile.

Both ends write here: the transport, when the server breaks the protocol, and the session, when it is closed.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field

from toolwise.core.jsonio import printable


@dataclass
class Life:
    """`why` is the first reason of the end, as a sentence goes on behind "the server": "ended", "wrote no message".

    `nonce` marks the answers that the transport gives instead of a server that was not reached.
    """

    ended: asyncio.Event = field(default_factory=asyncio.Event)
    why: str = ""
    said: bytes = b""
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))

    def end(self, why: str) -> None:
        if not self.ended.is_set():
            self.why = why
            self.ended.set()

    def last_words(self, chars: int) -> str:
        """The last line that its program wrote to its standard error, as an operator may read it."""
        lines = [line for line in self.said.decode("utf-8", "replace").splitlines() if line.strip()]
        return printable(lines[-1].strip(), chars) if lines else ""
