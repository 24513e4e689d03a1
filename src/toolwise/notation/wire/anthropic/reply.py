"""A turn of the model <-> a message of the Messages API."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from toolwise.core.chat import ChatCall, ChatReply, ChatRequest, StopReason, TokenUsage
from toolwise.notation.wire.base import Ident, Json
from toolwise.notation.wire.calls import object_of, shown
from toolwise.notation.wire.server import count_of, promised_otherwise
from toolwise.notation.wire.turn import any_broken, arguments_text, cut_off, own_id, told_stop

_STOPS = {
    StopReason.END: "end_turn",
    StopReason.STOP: "stop_sequence",
    StopReason.CALLS: "tool_use",
    StopReason.LENGTH: "max_tokens",
    StopReason.REFUSED: "refusal",
}
API = "the Messages API"
_ENDED = ("end_turn", "tool_use")


def write_reply(reply: ChatReply, request: ChatRequest, ident: Ident) -> Json:
    """A call that is none, or that was cut off, is text: the API has only whole objects for arguments."""
    texts = [reply.text]
    calls: list[Json] = []
    for call in reply.calls:
        arguments = object_of(call)
        if arguments is None:
            texts.append(shown(call))
        else:
            calls.append({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments})
    content = [{"type": "text", "text": text} for text in texts if text]
    return {
        **opening(ident),
        "content": [*content, *calls],
        **ending(told_stop(reply.stop, bool(calls), any_broken(reply.calls)), request),
        "usage": write_usage(reply.usage),
    }


def opening(ident: Ident) -> Json:
    """What a message says of itself before it has any content."""
    return {"id": f"msg_{ident.id}", "type": "message", "role": "assistant", "model": ident.model}


def ending(stop: StopReason, request: ChatRequest) -> Json:
    """How the API says why a turn ended; which of several stop strings was met, nobody told."""
    met = request.stop[0] if stop is StopReason.STOP and len(request.stop) == 1 else None
    return {"stop_reason": _STOPS[stop], "stop_sequence": met}


def write_usage(usage: TokenUsage) -> Json:
    """The API counts what was read from the cache apart from the rest of the prompt."""
    return {
        "input_tokens": usage.prompt - usage.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.completion,
    }


def read_reply(body: Any) -> ChatReply:
    """Raises ModelUnavailable for what is no message. Blocks that are no text and no call of ours are passed over."""
    blocks = body.get("content") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(blocks, list):
        raise promised_otherwise(API)
    texts: list[str] = []
    calls: dict[str, ChatCall] = {}
    for block in blocks:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text" and isinstance(block.get("text"), str):
            texts.append(block["text"])
        elif kind == "tool_use":
            call = read_call(block, calls)
            calls[call.id] = call
    made = tuple(calls.values())
    return ChatReply("".join(texts), made, read_stop(body.get("stop_reason"), made), read_usage(body.get("usage")))


def read_call(block: Json, taken: Collection[str]) -> ChatCall:
    """A call as it stands in a block, with an id of its own where the server gave none, or one that it gave before."""
    name, arguments = block.get("name"), arguments_text(block.get("input"))
    id = own_id(block.get("id"), taken, "toolu_")
    return ChatCall(id, name if isinstance(name, str) else "", arguments, complete=not cut_off(arguments))


def read_stop(reason: Any, calls: Sequence[ChatCall]) -> StopReason:
    """Servers say `end_turn` beside calls and `tool_use` beside none: what is there counts as well as the reason.

    An unknown reason, or none, is a turn that did not come to its end: nothing of it is executed.
    """
    if reason in _ENDED:
        if not all(call.complete for call in calls):
            return StopReason.LENGTH
        return StopReason.CALLS if calls else StopReason.END
    if reason == "stop_sequence":
        return StopReason.STOP
    return StopReason.REFUSED if reason == "refusal" else StopReason.LENGTH


def read_usage(usage: Any, before: TokenUsage | None = None) -> TokenUsage:
    """Counts that are missing are those that were told before: in a stream they come in two parts."""
    told = usage if isinstance(usage, dict) else {}
    before = before or TokenUsage()

    def count(name: str) -> int | None:
        return count_of(told.get(name))

    fresh, cached, made = (count(f"{name}input_tokens") for name in ("", "cache_read_", "cache_creation_"))
    completion = count("output_tokens")
    cached = before.cached if cached is None else cached
    prompt = before.prompt if fresh is None else fresh + cached + (made or 0)
    return TokenUsage(prompt, before.completion if completion is None else completion, cached)
