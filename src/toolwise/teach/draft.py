"""A prompt for a tool that brings none: drafted from its signature, checked, and written as TOML for people to edit.

`draft` takes the tool's own examples. `sketch` is for a tool without them: it writes two lines that show the call,
which a person turns into texts; `checked` refuses them until that was done. What `as_toml` writes is a settings file.

Not covered: whether a text is a good example. `toolwise tools try` shows what a model makes of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from toolwise.core.errors import BadInput, ToolwiseError
from toolwise.core.jsonio import first_line, quote
from toolwise.core.schema import Validator, raw_argument
from toolwise.core.toml import quoted
from toolwise.core.types import Tool
from toolwise.notation.inline import PLAIN, Notation, find, read_arguments, read_body, write_body
from toolwise.teach.prompts import Prompt

ENOUGH = 2  # examples of a prompt
TO_EDIT = "EDIT THIS"  # begins an example that is none yet


def draft(tool: Tool, notation: Notation = PLAIN) -> Prompt:
    """A prompt from a tool's description, its arguments and its `examples`.

    Raises BadInput where it has fewer than two examples, or one of them holds no good call of this tool.
    """
    if len(tool.examples) < ENOUGH:
        raise BadInput(
            f"Give {tool.name} two examples or more, texts with calls in them as a model should write them: "
            f'@tool(examples=["... [{tool.name}({_shape(tool)})] ...", ...]), or let toolwise tools draft begin them.'
        )
    return checked(_prompt(tool, tool.examples), tool, notation)


def sketch(tool: Tool, notation: Notation = PLAIN) -> Prompt:
    """The same for a tool with too few examples, the missing ones to be written by a person."""
    missing = range(len(tool.examples), ENOUGH)
    lines = [
        f"{TO_EDIT}: write a text of your own here, with the call [{write_body(tool, values, notation)}] right before "
        "the words that its result explains."
        for values in (_values(tool, turn) for turn in missing)
    ]
    return _prompt(tool, (*tool.examples, *lines))


def checked(prompt: Prompt, tool: Tool, notation: Notation = PLAIN) -> Prompt:
    """The prompt, once every example holds calls of the tool whose arguments fit, and no results. Raises BadInput."""
    if len(prompt.examples) < ENOUGH:
        raise BadInput(f"The prompt of {tool.name} needs two examples or more; it has {len(prompt.examples)}.")
    _check_wordings(prompt)
    validator = Validator(tool.parameters)
    for example in prompt.examples:
        try:
            if example.startswith(TO_EDIT):
                raise BadInput("it is still the drafted line; write a text of your own in its place")
            if not (calls := find(example, notation)):
                raise BadInput(f"it holds no call such as [{tool.name}({_shape(tool)})], with a space before it")
            for call in calls:
                name, raw = read_body(call.body, notation)
                if name != tool.name:
                    raise BadInput(f"it calls {quote(name)}")
                validator.validate(read_arguments(raw, tool, notation))
                if call.result is not None:
                    raise BadInput("it holds a result, which the runtime writes and no model; leave it out")
        except ToolwiseError as error:
            told = first_line(error)
            raise BadInput(f"The example {quote(example)} of {tool.name} cannot be used: {told}.") from None
    return prompt


def _check_wordings(prompt: Prompt) -> None:
    for name, wording in (("call_wording", prompt.call_wording), ("result_wording", prompt.result_wording)):
        try:
            wording.format(**{"input": "", "result": ""} if name == "result_wording" else {"input": ""})
        except (LookupError, ValueError, AttributeError):
            raise BadInput(
                f"The {name} of {prompt.tool} cannot be used: in braces write input or result, a brace itself twice."
            ) from None


def as_toml(prompts: Iterable[Prompt]) -> str:
    """The prompts as the tables of a settings file."""
    return "\n".join([_HEAD, *map(_table, prompts)])


_HEAD = """\
# What a model is shown so that it proposes calls. Edit it, and give this file to --settings.
# An example is a text with calls in it, as a model should write them: [Tool(arguments)], right before the words that
# the result explains, and with nothing in the arguments that the text names only later.
"""


def _table(prompt: Prompt) -> str:
    lines = (f"    {quoted(example)},\n" for example in prompt.examples)
    return (
        f"[prompts.{prompt.tool if prompt.tool.isidentifier() else quoted(prompt.tool)}]\n"
        f"instruction = {quoted(prompt.instruction)}\n"
        f"examples = [\n{''.join(lines)}]\n"
        f'call_wording = {quoted(prompt.call_wording)}  # this and the next only where wording = "plain"\n'
        f"result_wording = {quoted(prompt.result_wording)}\n"
    )


def _prompt(tool: Tool, examples: tuple[str, ...]) -> Prompt:
    first = tool.description.strip().partition("\n")[0].rstrip(".")
    names = ", ".join(tool.parameters.get("properties", {}))
    written = f"{tool.name}({names if raw_argument(tool.parameters) else _shape(tool)})"
    instruction = (
        f"Add calls to the tool {tool.name} to a piece of text where its result helps to go on. "
        f"{tool.name}: {first or 'a tool'}. "
        f'A call is written "[{written}]" and stands right before the words that its result explains. '
        "Its arguments use what the text has said before. Here are some examples."
    )
    plain = f"{tool.name}: {{input}}"
    return Prompt(tool.name, instruction, examples, plain, f"{plain} = {{result}}")


def _shape(tool: Tool) -> str:
    """`city=..., days=...`"""
    if raw_argument(tool.parameters):
        return "..."
    return ", ".join(f"{name}=..." for name in _written(tool))


def _written(tool: Tool) -> list[str]:
    """The arguments that a drafted call shows: the required ones, or two where there are only others."""
    properties = tool.parameters.get("properties", {})
    required = [name for name in tool.parameters.get("required", ()) if name in properties]
    return required or list(properties)[:2]


# Values that stand for values


def _values(tool: Tool, turn: int) -> dict[str, Any]:
    """Arguments that show what is to be written; in the second line other values than in the first."""
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    parts = tool.parameters.get("$defs", {})
    return {name: _value(name, properties[name], parts, turn) for name in _written(tool)}


def _value(name: str, schema: Any, parts: Mapping[str, Any], turn: int) -> Any:
    if not isinstance(schema, Mapping):
        return "..."
    if "$ref" in schema:
        return _value(name, parts.get(str(schema["$ref"]).rpartition("/")[2]), parts, turn)
    for listed in (schema.get("enum"), schema.get("examples"), [schema["const"]] if "const" in schema else None):
        if listed:
            return listed[turn % len(listed)]
    for union in (schema.get("anyOf"), schema.get("oneOf")):
        if union:
            return _value(name, union[0], parts, turn)
    match schema.get("type"):
        case "integer":
            return int(_within(schema, 3 + turn))
        case "number":
            return _within(schema, 2.5 + turn)
        case "boolean":
            return turn % 2 == 0
        case "array":
            return [_value(name, schema.get("items"), parts, turn)]
        case "object":
            inner = schema.get("properties", {})
            return {key: _value(key, inner.get(key), parts, turn) for key in schema.get("required", ())}
    return _DATES.get(schema.get("format", ""), f"{('a', 'another')[turn % 2]} {name}")


def _within(schema: Mapping[str, Any], value: float) -> float:
    return float(min(max(value, schema.get("minimum", value)), schema.get("maximum", math.inf)))


_DATES = {"date": "2024-03-17", "date-time": "2024-03-17T09:30:00Z", "time": "09:30:00"}
