"""A request's or a reply's body, read field by field; whatever does not fit is named by its place in the JSON.

Shared by all wire formats, with what they have in common: the text of arguments, results paired with their calls,
failures told in a result's text.

Covered: a field of the wrong type is never coerced, and one that is not known is refused. Not covered: how long a
body may be, and whether its text is JSON (`core.jsonio`); whether a tool's schema can be used (`core.schema`).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolwise.core import jsonio
from toolwise.core.chat import ChatCall, Message, Role, StopReason, ToolChoice, ToolSpec
from toolwise.core.errors import LEAVES, BadInput, ModelUnavailable, ToolFailed, ToolwiseError
from toolwise.core.jsonio import printable, quote
from toolwise.core.limits import LIMITS, Limits

# The registry's own rule, and `:` and `/`, which other runtimes put between a server and its tool.
_TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:/-]*")
_ERROR = re.compile(rf"Error \(({'|'.join(leaf.code for leaf in LEAVES)})\): ")
_JSON_MARK = re.compile(r'["\\\[\]{}]')


@dataclass(frozen=True, slots=True)
class Field:
    """A value of a body, and its place: `messages[2].content`. A field that is absent holds None, as one that is null.

    What reads it raises BadInput that names the place.
    """

    value: Any
    path: str = ""

    def refused(self, told: str) -> BadInput:
        """What to raise; `told` says what to do: `send a string`."""
        return BadInput(f"{self.path or 'body'}: {told}.", self.path)

    @property
    def absent(self) -> bool:
        return self.value is None

    @property
    def word(self) -> str:
        """The string, or an empty one where something else stands; for what servers get wrong."""
        return self.value if isinstance(self.value, str) else ""

    # Into an object or a list

    def __getitem__(self, key: str) -> Field:
        return Field(self.object().get(key), f"{self.path}.{key}" if self.path else key)

    def object(self) -> Mapping[str, Any]:
        if not isinstance(self.value, Mapping):
            raise self.refused("send an object")
        return self.value

    def items(self) -> list[Field]:
        """The items of a list; none where it is absent."""
        if self.absent:
            return []
        if not isinstance(self.value, list):
            raise self.refused("send a list")
        return [Field(item, f"{self.path}[{number}]") for number, item in enumerate(self.value)]

    def check_keys(self, read: Collection[str], left: Collection[str] = ()) -> None:
        """Refuses an object with other keys than those that are `read`, and those `left` since they change nothing."""
        for key, value in self.object().items():
            if key not in read and key not in left and value is not None:
                raise self[printable(key, 40)].refused("not supported; leave it out")

    def refuse(self, *keys: str, instead: str = "leave it out") -> None:
        """Refuses an object in which one of these is set."""
        for key in keys:
            if not self[key].absent:
                raise self[key].refused(f"not supported; {instead}")

    # Values

    def text(self, default: str | None = None) -> str:
        """A string; one must be there unless there is a default."""
        if self.absent and default is not None:
            return default
        if not isinstance(self.value, str):
            raise self.refused("send a string")
        return self.value

    def filled(self) -> str:
        """A string that is not empty."""
        if not self.text():
            raise self.refused("is empty; send a string")
        return self.text()

    def one_of(self, *words: str) -> str:
        """One of these words."""
        if self.value not in words:
            known = " or ".join(quote(word) for word in words)
            sent = f", not {quote(self.value)}" if isinstance(self.value, str) else ""
            raise self.refused(f"send {known}{sent}")
        return str(self.value)

    def flag(self, default: bool = False) -> bool:
        if self.absent:
            return default
        if not isinstance(self.value, bool):
            raise self.refused("send true or false")
        return self.value

    def integer(self, least: int | None = None, most: int | None = None) -> int | None:
        """An integer in these bounds, which are inclusive; 5.0 is one, as JSON Schema has it."""
        if self.absent:
            return None
        value = int(self.value) if isinstance(self.value, float) and self.value.is_integer() else self.value
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.refused("send an integer")
        self._check_range(value, least, most)
        return value

    def number(self, least: float | None = None, most: float | None = None) -> float | None:
        """A number in these bounds, which are inclusive."""
        if self.absent:
            return None
        if not isinstance(self.value, int | float) or isinstance(self.value, bool):
            raise self.refused("send a number")
        self._check_range(self.value, least, most)
        return float(self.value)

    def _check_range(self, value: float, least: float | None, most: float | None) -> None:
        if least is not None and value < least:
            raise self.refused(f"send at least {least}")
        if most is not None and value > most:
            raise self.refused(f"send at most {most}")

    # What every format has

    def tool_name(self, limits: Limits = LIMITS) -> str:
        name = self.text()
        if len(name) > limits.name_chars or not _TOOL_NAME.fullmatch(name):
            raise self.refused(
                f"name a tool with at most {limits.name_chars} letters, digits, _ . : / and -, a letter or _ first"
            )
        return name

    def tool_schema(self) -> dict[str, Any]:
        """The JSON Schema of a tool's arguments: an object without arguments where it is absent."""
        schema = {} if self.absent else dict(self.object())
        if schema.setdefault("type", "object") != "object":
            raise self["type"].refused('send "object": the arguments of a tool are one')
        schema.setdefault("properties", {})
        return schema

    def stop_strings(self, limits: Limits = LIMITS) -> tuple[str, ...]:
        """A string or a list of them."""
        items = [self] if isinstance(self.value, str) else self.items()
        if len(items) > limits.stop_strings:
            raise self.refused(f"send at most {limits.stop_strings} strings")
        return tuple(item.filled() for item in items)


def check_tools(tools: Iterable[ToolSpec], places: Field) -> None:
    """Raises BadInput where two tools have one name."""
    seen: set[str] = set()
    for tool, place in zip(tools, places.items(), strict=False):
        if tool.name in seen:
            raise place.refused(f"the tool {quote(tool.name)} stands there twice; name each tool once")
        seen.add(tool.name)


def check_choice(choice: ToolChoice, tools: Sequence[ToolSpec], place: Field) -> ToolChoice:
    """The choice. Raises BadInput where it forces a call or names a tool, and there is no such tool."""
    if choice.forced and not tools:
        raise place.refused("asks for a call; send tools with it")
    known = {tool.name for tool in tools}
    for name in choice.names:
        if name not in known:
            raise place.refused(f"names {quote(name)}, which is none of the tools; name one of them")
    return choice


def sendable(messages: Sequence[Message]) -> tuple[Message, ...]:
    """A history as APIs take it: results in the order of their calls, and what began like a call as text.

    Such a text is no call that a result could answer: what was said of it becomes a user's message after the turn's
    other results. Raises BadInput as `paired` does.
    """
    sent: list[Message] = []
    unread: set[str] = set()
    told: list[Message] = []
    for message in paired(messages):
        if message.role is Role.TOOL and message.call_id in unread:
            told.append(Message(Role.USER, error_text(message)))
            continue
        if message.role is not Role.TOOL:
            sent.extend(told)
            text, named = shown_as_text(message.calls)
            unread, told = {call.id for call in message.calls if not call.name}, []
            message = replace(message, text=message.text + text, calls=named) if unread else message
        sent.append(message)
    return (*sent, *told)


def paired(messages: Sequence[Message], places: Sequence[str] | None = None) -> tuple[Message, ...]:
    """The messages, with the results of a turn in the order of its calls.

    Raises BadInput, with the place of the message, where an id is empty or stands twice in a turn, where a result
    answers no call of the turn before it or one that is answered already, and where a call has no result although the
    conversation goes on. Ids are those of a turn: some clients count from zero in every one.
    """
    where = places or [f"messages[{number}]" for number in range(len(messages))]
    ordered: list[Message] = []
    open_calls: dict[str, int] = {}  # id -> where its result belongs, in `ordered`
    answered: set[str] = set()
    asked = ""  # where the turn with these calls stands

    def check_answered() -> None:
        for id_ in open_calls:
            if id_ not in answered:
                raise BadInput(f"{asked}: the call {quote(id_)} has no result; send one before what follows.", asked)

    for message, place in zip(messages, where, strict=True):
        if message.role is Role.TOOL:
            told = f"{place}: the result answers {quote(message.call_id)}, "
            if message.call_id not in open_calls:
                raise BadInput(f"{told}which is no call of the turn before it; send the id of one that is.", place)
            if message.call_id in answered:
                raise BadInput(f"{told}which has a result already; send one result for each call.", place)
            answered.add(message.call_id)
            ordered[open_calls[message.call_id]] = message
            continue
        check_answered()
        ordered.append(message)
        open_calls, answered, asked = {}, set(), place
        for call in message.calls:
            if not call.id or call.id in open_calls:
                raise BadInput(f"{place}: the call id {quote(call.id)} is empty or stands there twice.", place)
            open_calls[call.id] = len(ordered)
            ordered.append(message)  # its result takes this place
    check_answered()
    return tuple(ordered)


