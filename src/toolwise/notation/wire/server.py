"""What other servers answer: an event that is JSON, and what their errors are here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from toolwise.core import jsonio
from toolwise.core.errors import BadInput, ModelUnavailable, ToolwiseError
from toolwise.core.jsonio import printable
from toolwise.core.limits import LIMITS, Limits

_MOST_TOKENS = 10**12


def event_json(data: str, limits: Limits = LIMITS) -> Mapping[str, Any]:
    """The object in an event of a server. Raises ModelUnavailable where there is none."""
    try:
        value = jsonio.loads(data, replace(limits, string_bytes=limits.event_bytes))
    except ToolwiseError as error:
        raise ModelUnavailable(f"The server sent an event that is no JSON: {error}.") from None
    if not isinstance(value, Mapping):
        raise ModelUnavailable("The server sent an event that is no JSON object.")
    return value


def count_of(told: Any) -> int | None:
    """A number of tokens that a server tells; None for what is none, or more than anybody could have used."""
    return told if type(told) is int and 0 <= told < _MOST_TOKENS else None


def promised_otherwise(api: str) -> ModelUnavailable:
    """What to raise for an answer that is none of this API."""
    return ModelUnavailable(f"The server answers with something else than {api} promises.")


def read_error(status: int, body: Any, kinds: Mapping[str, int], limits: Limits = LIMITS) -> ToolwiseError:
    """What a server's error is here: the request's fault (BadInput), or the server's (ModelUnavailable).

    In a stream there is no `status` (0): the error's own number stands for it, or its word, of which `kinds` says the
    status. What the server says of it is kept, in whichever of the shapes that are about; of a key it is not repeated.
    """
    if isinstance(body, list) and body:  # in a stream that is a JSON array
        body = body[0]
    error = body.get("error", body) if isinstance(body, Mapping) else body
    if not isinstance(error, Mapping):
        return _said(status or 500, error, limits)
    words = [error.get(key) for key in ("code", "type", "status")]
    numbers = [kinds.get(word, 0) if isinstance(word, str) else word for word in words]
    own = next((number for number in numbers if isinstance(number, int) and number), 500)
    return _said(status or own, error.get("message") or error.get("detail"), limits)


def _said(status: int, message: Any, limits: Limits) -> ToolwiseError:
    if status in (401, 403):
        return ModelUnavailable(f"The server refuses the key ({status}): check it and what it may be used for.")
    words = jsonio.one_line(message) if isinstance(message, str) else ""
    told = f": {printable(words, limits.error_line_chars).rstrip('.')}" if words else ""
    if status in (400, 404, 413, 422):
        return BadInput(f"The server refuses the request ({status}){told}.")
    return ModelUnavailable(f"The server does not answer ({status}){told}.")
