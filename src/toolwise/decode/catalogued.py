"""A chat model that is shown, of many tools, those that fit the conversation, and that can look for more.

    request with 300 tools -> those that fit, and find_tools -> model -> a call of find_tools -> those that it found
    as well -> model -> ... -> the turn that the client sees

What is shown follows from the conversation alone, so no state is kept and any server can go on: the tools that fit
each of the user's messages, those that were called and those that were found, in the order in which they came up. A
tool once shown stays in its place, and what comes later stands behind it: a cached prompt stays valid up to there.

A turn that begins with a call of `find_tools` is answered here, and the client does not see it; other calls in it are
to be made again. In a turn that begins with another call, the client's, later calls of `find_tools` are left out.

Not covered: descriptions longer than the model's context; tools that the model recalls from a list it never saw.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

from toolwise.core import jsonio
from toolwise.core.chat import (
    CallDelta,
    ChatCall,
    ChatDelta,
    ChatModel,
    ChatReply,
    ChatRequest,
    Message,
    ReplyEnded,
    Role,
    StopReason,
    TextDelta,
    TokenUsage,
    ToolSpec,
    gathered,
)
from toolwise.core.errors import BadInput, InvalidArguments, ToolwiseError
from toolwise.core.limits import LIMITS, Limits
from toolwise.decode.calls import specs
from toolwise.decode.unmasked import downgrades
from toolwise.notation.grammar.grammar import Downgrade
from toolwise.tools.catalogue import FIND, Catalogue, Encoder

_AGAIN = "Error (in_progress): this call was not made; make it again, now that the tools are there."


class Catalogued:
    """A ChatModel over another one. With a `catalogue` its tools are there besides the request's own, which are always
    shown; without, the request's own are looked through where they are more than `most`.

    `most` tools are shown for each message, and found at one time. Raises BadInput for a number that is none, and
    where packages are missing.
    """

    def __init__(
        self,
        model: ChatModel,
        catalogue: Catalogue | None = None,
        *,
        most: int = LIMITS.shown_tools,
        encoder: Encoder | None = None,
        limits: Limits = LIMITS,
    ) -> None:
        if most < 1:
            raise BadInput("Show at least one tool.")
        self.most = most
        self._model = model
        self._given = catalogue
        self._encoder = encoder
        self._limits = limits
        self._lock = threading.Lock()
        self._made: OrderedDict[str, Catalogue] = OrderedDict()
        Catalogue((), limits=limits)  # a missing package shows now

    @property
    def name(self) -> str:
        return self._model.name

    def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
        catalogue = self._catalogue(request)
        if catalogue is None:
            yield from self._model.reply(request)
            return
        usage, wrote = TokenUsage(), False
        for turn in range(self._limits.find_turns + 1):
            finds, asked = self._asked(request, catalogue, last=turn == self._limits.find_turns)
            found = yield from self._turn(asked, usage, wrote=wrote, finds=finds)
            if found is None:
                return
            usage, wrote = usage + found.usage, wrote or bool(found.text)
            request = replace(request, messages=(*request.messages, found.message, *self._results(catalogue, found)))

    def downgrades(self, request: ChatRequest) -> tuple[Downgrade, ...] | None:
        """Of the tools that are shown at first."""
        catalogue = self._catalogue(request)
        return downgrades(self._model, request if catalogue is None else self._asked(request, catalogue)[1])

    def _catalogue(self, request: ChatRequest) -> Catalogue | None:
        """What is looked through for this request, if anything is."""
        if self._given is None and len(request.tools) > self.most:
            return self._of(request.tools)
        return self._given

    def _asked(self, request: ChatRequest, catalogue: Catalogue, *, last: bool = False) -> tuple[bool, ChatRequest]:
        """Whether the model may look for tools, and the request as it is asked."""
        own = () if self._given is None else request.tools
        taken = {one.name for one in own}
        shown = self._shown(request, catalogue)
        finds = len(shown) < len(catalogue.tools) and not last and not request.choice.names
        finds = finds and FIND not in taken and FIND not in catalogue.tools
        offered = specs([catalogue.finder(self.most)]) if finds else ()
        return finds, replace(request, tools=(*offered, *own, *(one for one in shown if one.name not in taken)))

    def _turn(
        self, request: ChatRequest, before: TokenUsage, *, wrote: bool, finds: bool
    ) -> Generator[ChatDelta, None, ChatReply | None]:
        """A turn of the model, given as it comes; or, if it looks for tools, what it was."""
        held: list[ChatDelta] = []  # of a turn that looks for tools
        left_out: set[int] = set()
        place: dict[int, int] = {}
        said: list[TextDelta] = []
        for delta in self._model.reply(request):
            if isinstance(delta, TextDelta):
                if wrote and not said:
                    yield TextDelta("\n")
                said.append(delta)
                yield delta
            elif isinstance(delta, CallDelta) and (held or (finds and not place and delta.name == FIND)):
                held.append(delta)
            elif isinstance(delta, CallDelta):
                if (finds and delta.name == FIND and delta.index not in place) or delta.index in left_out:
                    left_out.add(delta.index)
                    continue
                yield replace(delta, index=place.setdefault(delta.index, len(place)))
            elif held:
                turn = gathered([*said, *held, delta])
                if delta.stop is StopReason.CALLS:
                    return turn
                yield ReplyEnded(delta.stop, before + delta.usage)
            else:
                broken = tuple(place[index] for index in delta.broken if index in place)
                yield ReplyEnded(delta.stop, before + delta.usage, broken)
        return None

    def _shown(self, request: ChatRequest, catalogue: Catalogue) -> Sequence[ToolSpec]:
        """The tools to show, each once, in the order in which the conversation came to them."""
        if len(catalogue.tools) <= self.most:
            return tuple(catalogue.tools.values())
        shown: dict[str, ToolSpec] = {}
        for message in request.messages:
            if message.role is Role.USER and len(shown) < self._limits.chosen_tools:
                shown |= {one.name: one for one in catalogue.choose(message.text, self.most) if one.name not in shown}
            for call in message.calls:
                query = _query(call)
                found = catalogue.choose(query, self.most) if query is not None else ()
                named = catalogue.tools.get(call.name)
                shown |= {one.name: one for one in (*found, *([named] if named else ())) if one.name not in shown}
        for name in request.choice.names:
            if name in catalogue.tools:
                shown.setdefault(name, catalogue.tools[name])
        return tuple(shown.values())

    def _results(self, catalogue: Catalogue, turn: ChatReply) -> Iterator[Message]:
        for call in turn.calls:
            if call.name != FIND:
                yield Message(Role.TOOL, _AGAIN, call_id=call.id, is_error=True)
                continue
            try:
                query = _query(call)
                if query is None:
                    raise InvalidArguments('the arguments are an object with a text: {"query": "..."}')
                yield Message(Role.TOOL, catalogue.find(query, self.most), call_id=call.id)
            except ToolwiseError as error:
                yield Message(Role.TOOL, f"Error ({error.code}): {error}", call_id=call.id, is_error=True)

    def _of(self, tools: Sequence[ToolSpec]) -> Catalogue:
        """The catalogue of a request's tools; the last ones are kept, since a conversation brings the same again."""
        key = jsonio.fingerprint([[one.name, one.description, one.parameters, one.strict] for one in tools])
        with self._lock:
            if (known := self._made.get(key)) is not None:
                self._made.move_to_end(key)
                return known
        made = Catalogue(tools, self._encoder, self._limits)
        with self._lock:
            self._made[key] = made
            if len(self._made) > self._limits.kept_catalogues:
                self._made.popitem(last=False)
        return made


def _query(call: ChatCall) -> str | None:
    """What a call of `find_tools` looks for; None for another call, and for one that cannot be read."""
    if call.name != FIND or not call.complete:
        return None
    try:
        arguments = jsonio.loads(call.arguments)
    except ToolwiseError:
        return None
    query = arguments.get("query") if isinstance(arguments, dict) else None
    return query if isinstance(query, str) else None
