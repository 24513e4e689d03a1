"""Events of an agent's run, for people and for scripts. What models and tools wrote is shown as text, never obeyed."""

from __future__ import annotations

from typing import Any

from rich.text import Text as RichText

from toolwise.core.chat import ChatCall, TextDelta
from toolwise.core.jsonio import dumps, printable
from toolwise.decode.events import AgentEvent, CallEnded, CallStarted, CallWaits, RunEnded
from toolwise.decode.show import visible

_RESULT_CHARS = 300  # shown to a person; the model and `--json` have all of it


def event_text(event: AgentEvent) -> RichText:
    """What a terminal shows of an event; calls and results stand on lines of their own."""
    match event:
        case TextDelta(text):
            return RichText(visible(text))
        case CallStarted(_, call):
            return RichText(f"\n→ {_call(call)}\n", style="cyan")
        case CallEnded(_, call, result):
            shown = printable(result.text, _RESULT_CHARS)
            return RichText(f"\n← {printable(call.name)}: {shown}\n", style="green" if result.ok else "red")
        case CallWaits(_, call, approval):
            return RichText(f"\n? {printable(call.name)} waits for a person: approval {approval}\n", style="yellow")
        case RunEnded(reason) if reason not in ("end", "stop"):
            return RichText(f"\n[{reason}]", style="dim")
        case _:
            return RichText("")


def event_json(event: AgentEvent) -> str:
    """One line of JSON; `""` for what only a program that keeps the run's state needs."""
    told = _fields(event)
    return dumps(told) if told else ""


def _fields(event: AgentEvent) -> dict[str, Any]:
    match event:
        case TextDelta(text):
            return {"event": "text", "text": text}
        case CallStarted(id, call):
            return {"event": "call", "id": id, "name": call.name, "arguments": call.arguments}
        case CallEnded(id, call, result):
            told = {"code": result.code, "text": result.text, "seconds": result.seconds, "truncated": result.truncated}
            return {"event": "result", "id": id, "name": call.name, **told}
        case CallWaits(id, call, approval):
            return {"event": "waits", "id": id, "name": call.name, "arguments": call.arguments, "approval": approval}
        case RunEnded(reason, state):
            usage = {"prompt": state.usage.prompt, "completion": state.usage.completion, "cached": state.usage.cached}
            return {"event": "end", "reason": reason, "text": state.text, "run": state.id, "usage": usage}
        case _:
            return {}


def _call(call: ChatCall) -> str:
    return f"{printable(call.name)}({printable(call.arguments)})" if call.name else printable(call.arguments)
