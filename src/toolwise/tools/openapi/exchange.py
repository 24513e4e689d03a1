"""One call of an operation: the request that its arguments make, and what the answer is to a model.

Covered: every argument arrives in its place and nowhere else, or the call is refused (`parameters`); an answer is text,
bounded by `safe_fetch`, without the operator's secrets; a request that may have had its effect is never said to have
failed.

Not covered: what an answer says, which is data from outside; whether the server does what its description says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote as percent_encoded

from toolwise.core import jsonio
from toolwise.core.errors import (
    InvalidArguments,
    LimitExceeded,
    OutcomeUnknown,
    ToolFailed,
    ToolUnavailable,
    ToolwiseError,
)
from toolwise.core.limits import Limits
from toolwise.tools.confined.fetch import Response
from toolwise.tools.openapi.operations import Operation
from toolwise.tools.openapi.parameters import header_value, is_json, is_sent, leaves_its_place, path_value, query_parts
from toolwise.tools.openapi.server import Secrets, Server

Fetch = Callable[..., Response]
"""`safe_fetch`, or what takes its place in a test."""

_ACCEPT = "application/json, text/plain;q=0.9, */*;q=0.1"
_TEXT = re.compile(r"text/.+|application/(?:.+\+)?(?:json|xml|yaml)|application/x-ndjson", re.IGNORECASE)
_LATIN = re.compile(r'charset="?(?:iso-8859-1|latin-?1|windows-1252|us-ascii)\b', re.IGNORECASE)
_LATER = frozenset({429, 502, 503, 504})  # says that another time may be better
_GATEWAY = frozenset({502, 504})  # comes from a machine on the way, which does not know what the server did
_DONE_OR_NOT = frozenset({301, 302, 303})  # by their history: what was asked may have been done


@dataclass(frozen=True, slots=True)
class Caller:
    """Calls one operation. `repeatable` says whether what may have happened may be asked for again."""

    operation: Operation
    server: Server
    secrets: Secrets
    writes: bool
    repeatable: bool
    slashes: bool
    limits: Limits
    fetch: Fetch

    def __call__(self, arguments: Mapping[str, Any], key: str = "") -> str:
        """What the server answers. Raises InvalidArguments, ToolFailed, ToolUnavailable, OutcomeUnknown, and what
        `safe_fetch` raises."""
        url, headers, body = self._request(arguments)
        if key and self.operation.keyed:
            headers["idempotency-key"] = key
        left: list[None] = []
        try:
            response = self.fetch(
                url,
                method=self.operation.method,
                body=body,
                headers={**headers, **self.secrets.headers},
                allowed=self.server.private,
                limits=self.limits,
                leaving=lambda: left.append(None),
            )
        except ToolwiseError as error:
            if not (left and self.writes):
                raise
            raise self._lost(again=not isinstance(error, LimitExceeded)) from error
        return self._answer(response)

    def _request(self, arguments: Mapping[str, Any]) -> tuple[str, dict[str, str], bytes | None]:
        operation = self.operation
        path: dict[str, str] = {}
        query = [f"{_encoded(name)}={_encoded(value)}" for name, value in self.secrets.query.items()]
        headers = {"accept": _ACCEPT}
        for argument, value in arguments.items():
            parameter = operation.parameters.get(argument)
            if parameter is None or not is_sent(parameter, value):
                continue  # a part of the body, or of nothing
            if parameter.place == "path":
                path[parameter.name] = path_value(parameter, value, slashes=self.slashes, limits=self.limits)
            elif parameter.place == "query":
                query += query_parts(parameter, value)
            else:
                headers[parameter.name.lower()] = header_value(parameter, value)
        filled = re.sub(r"\{([^{}]*)\}", lambda found: path[found[1]], operation.path)
        if leaves_its_place(filled, self.limits):
            raise InvalidArguments("The arguments would lead to another path: leave out . and .. as a name.")
        url = self.server.url + filled + (f"?{'&'.join(query)}" if query else "")
        if len(url) > self.limits.url_chars:
            raise InvalidArguments(
                f"The address would be longer than {self.limits.url_chars} characters: ask for less."
            )
        body = _body(operation, arguments)
        if body is not None and operation.body is not None:
            headers["content-type"] = operation.body.media_type
        return url, headers, body

    def _answer(self, response: Response) -> str:
        status = response.status
        text = self.secrets.blanked(_text(response, self.limits))
        if status < 300 or (status < 400 and not self.writes):
            return text or f"status {status}, no content"
        if self.writes and not self.repeatable and status in _GATEWAY | _DONE_OR_NOT:
            raise OutcomeUnknown(f"The server answered {status}: it may have had its effect, do not repeat it.")
        html = "html" in response.headers.get("content-type", "")
        line = "" if html else jsonio.printable(text.strip().partition("\n")[0], self.limits.error_line_chars)
        kind = ToolUnavailable if status in _LATER else ToolFailed
        raise kind(f"The server answered {status}{f': {line}' if line else ''}")

    def _lost(self, *, again: bool) -> ToolwiseError:
        """The request left, and what came of it is not known."""
        if self.repeatable and again:
            return ToolUnavailable("The server did not answer as it should; try again later.")
        return OutcomeUnknown("The server's answer was lost, and it may have had its effect: do not repeat it.")


def _body(operation: Operation, arguments: Mapping[str, Any]) -> bytes | None:
    body = operation.body
    if body is None:
        return None
    if body.argument:
        return jsonio.dumps(arguments[body.argument]).encode() if body.argument in arguments else None
    said = {name: arguments[argument] for argument, name in body.properties.items() if argument in arguments}
    return jsonio.dumps(said).encode() if said or body.required else None


def _text(response: Response, limits: Limits) -> str:
    """The body as a model may read it: JSON without spaces, other text as it is, and of all else its kind and size."""
    kind = response.headers.get("content-type", "")
    text = response.body.decode("cp1252" if _LATIN.search(kind) else "utf-8", "replace")
    if is_json(kind):
        try:
            bounds = replace(limits, string_bytes=limits.response_bytes)
            return jsonio.dumps(jsonio.loads(text, bounds), bounds)
        except ToolwiseError:
            return text
    media = kind.partition(";")[0].strip()
    if response.body and media and not _TEXT.fullmatch(media):
        return f"{jsonio.printable(media, limits.name_chars)} of {len(response.body)} bytes, which is no text"
    return text


def _encoded(text: str) -> str:
    return percent_encoded(text, safe="")
