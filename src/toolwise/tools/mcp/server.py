"""A server with whatever session it has at the moment, and what becomes of a call there.

A session that is no more is made anew once, under a lock, before the next call; a call that cannot have arrived is made
again in the new one. Whether one that may have had its effect is made again is the gate's to say: of a tool that may
be repeated it is `tool_unavailable`, which the gate tries again; of any other, `outcome_unknown`.
"""

from __future__ import annotations

import ssl
import threading
from typing import Any

from toolwise.core.clock import Clock
from toolwise.core.errors import (
    DeadlineExceeded,
    DefinitionChanged,
    OutcomeUnknown,
    ToolFailed,
    ToolUnavailable,
    ToolwiseError,
)
from toolwise.core.jsonio import printable
from toolwise.core.limits import Limits
from toolwise.tools.confined.network import Network
from toolwise.tools.mcp.config import ServerConfig
from toolwise.tools.mcp.results import text_of
from toolwise.tools.mcp.session import Listed, Lost, Refused, Session
from toolwise.tools.mcp.web import NOT_LET_IN, NOT_SENT

KEY = "toolwise/idempotency-key"
"""The member of `_meta` in which a call's key goes along."""

#: Errors of a request that was not understood, and not carried out (JSON-RPC and MCP). Not -32600, which the package
#: also says where it cannot read an answer.
_NOT_DONE = frozenset({-32601, -32602, -32020, -32021, -32022})
_SESSION_GONE = -32600, "Session terminated"  # what the package says for the status 404 of a server with sessions


class Server:
    """One configured server. Threads may share it."""

    def __init__(
        self, config: ServerConfig, limits: Limits, network: Network, clock: Clock, tls: ssl.SSLContext | None
    ) -> None:
        self.config = config
        self._limits, self._network, self._clock, self._tls = limits, network, clock, tls
        self._lock = threading.Lock()
        self._silences = 0
        self._began = 0.0
        self._closed = False
        self._session = self._new()

    def first(self) -> Session:
        """The session that was begun with the server, once it is ready. Raises Lost."""
        try:
            self._session.ready(self._patience())
        except TimeoutError:
            self._session.close()
            seconds = self.config.start_seconds
            raise Lost(f"did not list its tools within {seconds:g} seconds", sent=False) from None
        return self._session

    def call(self, tool: Listed, arguments: dict[str, Any], key: str, seconds: float, repeatable: bool) -> str:
        """What the tool answers. Raises ToolFailed, ToolUnavailable, DeadlineExceeded, OutcomeUnknown,
        DefinitionChanged."""
        deadline = self._clock.monotonic() + min(seconds, self.config.seconds)
        meta = {KEY: key} if key else {}
        for again in (True, False):
            session = self._alive(deadline)
            try:
                self._check(session, tool, deadline)
                result = session.request(tool.name, arguments, meta, self._left(deadline))
                self._silences = 0
                return self._answer(result)
            except Lost as lost:
                if lost.sent or not again:
                    raise _lost(repeatable, lost.sent) from None
            except Refused as refusal:
                self._silences = 0
                if (refusal.code, str(refusal)) != _SESSION_GONE or not again:
                    raise self._refused(refusal, repeatable) from None
                session.close()
            except TimeoutError:
                self._silent(session)
                if repeatable:
                    raise DeadlineExceeded("The server did not answer in time: ask it for less.") from None
                raise OutcomeUnknown(
                    "The server did not answer in time, and it may have had its effect: do not repeat it."
                ) from None
            except ValueError:  # the package's, for a result that is none
                raise _lost(repeatable, sent=True) from None
        raise AssertionError("the second time ends in one way or another")

    def close(self) -> None:
        """End its session; no other is made."""
        with self._lock:
            self._closed = True
            self._session.close()

    def _new(self) -> Session:
        self._began = self._clock.monotonic()
        return Session(self.config, self._limits, self._network, self._tls)

    def _patience(self) -> float:
        """Seconds that the session has left to become ready."""
        return max(0.0, self._began + self.config.start_seconds - self._clock.monotonic())

    def _alive(self, deadline: float) -> Session:
        """The session, made anew if it is no more; one that begins slowly is not disturbed. Raises ToolUnavailable."""
        if not self._lock.acquire(timeout=self._left(deadline)):
            raise _lost(True, sent=False)
        try:
            if self._session.dead and not self._closed:
                self._session.close()
                self._session = self._new()
                self._silences = 0
            self._session.ready(self._left(deadline))
            return self._session
        except Lost:
            raise _lost(True, sent=False) from None
        except TimeoutError:
            if not self._patience():
                self._session.close()
            raise _lost(True, sent=False) from None
        finally:
            self._lock.release()

    def _check(self, session: Session, tool: Listed, deadline: float) -> None:
        """Whether the server describes the tool as it did when the registry was made. Nothing was sent before."""
        try:
            now = session.listing(self._left(deadline)).get(tool.name)
        except (Lost, Refused, TimeoutError, ValueError):
            raise _lost(True, sent=False) from None
        if now is None or now.fingerprint != tool.fingerprint:
            raise DefinitionChanged("The server describes this tool otherwise than before: do without it.")

    def _left(self, deadline: float) -> float:
        left = deadline - self._clock.monotonic()
        if left <= 0:
            raise ToolUnavailable("The server took all the time of this call to start: try again.")
        return left

    def _silent(self, session: Session) -> None:
        self._silences += 1
        if self._silences >= self._limits.mcp_silences:
            threading.Thread(target=session.close, daemon=True, name="toolwise-mcp-close").start()

    def _answer(self, result: Any) -> str:
        if result.result_type != "complete":
            raise ToolFailed("The server wants to be told more before it answers, which is not done here.")
        text = text_of(result, self._limits)
        if result.is_error:
            raise ToolFailed(f"The server says: {printable(text.strip() or 'nothing', self._limits.message_chars)}")
        return text

    def _refused(self, refusal: Refused, repeatable: bool) -> ToolwiseError:
        said = printable(str(refusal), self._limits.error_line_chars)
        if refusal.ours and refusal.code == NOT_SENT:
            return ToolUnavailable(f"The server was not reached: {said}")
        if refusal.ours and refusal.code == NOT_LET_IN:
            return ToolFailed(f"The server does not let this call in: {said}")
        if refusal.code in _NOT_DONE:
            return ToolFailed(f"The server refuses the call ({refusal.code}): {said}")
        return _lost(repeatable, sent=True)


def _lost(repeatable: bool, sent: bool) -> ToolwiseError:
    if sent and not repeatable:
        return OutcomeUnknown("The server's answer was lost, and it may have had its effect: do not repeat it.")
    return ToolUnavailable("The server does not answer as it should; try again later.")
