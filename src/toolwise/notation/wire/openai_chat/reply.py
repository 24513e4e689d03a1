"""One turn -> a reply of OpenAI's Chat Completions."""

from __future__ import annotations

from toolwise.core.chat import ChatReply, ChatRequest, StopReason, TokenUsage
from toolwise.notation.wire.base import Ident, Json
from toolwise.notation.wire.openai_chat.write import write_call
from toolwise.notation.wire.turn import any_broken, shown_as_text, told_stop

DONE = "[DONE]"
FINISH = {
    StopReason.END: "stop",
    StopReason.STOP: "stop",
    StopReason.CALLS: "tool_calls",
    StopReason.LENGTH: "length",
    StopReason.REFUSED: "content_filter",
}


def write_reply(reply: ChatReply, request: ChatRequest, ident: Ident) -> Json:
    unread, calls = shown_as_text(reply.calls)
    text = reply.text + unread
    stop = told_stop(reply.stop, bool(calls), any_broken(calls))
    message: Json = {"role": "assistant", "content": text if text or not calls else None, "refusal": None}
    if calls:
        message["tool_calls"] = [write_call(call) for call in calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": FINISH[stop]}
    return head(ident, "chat.completion") | {"choices": [choice], "usage": write_usage(reply.usage)}


def head(ident: Ident, kind: str) -> Json:
    return {"id": f"chatcmpl-{ident.id}", "object": kind, "created": ident.created, "model": ident.model}


def write_usage(usage: TokenUsage) -> Json:
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }
