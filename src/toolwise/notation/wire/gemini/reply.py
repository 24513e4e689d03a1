"""A turn of the model <-> a response of the Gemini API."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from toolwise.core.chat import ChatCall, ChatReply, ChatRequest, StopReason, TokenUsage
from toolwise.notation.wire.base import Ident, Json
from toolwise.notation.wire.calls import object_of, shown
from toolwise.notation.wire.server import count_of, promised_otherwise
from toolwise.notation.wire.turn import any_broken, arguments_text, cut_off, minted_id, own_id, told_stop

_REASONS = {StopReason.LENGTH: "MAX_TOKENS", StopReason.REFUSED: "SAFETY"}
_REFUSALS = frozenset(
    {"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"}
    | {"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"}
)


def write_reply(reply: ChatReply, request: ChatRequest, ident: Ident) -> Json:
    """A call that is none, or that was cut off, is text: the API has only whole objects for arguments."""
    text = [{"text": reply.text}] if reply.text else []
    parts = [*text, *write_calls(reply.calls)] or [{"text": ""}]
    called = any("functionCall" in part for part in parts)
    return response(ident, parts, finish_reason(reply.stop, called, any_broken(reply.calls)), reply.usage)


def write_calls(calls: Collection[ChatCall]) -> list[Json]:
    """Parts; what is no call comes first, since in a stream it is told with the text."""
    parts: list[Json] = []
    texts: list[Json] = []
    for call in calls:
        arguments = object_of(call)
        if arguments is None:
            texts.append({"text": shown(call)})
        else:
            parts.append({"functionCall": {"id": call.id, "name": call.name, "args": arguments}})
    return [*texts, *parts]


def finish_reason(stop: StopReason, called: bool, broken: bool) -> str:
    """`called`: whether a call was written; a turn that waits for calls and has none has only what began like one."""
    if stop is StopReason.CALLS and not called and not broken:
        return "MALFORMED_FUNCTION_CALL"
    return _REASONS.get(told_stop(stop, called, broken), "STOP")


def response(ident: Ident, parts: list[Json], reason: str | None = None, usage: TokenUsage | None = None) -> Json:
    """A whole response, or a piece of one: only the last piece has a reason and the usage."""
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    if reason is not None:
        candidate["finishReason"] = reason
    told: Json = {"candidates": [candidate], "modelVersion": ident.model, "responseId": ident.id}
    if usage is not None:
        told["usageMetadata"] = {
            "promptTokenCount": usage.prompt,
            "cachedContentTokenCount": usage.cached,
            "candidatesTokenCount": usage.completion,
            "totalTokenCount": usage.prompt + usage.completion,
        }
    return told


def read_reply(body: Any) -> ChatReply:
    """Raises ModelUnavailable for what is no response."""
    reading = Reading()
    calls: list[ChatCall] = []
    texts: list[str] = []
    for part in reading.read(body):
        if isinstance(part, str):
            texts.append(part)
        else:
            calls.append(part)
    if not reading.heard:
        raise promised_otherwise("the Gemini API")
    return ChatReply("".join(texts), tuple(calls), reading.stop(), reading.usage)


class Reading:
    """Responses, or pieces of one, as they come."""

    def __init__(self) -> None:
        self.usage = TokenUsage()
        self.calls: list[ChatCall] = []
        self.heard = False  # a candidate, or why there is none
        self._reason = ""
        self._blocked = False

    def read(self, body: Any) -> list[str | ChatCall]:
        """What a response says, in its order; thoughts are passed over."""
        if not isinstance(body, dict):
            raise promised_otherwise("the Gemini API")
        feedback, candidates = body.get("promptFeedback"), body.get("candidates")
        if isinstance(feedback, dict) and feedback.get("blockReason"):
            self.heard = self._blocked = True
        self.usage = _usage(body.get("usageMetadata"), self.usage)
        candidate = candidates[0] if isinstance(candidates, list) and candidates else None
        if not isinstance(candidate, dict):
            return []
        self.heard = True
        reason = candidate.get("finishReason")
        self._reason = (reason if isinstance(reason, str) else "OTHER") if reason else self._reason
        content = candidate.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        listed = parts if isinstance(parts, list) else []
        found = [said for part in listed if isinstance(part, dict) for said in self._part(part)]
        message = candidate.get("finishMessage")
        if candidate.get("finishReason") == "MALFORMED_FUNCTION_CALL" and isinstance(message, str):
            found.append(self._called(ChatCall(minted_id("call_"), "", message)))
        return found

    def stop(self) -> StopReason:
        """An unknown reason, or none, is a turn that did not come to its end: nothing of it is executed."""
        if self._blocked or self._reason in _REFUSALS:
            return StopReason.REFUSED
        malformed = self._reason == "MALFORMED_FUNCTION_CALL" and any(not call.name for call in self.calls)
        if not (self._reason == "STOP" or malformed) or not all(call.complete for call in self.calls):
            return StopReason.LENGTH
        return StopReason.CALLS if self.calls else StopReason.END

    def _part(self, part: Json) -> list[str | ChatCall]:
        if part.get("thought") is True:
            return []
        call, text = part.get("functionCall"), part.get("text")
        if isinstance(call, dict):
            id = own_id(call.get("id"), [known.id for known in self.calls], "call_")
            name, arguments = call.get("name"), arguments_text(call.get("args"))
            made = ChatCall(id, name if isinstance(name, str) else "", arguments, not cut_off(arguments))
            return [self._called(made)]
        return [text] if isinstance(text, str) and text else []

    def _called(self, call: ChatCall) -> ChatCall:
        self.calls.append(call)
        return call


def _usage(told: Any, before: TokenUsage) -> TokenUsage:
    """Every piece may tell what was used so far; the last word counts. Thoughts are part of what was written."""
    if not isinstance(told, dict):
        return before

    def count(name: str) -> int:
        return count_of(told.get(name)) or 0

    written = count("candidatesTokenCount") + count("thoughtsTokenCount")
    return TokenUsage(count("promptTokenCount"), written, count("cachedContentTokenCount"))
