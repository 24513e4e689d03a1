"""Events of the decode loop, for people and for scripts. Text of models and tools is shown as text, never as markup."""

from __future__ import annotations

import re
from typing import Any

from rich.text import Text as RichText

from toolwise.core.jsonio import dumps
from toolwise.decode.engine import CallEnded, CallStarted, Event, Stop, Text

#: What a terminal would obey instead of show: C0 and C1 controls but for tab and line end, and bidirectional marks.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def event_text(event: Event) -> RichText:
    """What a terminal shows of an event: text as it is, calls in colour, and a stop that is not the model's own."""
    match event:
        case Text(text):
            return RichText(visible(text))
        case CallEnded(result, inserted):
            shown = inserted or f" [{result.code}]"
            return RichText(visible(shown), style="bold green" if result.ok else "bold red")
        case Stop(reason) if reason == "length":
            return RichText(" …", style="dim")
        case _:
            return RichText("")


def event_json(event: Event) -> str:
    """One line of JSON for an event."""
    return dumps(_fields(event))


def visible(text: str) -> str:
    """The text with control characters replaced by what can be seen of them."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _fields(event: Event) -> dict[str, Any]:
    match event:
        case Text(text):
            return {"event": "text", "text": text}
        case CallStarted(call):
            return {"event": "call", "id": call.id, "text": call.text, "complete": call.complete}
        case CallEnded(result, inserted):
            return {
                "event": "result",
                "id": result.call_id,
                "code": result.code,
                "text": result.text,
                "seconds": result.seconds,
                "truncated": result.truncated,
                "inserted": inserted,
            }
        case Stop(reason, sampled, fed):
            return {"event": "stop", "reason": reason, "sampled": sampled, "fed": fed}
