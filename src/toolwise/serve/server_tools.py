"""Tools that the server runs: a chat model which calls them through the gate, and answers once it has their results.

    request -> model -> calls of the server's tools -> gate -> results -> model -> ... -> answer, or the client's calls

The tools of a request are the client's and those of the registry are the server's; two of one name are refused. Calls
of both kinds in one turn: the server's run, and of the client's the model is told to make them again, since a client
that knows only its own could not send the history back. A client sees the texts of all turns and its own calls.

A call that a person must confirm ends the turn with a text that says so. The run is remembered under its conversation:
whoever sends that again, or goes on from there, has the same calls made again, of which those that ran before are not
run twice. A client that sends an `Idempotency-Key`, or says that it tries again, comes back into the same run as well.

Not covered: runs that wait when the server ends; their calls are asked for anew.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

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
    ToolChoice,
    gathered,
)
from toolwise.core.errors import ApprovalRequired, BadInput
from toolwise.core.jsonio import quote
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import CallContext, Principal, Result
from toolwise.decode.calls import result_message, specs, written
from toolwise.gate.gate import Gate
from toolwise.gate.turn import execute_all
from toolwise.tools.registry import Registry

_AGAIN = "Error (in_progress): this call was not made; make it again by itself, now that the other results are there."


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the gate's, and what happened in it after the conversation that the client knows: whole turns, and last
    the one whose calls wait."""

    id: str
    since: tuple[Message, ...] = ()


