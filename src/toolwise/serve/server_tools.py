"""Tools that the server runs: a chat model that calls them through the gate, and answers once it has their results.

    request -> agent's loop over the model -> calls of the server's tools -> gate -> results -> ... -> answer

The tools of a request are the client's and those of the registry are the server's; two of one name are refused. The
loop ends with the client's calls as it ends with an answer. Where a turn has calls of both kinds the server's run, and
the client's are left out of it: the model makes them when it has read the results, for a client that knows only its own
calls could not send the others' back. A client sees the texts of all turns, and its own calls. Where it asked for JSON
it sees the last turn's text alone, once that is known to be the last: those of all would be none.

A call that a person must confirm ends the reply with a text that says so. The run is kept under its conversation:
whoever sends that again, or goes on from there once it is decided, goes on with the run. A client that sends an
`Idempotency-Key`, or says that it tries again, comes back into its run too, in which no call that changes anything
happens twice. A run begins with what its conversation has read in the runs before it (`serve.given`).

Not covered: a model that writes other arguments when it is tried again; such a call is refused under its old name.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from toolwise.core.chat import (
    CallDelta,
    ChatDelta,
    ChatModel,
    ChatReply,
    ChatRequest,
    ReplyEnded,
    Role,
    StopReason,
    TextDelta,
    TokenUsage,
    ToolSpec,
    gathered,
    pieces,
)
from toolwise.core.errors import BadInput
from toolwise.core.jsonio import quote
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import CallContext, Labels, Principal
from toolwise.decode.agent import Agent, AgentSettings
from toolwise.decode.calls import specs
from toolwise.decode.events import CallEnded, CallWaits, Reason, RunEnded, Saved
from toolwise.decode.run_state import Progress, RunState
from toolwise.decode.unmasked import downgrades
from toolwise.gate.gate import Gate
from toolwise.gate.state import State
from toolwise.notation.grammar.grammar import Downgrade
from toolwise.serve.given import Given
from toolwise.serve.paused import Paused, names_of
from toolwise.tools.registry import Registry

T = TypeVar("T")
_STOPS: Mapping[Reason, StopReason] = {
    "end": StopReason.END,
    "stop": StopReason.STOP,
    "refused": StopReason.REFUSED,
    "approval": StopReason.END,
}
_SAID: Mapping[Reason, str] = {
    "missing_call": "a call was required, and the model made none",
    "no_progress": "the same call had the same result again and again",
    "budget": "no more calls can be afforded",
    "turns": "it took too many turns",
    "tokens": "it took too many tokens",
}


class ServerTools:
    """Equips a model with the registry's tools, in somebody's name. `state` is the gate's.

    `decide` says where a person decides. `called` hears the code of every result.
    """

    def __init__(
        self,
        gate: Gate,
        registry: Registry,
        state: State,
        *,
        decide: str = "`toolwise approvals`",
        limits: Limits = LIMITS,
    ) -> None:
        self.gate = gate
        self.registry = registry
        self.decide = decide
        self.limits = limits
        self.called: Callable[[str], None] = lambda code: None
        self.paused = Paused(state, limits)
        self.given = Given(registry.values(), limits.paused_runs)
        self.specs = specs(registry.values())
        self._latest: OrderedDict[str, str] = OrderedDict()  # the last run of a conversation
        self._keyed: OrderedDict[tuple[str, str], str] = OrderedDict()  # the run of a principal's Idempotency-Key
        self._lock = threading.Lock()

    def equipped(self, model: ChatModel, principal: Principal, headers: Mapping[str, str]) -> ChatModel:
        """The model for one request of this principal. Raises BadInput for an Idempotency-Key that is none."""
        key = headers.get("idempotency-key", "")
        if len(key) > self.limits.id_chars - 4 or not re.fullmatch("[!-~]*", key):
            raise BadInput(f"An Idempotency-Key has at most {self.limits.id_chars - 4} letters, digits and signs.")
        again = headers.get("x-stainless-retry-count", "0") not in ("", "0")
        return _Equipped(self, model, principal, key, again)

    def begun(self, principal: Principal, request: ChatRequest, key: str, again: bool) -> RunState:
        """A run, or the one that this conversation had when it was tried before."""
        name = names_of(principal.id, request.messages)[0][0]
        with self._lock:
            earlier = self._latest.get(name) if again else None
        id = (self.of_key(principal, key) or f"key-{key}") if key else earlier or secrets.token_hex(12)
        self.note(principal, name, key, id)
        return replace(RunState.begin(principal.id, request.messages, id=id), choice=request.choice)

    def of_key(self, principal: Principal, key: str) -> str | None:
        """The run in which a request with this key was answered, where this process knows of one."""
        with self._lock:
            return self._keyed.get((principal.id, key))

    def note(self, principal: Principal, name: str, key: str, id: str) -> None:
        """The run is that of the conversation, and of the key: whoever tries again comes back into it."""
        with self._lock:
            _keep(self._latest, name, id, self.limits.paused_runs)
            if key:
                _keep(self._keyed, (principal.id, key), id, self.limits.paused_runs)


def _keep(runs: OrderedDict[T, str], under: T, id: str, most: int) -> None:
    runs[under] = id
    runs.move_to_end(under)
    if len(runs) > most:
        runs.popitem(last=False)


class _Equipped:
    """One request's model with its tools."""

    def __init__(self, tools: ServerTools, model: ChatModel, principal: Principal, key: str, again: bool) -> None:
        self.name = model.name
        self._tools = tools
        self._model = model
        self._principal = principal
        self._key = key
        self._again = again

    def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
        tools = self._tools
        clash = next((tool.name for tool in request.tools if tool.name in tools.registry), None)
        if clash is not None:
            raise BadInput(f"{quote(clash)} is a tool of this server: give yours another name.", "tools")
        turns = _Turns(self._model, request, request.tools + tools.specs)
        settings = AgentSettings(parallel=request.parallel)
        agent = Agent(turns, tools.gate, tuple(tools.registry.values()), settings, limits=tools.limits)
        names = names_of(self._principal.id, request.messages)
        labels = tools.given.before(names, request.messages)
        state = self._run(agent, request, names, labels)
        tools.given.add(names[0][0], labels)
        wrote = False
        for event in agent.run(state, CallContext(self._principal, state.id, labels=labels)):
            match event:
                case TextDelta(text):
                    yield TextDelta("\n" + text if wrote and turns.fresh else text)
                    turns.fresh, wrote = False, True
                case CallWaits():
                    tools.called("approval_required")
                case CallEnded(result=result):
                    tools.called(result.code)
                    tools.given.add(names[0][0], result.labels)
                case RunEnded(reason, end):
                    if reason == "approval":
                        tools.paused.put(names[0][0], end)
                    yield from _ended(reason, self._note(reason, end), turns, wrote)

    def downgrades(self, request: ChatRequest) -> tuple[Downgrade, ...]:
        """Of the client's own; what those of the server lost, whoever started it was told."""
        theirs = {"", *(tool.name for tool in request.tools)}
        lost = downgrades(self._model, replace(request, tools=request.tools + self._tools.specs))
        return tuple(one for one in lost or () if one.tool in theirs)

    def _run(self, agent: Agent, request: ChatRequest, names: Sequence[tuple[str, int]], labels: Labels) -> RunState:
        """The run that the request goes on with or begins."""
        tools, who = self._tools, self._principal
        found = tools.paused.take(names, who.id, tools.of_key(who, self._key) if self._key else None)
        if found is None:
            return tools.begun(who, request, self._key, self._again)
        tools.given.add(names[0][0], tools.given.worst)  # what it has read before, another process may have told it
        state, known = found
        later = tuple(message for message in request.messages[known:] if message.role is Role.USER)
        if not later:
            tools.note(who, names[0][0], self._key, state.id)
            return state
        events = agent.run(state, CallContext(who, state.id, labels=labels))
        state = next((event.state for event in events if isinstance(event, Saved)), state)  # what waited, and no more
        if state.waiting:  # they still do, and something else is asked: they are not made
            return tools.begun(who, request, self._key, self._again)
        tools.note(who, names[0][0], self._key, state.id)
        return replace(state, messages=state.messages + later, choice=request.choice, progress=Progress())

    def _note(self, reason: Reason, end: RunState) -> str:
        """What the client is told besides what the model said."""
        if reason == "approval":
            ids = ", ".join(approval for _, approval in end.waiting)
            return (
                f"[A person must confirm a call before it can run: approval {ids}. "
                f"Decide with {self._tools.decide}, then ask again.]"
            )
        return f"[Stopped: {_SAID[reason]}.]" if reason in _SAID else ""


