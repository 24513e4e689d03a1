"""One turn -> a reply of OpenAI's Responses: a message, then the calls, each an item of its own."""

from __future__ import annotations

from toolwise.core.chat import ChatCall, ChatReply, ChatRequest, StopReason, TokenUsage
from toolwise.notation.wire.base import Ident, Json
from toolwise.notation.wire.openai_responses.write import write_choice, write_format, write_tool
from toolwise.notation.wire.turn import any_broken, shown_as_text, told_stop

_INCOMPLETE = {StopReason.LENGTH: "max_output_tokens", StopReason.REFUSED: "content_filter"}


def write_reply(reply: ChatReply, request: ChatRequest, ident: Ident) -> Json:
    unread, calls = shown_as_text(reply.calls)
    text = reply.text + unread
    stop = told_stop(reply.stop, bool(calls), any_broken(calls))
    output: list[Json] = []
    if text or not calls:
        output.append(message_item(ident, 0, text, _item_status(stop if not calls else StopReason.END)))
    output += [call_item(ident, len(output) + number, call) for number, call in enumerate(calls)]
    return response(request, ident, output, stop, reply.usage)


def response(
    request: ChatRequest,
    ident: Ident,
    output: list[Json],
    stop: StopReason | None = None,
    usage: TokenUsage | None = None,
) -> Json:
    """The object that stands for a turn, which goes on where `stop` is None."""
    reason = _INCOMPLETE.get(stop) if stop else None
    return {
        "id": f"resp_{ident.id}",
        "object": "response",
        "created_at": ident.created,
        "status": "in_progress" if stop is None else "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": None,
        "max_output_tokens": request.max_tokens,
        "metadata": {},
        "model": ident.model,
        "output": output,
        "parallel_tool_calls": request.parallel,
        "previous_response_id": None,
        "temperature": request.temperature,
        "text": {"format": write_format(request.output)},
        "tool_choice": write_choice(request.choice),
        "tools": [write_tool(tool) for tool in request.tools],
        "top_p": request.top_p,
        "truncation": "disabled",
        "usage": None if usage is None else write_usage(usage),
    }


def message_item(ident: Ident, number: int, text: str | None, status: str) -> Json:
    """The item at this place of the output; it has no content yet where `text` is None."""
    content = [] if text is None else [text_part(text)]
    return {
        "id": f"msg_{ident.id}_{number}",
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": content,
    }


def text_part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def call_item(ident: Ident, number: int, call: ChatCall, status: str = "") -> Json:
    return {
        "id": f"fc_{ident.id}_{number}",
        "type": "function_call",
        "status": status or ("completed" if call.complete else "incomplete"),
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
    }


def write_usage(usage: TokenUsage) -> Json:
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt + usage.completion,
    }


def _item_status(stop: StopReason) -> str:
    return "incomplete" if stop in _INCOMPLETE else "completed"
