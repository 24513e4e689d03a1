"""A ChatRequest -> a request of the Messages API.

The API has no field for a seed, and the name of an output's schema; it must be told a bound on the answer; and where
only some of the tools may be called, only these are sent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolwise.core.chat import ChatRequest, Message, Role, ToolSpec
from toolwise.core.limits import LIMITS
from toolwise.notation.wire.base import Json
from toolwise.notation.wire.calls import object_of, only_objects
from toolwise.notation.wire.fields import only
from toolwise.notation.wire.history import error_text, sendable

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def write_request(request: ChatRequest) -> Json:
    """Raises BadInput where results do not fit the calls."""
    messages = sendable(only_objects(request.messages))
    opening = [message for message in messages[: _opening(messages)] if message.text]
    tools = [_tool(tool) for tool in request.tools if not request.choice.names or tool.name in request.choice.names]
    body: Json = {"model": request.model, "max_tokens": request.max_tokens or LIMITS.upstream_tokens}
    return body | only(
        {
            "system": [_text(message.text) for message in opening] or None,
            "messages": _messages(messages[_opening(messages) :]),
            "tools": tools or None,
            "tool_choice": _choice(request) if tools else None,
            "output_config": _output(request),
            "temperature": None if request.temperature is None else min(request.temperature, 1.0),
            "top_p": request.top_p,
            "stop_sequences": list(request.stop) or None,
            "stream": request.stream or None,
        }
    )


def _opening(messages: Sequence[Message]) -> int:
    """How many messages come before the conversation, as its system prompt."""
    roles = [message.role for message in messages]
    return next((number for number, role in enumerate(roles) if role is not Role.SYSTEM), len(roles))


def _messages(messages: Sequence[Message]) -> list[Json]:
    """The results of a turn, and what the user says after them, are one message of the user's."""
    written: list[Json] = []
    ids = _Ids()
    results = False  # whether the last message has results, and can take the user's text
    for message in messages:
        if message.role is Role.TOOL:
            if not results:
                written.append({"role": "user", "content": []})
            written[-1]["content"].append(_result(message, ids))
            results = True
            continue
        if message.role is Role.USER and results:
            written[-1]["content"].append(_text(message.text))
        elif message.role is Role.ASSISTANT:
            blocks = [_text(message.text)] if message.text else []
            calls = [
                {"type": "tool_use", "id": ids.given(call.id), "name": call.name, "input": object_of(call) or {}}
                for call in message.calls
            ]
            if blocks or calls:  # the API refuses a message of nothing
                written.append({"role": "assistant", "content": message.text if not calls else [*blocks, *calls]})
        else:
            written.append({"role": message.role.value, "content": message.text})
        results = False
    return written


def _result(message: Message, ids: _Ids) -> Json:
    """A failure is told in the text as well: servers that speak this API drop the flag."""
    told: Json = {"type": "tool_result", "tool_use_id": ids.sent(message.call_id), "content": error_text(message)}
    return told | ({"is_error": True} if message.is_error else {})


class _Ids:
    """The ids of calls as the API takes them: of a few letters, and none twice in a conversation."""

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}  # of a call in the newest turn that has it
        self._used: set[str] = set()

    def given(self, id: str) -> str:
        sent, number = id, len(self._used)
        while sent in self._used or not _ID.fullmatch(sent):
            sent, number = f"call_{number}", number + 1
        self._used.add(sent)
        self._sent[id] = sent
        return sent

    def sent(self, id: str) -> str:
        return self._sent[id]


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _tool(tool: ToolSpec) -> Json:
    told = {"description": tool.description or None, "strict": tool.strict or None}
    return {"name": tool.name, "input_schema": dict(tool.parameters)} | only(told)


def _choice(request: ChatRequest) -> Json | None:
    """None for what is so without being said."""
    choice = request.choice
    written: Json = {"type": {"auto": "auto", "none": "none", "required": "any"}[choice.mode]}
    if choice.forced and len(choice.names) == 1:
        written = {"type": "tool", "name": choice.names[0]}
    if not request.parallel and choice.mode != "none":
        written["disable_parallel_tool_use"] = True
    return None if written == {"type": "auto"} else written


def _output(request: ChatRequest) -> Json | None:
    if request.output is None:
        return None
    schema = {"type": "object"} if request.output.schema is None else dict(request.output.schema)
    return {"format": {"type": "json_schema", "schema": schema}}