class _Turns:
    """The model as the loop sees it: with all tools, and without the client's calls, which are kept in `theirs`."""

    def __init__(self, model: ChatModel, request: ChatRequest, tools: tuple[ToolSpec, ...]) -> None:
        self.name = model.name
        self.theirs = ChatReply()
        self.usage = TokenUsage()
        self.fresh = False  # nothing was said in this turn yet
        self._model = model
        self._request = request
        self._tools = tools
        self._client = frozenset(tool.name for tool in request.tools)

    def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
        self.fresh = True
        asked = replace(self._request, messages=request.messages, choice=request.choice, tools=self._tools)
        held: list[ChatDelta] = []
        said: list[TextDelta] = []
        for delta in self._model.reply(asked):
            if not isinstance(delta, TextDelta):
                held.append(delta)
            elif asked.output is None:
                yield delta
            else:
                said.append(delta)
        turn = gathered(held)
        self.usage += turn.usage
        ours = tuple(call for call in turn.calls if call.name not in self._client)
        if not ours:
            yield from said
        if turn.calls and not ours:
            self.theirs = turn
            yield ReplyEnded(StopReason.STOP, turn.usage)  # it ends the loop, whatever was to be called
        else:
            yield from pieces(replace(turn, calls=ours))


def _ended(reason: Reason, note: str, turns: _Turns, wrote: bool) -> Iterator[ChatDelta]:
    """The end of the reply: a note, or the client's own calls."""
    if note:
        yield TextDelta("\n" + note if wrote else note)
    theirs = turns.theirs
    for index, call in enumerate(theirs.calls):
        yield CallDelta(index, call.arguments, call.id, call.name)
    stop = theirs.stop if theirs.calls else _STOPS.get(reason, StopReason.LENGTH)
    yield ReplyEnded(stop, turns.usage, tuple(n for n, call in enumerate(theirs.calls) if not call.complete))