class Runs:
    """Which run a conversation belongs to, for those that wait and those that are tried again."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._most = limits.paused_runs
        self._lock = threading.Lock()
        self._paused: OrderedDict[str, Run] = OrderedDict()
        self._latest: OrderedDict[str, str] = OrderedDict()

    def begin(self, principal: Principal, request: ChatRequest, key: str, again: bool) -> tuple[Run, str]:
        """The run to go on with, and the name under which it may be put aside."""
        names = _names(principal, request.messages)
        with self._lock:
            for name in names:  # the longest conversation first
                if name in self._paused:
                    return self._paused.pop(name), name
            earlier = self._latest.get(names[0]) if again else None
            run = f"key-{key}" if key else earlier or secrets.token_hex(12)
            self._keep(self._latest, names[0], run)
        return Run(run), names[0]

    def pause(self, name: str, run: Run) -> None:
        with self._lock:
            self._keep(self._paused, name, run)

    def _keep(self, where: OrderedDict[str, Run] | OrderedDict[str, str], name: str, what: Run | str) -> None:
        where[name] = what  # type: ignore[assignment]
        where.move_to_end(name)
        if len(where) > self._most:
            where.popitem(last=False)


def _names(principal: Principal, messages: Sequence[Message]) -> list[str]:
    """One for each beginning of the conversation that a user's or a tool's message ends, the longest first."""
    digest = hashlib.sha256(principal.id.encode())
    names: list[str] = []
    for message in messages:
        calls = [[call.name, call.arguments] for call in message.calls]
        digest.update(jsonio.fingerprint([message.role.value, message.text, calls, message.call_id]).encode())
        if message.role in (Role.USER, Role.TOOL):
            names.insert(0, digest.hexdigest())
    return names or [digest.hexdigest()]


class ServerTools:
    """Equips a model with the registry's tools, in somebody's name. `decide` says where a person decides.

    `called` hears the code of every result.
    """

    def __init__(
        self,
        gate: Gate,
        registry: Registry,
        *,
        decide: str = "toolwise approvals",
        limits: Limits = LIMITS,
    ) -> None:
        self.gate = gate
        self.registry = registry
        self.decide = decide
        self.limits = limits
        self.called: Callable[[str], None] = lambda code: None
        self.runs = Runs(limits)
        self.specs = specs(registry.values())

    def equipped(self, model: ChatModel, principal: Principal, headers: Mapping[str, str]) -> ChatModel:
        """The model for one request of this principal. Raises BadInput for an Idempotency-Key that is none."""
        key = headers.get("idempotency-key", "")
        if len(key) > self.limits.id_chars - 4 or not key.isprintable():
            raise BadInput("An Idempotency-Key has few characters, and all of them print.")
        again = headers.get("x-stainless-retry-count", "0") not in ("", "0")
        return _Equipped(self, model, principal, key, again)


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
        run, name = tools.runs.begin(self._principal, request, self._key, self._again)
        context = CallContext(self._principal, run.id)
        asked = replace(request, tools=request.tools + tools.specs)
        since, usage, ids = list(run.since), TokenUsage(), _Ids()
        for message in run.since[:-1]:
            ids.of(message.calls)
        wrote = False
        for _ in range(tools.limits.turns_per_reply):
            if since and since[-1].role is Role.ASSISTANT:
                turn = ChatReply(calls=since.pop().calls, stop=StopReason.CALLS)  # that waited
            else:
                turn = yield from self._turn(replace(asked, messages=request.messages + tuple(since)), wrote)
                wrote = wrote or bool(turn.text)
            usage += turn.usage
            ours = [call for call in turn.calls if not call.name or call.name in tools.registry]
            if turn.stop is not StopReason.CALLS or not ours:
                yield from _given(turn, usage)
                return
            results = self._results(turn.calls, ids.of(turn.calls), context)
            waiting = [result for result in results if result is not None and result.code == ApprovalRequired.code]
            since.append(turn.message)
            if waiting:
                tools.runs.pause(name, Run(run.id, tuple(since)))
                yield TextDelta(("\n" if wrote else "") + self._told(waiting))
                yield ReplyEnded(StopReason.END, usage)
                return
            since += [_message(call, result) for call, result in zip(turn.calls, results, strict=True)]
            asked = replace(asked, choice=ToolChoice()) if asked.choice.forced else asked
        yield TextDelta(("\n" if wrote else "") + f"[Stopped after {tools.limits.turns_per_reply} turns with calls.]")
        yield ReplyEnded(StopReason.LENGTH, usage)

    def _turn(self, request: ChatRequest, wrote: bool) -> Generator[ChatDelta, None, ChatReply]:
        """A turn of the model, of which the text is given as it comes."""
        deltas: list[ChatDelta] = []
        for delta in self._model.reply(request):
            deltas.append(delta)
            if isinstance(delta, TextDelta):
                if wrote and len(deltas) == 1:
                    yield TextDelta("\n")
                yield delta
        return gathered(deltas)

    def _results(self, calls: Sequence[ChatCall], ids: list[str], context: CallContext) -> list[Result | None]:
        """Of each call of the server's, in order; None for one of the client's."""
        theirs = [bool(call.name) and call.name not in self._tools.registry for call in calls]
        ours = [written(call, id) for call, id, not_ours in zip(calls, ids, theirs, strict=True) if not not_ours]
        results = iter(execute_all(self._tools.gate, ours, context))
        found = [None if not_ours else next(results) for not_ours in theirs]
        for result in found:
            if result is not None:
                self._tools.called(result.code)
        return found

    def _told(self, waiting: Sequence[Result]) -> str:
        named = ", ".join(result.approval for result in waiting)
        return (
            f"[A person must confirm a call before it can run: approval {named}. "
            f"Decide with {self._tools.decide}, then ask again.]"
        )


class _Ids:
    """Names the calls of a run by what they are: one that is made again is known, whatever the model calls it."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def of(self, calls: Sequence[ChatCall]) -> list[str]:
        ids = []
        for call in calls:
            digest = jsonio.fingerprint([call.name, call.arguments])[:24]
            self._seen[digest] += 1
            ids.append(f"{digest}-{self._seen[digest]}")
        return ids


def _message(call: ChatCall, result: Result | None) -> Message:
    if result is None:
        return Message(Role.TOOL, _AGAIN, call_id=call.id, is_error=True)
    return result_message(call, result)


def _given(turn: ChatReply, usage: TokenUsage) -> Iterator[ChatDelta]:
    """The end of the reply, with the client's own calls; its text has been given already."""
    for index, call in enumerate(turn.calls):
        yield CallDelta(index, call.arguments, call.id, call.name)
    yield ReplyEnded(turn.stop, usage, tuple(index for index, call in enumerate(turn.calls) if not call.complete))