def arguments_text(value: Any) -> str:
    """The text of a call's arguments, as it was sent. Nothing at all, blanks and null are an object without any.

    Some servers send the object itself. Raises ResultInvalid for what is no JSON.
    """
    if isinstance(value, str):
        return "{}" if value.strip() in ("", "null") else value
    return "{}" if value is None else jsonio.compact(value)


class Nesting:
    """How far a JSON text has got, piece by piece: `open` until every bracket and string is closed."""

    def __init__(self) -> None:
        self._level = 0
        self._in_string = False
        self._escaped = False
        self._begun = False

    def push(self, text: str) -> Nesting:
        at = 1 if self._escaped and text else 0
        self._escaped = self._escaped and not text
        while mark := _JSON_MARK.search(text, at):
            at = mark.end()
            if self._in_string:
                self._in_string = mark[0] != '"'
                if mark[0] == "\\":
                    self._escaped = at == len(text)
                    at += 1
            elif mark[0] == '"':
                self._in_string = True
            elif mark[0] != "\\":
                self._level += 1 if mark[0] in "[{" else -1
                self._begun = True
        return self

    @property
    def open(self) -> bool:
        return self._in_string or self._level > 0

    @property
    def closed(self) -> bool:
        """Whether an object or a list began and ended."""
        return self._begun and not self.open


def cut_off(arguments: str) -> bool:
    """Whether JSON text ended before it was closed. Other mistakes are the gate's to find."""
    return Nesting().push(arguments).open


def error_text(message: Message) -> str:
    """The text of a result, which says a failure where an API has no flag for it."""
    if not message.is_error or _ERROR.match(message.text):
        return message.text
    return f"Error ({ToolFailed.code}): {message.text}"


def says_error(text: str) -> bool:
    """Whether a result's text says a failure, as `error_text` and the gate write it.

    A tool's own text can begin so too. That is safe: the flag only repeats what the model reads there anyway, and
    nothing that was refused or failed can pass for done by it.
    """
    return _ERROR.match(text) is not None


def minted_id(prefix: str) -> str:
    """A new id: `prefix` and 24 hex digits."""
    return f"{prefix}{secrets.token_hex(12)}"


def shown_as_text(calls: Iterable[ChatCall]) -> tuple[str, tuple[ChatCall, ...]]:
    """What began like a call and is none, as text, and the calls that are some."""
    named: list[ChatCall] = []
    texts: list[str] = []
    for call in calls:
        if call.name:
            named.append(call)
        else:
            texts.append(call.arguments)
    return "".join(texts), tuple(named)


def any_broken(calls: Iterable[ChatCall]) -> bool:
    """Whether one of the calls was never closed; what has no name was none."""
    return any(call.name and not call.complete for call in calls)


def told_stop(stop: StopReason, called: bool, broken: bool) -> StopReason:
    """How a turn ended, for an API that says so of the whole turn.

    One in which a call was never closed counts as cut off, lest a client runs it; one without calls waits for none.
    """
    if broken and stop is not StopReason.REFUSED:
        return StopReason.LENGTH
    return StopReason.END if stop is StopReason.CALLS and not called else stop


def event_json(data: str, limits: Limits = LIMITS) -> Mapping[str, Any]:
    """The object in an event of a server. Raises ModelUnavailable where there is none."""
    try:
        value = jsonio.loads(data, replace(limits, string_bytes=limits.event_bytes))
    except ToolwiseError as error:
        raise ModelUnavailable(f"The server sent an event that is no JSON: {error}.") from None
    if not isinstance(value, Mapping):
        raise ModelUnavailable("The server sent an event that is no JSON object.")
    return value


def said(status: int, message: Any, limits: Limits = LIMITS) -> ToolwiseError:
    """What a server's error is here: the request's fault (BadInput), or the server's (ModelUnavailable).

    `message` is what the server said of it; where it is about a key, that is not repeated.
    """
    if status in (401, 403):
        return ModelUnavailable(f"The server refuses the key ({status}): check it and what it may be used for.")
    words = jsonio.one_line(message) if isinstance(message, str) else ""
    told = f": {printable(words, limits.error_line_chars).rstrip('.')}" if words else ""
    if status in (400, 404, 413, 422):
        return BadInput(f"The server refuses the request ({status}){told}.")
    return ModelUnavailable(f"The server does not answer ({status}){told}.")


def only(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Those that say something: a field that is None is left out of a request."""
    return {key: value for key, value in fields.items() if value is not None}
