"""A conversation as a chat template wants it: plain JSON values, as transformers hands them over.

    structured   the template knows calls: calls are objects with arguments as objects, results are `tool` messages
    as_text      it knows none: calls are written by the layout, results stand in the user's turn

Roles, and a layout's own texts, are the runtime's words and may become control tokens; everything else is data. Results
come in the order of their calls, whatever order they arrived in, since most templates pair them by position.

What a model wrote that was no call is shown as the text that it was, and its result as a message to the model.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolwise.core.chat import ChatCall, Message, Role, ToolSpec
from toolwise.core.errors import BadInput, ToolwiseError
from toolwise.core.jsonio import canonical, loads, quote
from toolwise.notation.chat.layout import Layout
from toolwise.notation.chat.traced import Traced, Written, data, literal, traced

Values = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Step:
    """One message, and the results of its calls in their order."""

    message: Message
    results: tuple[tuple[ChatCall, Message], ...] = ()


def steps(messages: Sequence[Message]) -> Iterator[Step]:
    """The conversation with every result at its call. Raises BadInput for a result whose call is not there."""
    at = 0
    while at < len(messages):
        message = messages[at]
        behind = at + 1
        while behind < len(messages) and messages[behind].role is Role.TOOL:
            behind += 1
        results = {result.call_id: result for result in messages[at + 1 : behind]}
        calls = {call.id for call in message.calls}
        for answered in [message.call_id] if message.role is Role.TOOL else results:
            if answered not in calls:
                raise BadInput(f"A result answers the call {quote(answered)}, which its conversation does not have.")
        yield Step(message, tuple((call, results[call.id]) for call in message.calls if call.id in results))
        at = behind


def structured(
    messages: Sequence[Message],
    *,
    as_object: bool = True,
    single: bool = False,
    call_id: Callable[[str], str] = str,
) -> Values:
    """For a template that knows calls. `as_object` False hands arguments over as the text that they are; `single`
    tells a turn's calls one message after the other, each with its result."""
    values: Values = []
    for step in steps(messages):
        text, calls = _said(step.message), [call for call in step.message.calls if call.name]
        role, results = literal(step.message.role.value), [(c, result.text) for c, result in step.results]
        if not calls:
            values.append({"role": role, "content": text})
        for told in [[call] for call in calls] if single else [calls] if calls else []:
            values.append(
                {"role": role, "content": text, "tool_calls": [_call(call, as_object, call_id) for call in told]}
            )
            values += [_result(call, result, call_id) for call, result in results if call in told]
            text = ""
        values += [{"role": literal("user"), "content": result} for call, result in results if not call.name]
    return values


def as_text(messages: Sequence[Message], layout: Layout, result_role: str = "") -> Values:
    """For a template that knows no calls. Results are the user's turn, or turns of their own in the role given."""
    values: Values = []
    for step in steps(messages):
        calls = [call for call in step.message.calls if call.name]
        said = [_said(step.message), written(calls, layout)] if calls else [_said(step.message)]
        values.append({"role": literal(step.message.role.value), "content": data("\n").join(filter(None, said))})
        if result_role:
            values += [{"role": literal(result_role), "content": result.text} for _, result in step.results]
        elif step.results:
            texts = [_tagged(result.text) if call.name else result.text for call, result in step.results]
            values.append({"role": literal("user"), "content": data("\n").join(texts)})
    return values


def told(tools: Sequence[ToolSpec], layout: Layout) -> Traced:
    """Tools and how to call them, in our own words."""
    example = written([ChatCall("", "NAME", '{"ARGUMENT": "VALUE"}')], layout)
    listed = data("\n").join(json.dumps(declared(tool)["function"], ensure_ascii=False) for tool in tools)
    return traced(
        (
            "You can call these tools:\n",
            listed,
            "\n\nTo call one, write nothing but this, with the tool's name and arguments that fit its parameters:\n",
            example,
            "\nThe result comes in the next message. Call a tool only where it helps; otherwise answer in plain text.",
        )
    )


def with_system(values: Values, text: Traced, *, turn: bool = True) -> Values:
    """The text behind what the system said; without a `turn` of the system's, all of that goes to the user's first."""
    first = values[0]["content"] if values and values[0]["role"] == "system" else ""
    rest = values[1:] if first else values
    whole = data("\n\n").join(filter(None, [first, text]))
    if not whole:
        return values
    if turn:
        return [{"role": literal("system"), "content": whole}, *rest]
    if rest and rest[0]["role"] == "user":
        return [{**rest[0], "content": data("\n\n").join([whole, rest[0]["content"]])}, *rest[1:]]
    return [{"role": literal("user"), "content": whole}, *rest]


def written(calls: Sequence[ChatCall], layout: Layout) -> Traced:
    """The calls as the model would have written them."""
    pieces = list[str]()
    for call in calls:
        name = canonical(call.name)[1:-1] if layout.quoted else call.name
        pieces += [literal(layout.separator)] if pieces else []
        pieces += [literal(layout.before), name, literal(layout.middle), call.arguments or "{}", literal(layout.after)]
    return traced([literal(layout.open), *pieces, literal(layout.close)])


def declared(tool: ToolSpec) -> dict[str, Any]:
    """A tool as transformers and the APIs declare it."""
    function = {"name": tool.name, "description": tool.description, "parameters": _plain(tool.parameters)}
    return {"type": "function", "function": function}


def _said(message: Message) -> str:
    """The text of a message, with what it wrote that was no call."""
    return "\n".join(filter(None, [message.text, *(call.arguments for call in message.calls if not call.name)]))


def _call(call: ChatCall, as_object: bool, call_id: Callable[[str], str]) -> dict[str, Any]:
    arguments: Any = call.arguments or "{}"
    if as_object:
        try:
            read = loads(arguments)
        except ToolwiseError:
            read = None
        arguments = Written(read, arguments) if isinstance(read, dict) else arguments
    return {
        "id": call_id(call.id),
        "type": literal("function"),
        "function": {"name": call.name, "arguments": arguments},
    }


def _result(call: ChatCall, text: str, call_id: Callable[[str], str]) -> dict[str, Any]:
    return {"role": literal("tool"), "name": call.name, "tool_call_id": call_id(call.id), "content": text}


def _tagged(result: str) -> Traced:
    return traced((literal("<tool_response>\n"), result, literal("\n</tool_response>")))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
