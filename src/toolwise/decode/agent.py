"""The message loop: a question in, the final answer out, over any chat model, with every call through the gate.

    question -> model -> text and calls -> gate -> results -> model -> ... -> answer

One step is one turn of the model and its calls. Only a turn that waits for its calls has them executed; the calls of a
turn run together, and their results go back in the order of the calls, under the model's own ids. Towards the gate a
call is named by its turn and its place, so that whoever goes on from a kept state repeats nothing.

Covered: what models and servers do wrong. A call that is none, an unknown name, arguments that do not fit or were cut
off go back as results, and the turn's other calls run; more calls than were allowed, calls where none are and calls of
other tools than were named are refused; a call that must come and does not, and the same call with the same result
again and again, are told once and then end the run. Turns, tokens and the length of a turn are bounded. Every call has
exactly one result, also where somebody interrupts the run.

Not covered: a conversation that outgrows the model's context; what is true of the answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from toolwise.core import jsonio
from toolwise.core.chat import (
    CallDelta,
    ChatCall,
    ChatDelta,
    ChatModel,
    ChatReply,
    ChatRequest,
    Message,
    Role,
    StopReason,
    TextDelta,
    ToolChoice,
    gathered,
)
from toolwise.core.errors import (
    ApprovalRequired,
    BadInput,
    BudgetExceeded,
    Denied,
    LimitExceeded,
    MalformedCall,
    ToolwiseError,
    TruncatedCall,
    UnknownTool,
)
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import CallContext, Integrity, Tool
from toolwise.decode.calls import result_message, specs, written
from toolwise.decode.events import AgentEvent, CallEnded, CallStarted, CallWaits, Reason, RunEnded, Saved
from toolwise.decode.run_state import Outcome, Progress, RunState
from toolwise.gate.gate import Gate
from toolwise.gate.labels import Boundary, labels_of
from toolwise.gate.turn import Cancel, execute_each

_ENDS: dict[StopReason, Reason] = {
    StopReason.END: "end",
    StopReason.CALLS: "end",
    StopReason.STOP: "stop",
    StopReason.LENGTH: "length",
    StopReason.REFUSED: "refused",
}
_NO_CALL = frozenset({MalformedCall.code, TruncatedCall.code, UnknownTool.code})


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """How to run.

    `parallel` False lets one call of a turn run. `mark_untrusted` sets what others wrote apart in the results.
    `repeats`: so often may one call have one result; the model is told with the last one. `turns` and `tokens`
    (prompts and answers together) are for one question. The others are the model's own settings.
    """

    instructions: str = ""
    parallel: bool = True
    mark_untrusted: bool = True
    repeats: int = 3
    turns: int = LIMITS.turns_per_reply
    tokens: int = LIMITS.run_tokens
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Agent:
    """Answers with `model`, and runs the calls of `tools` through `gate`, which has to know them.

    Where they are too many to show, the model is a `Catalogued` one.
    """

    model: ChatModel
    gate: Gate
    tools: Sequence[Tool] = ()
    settings: AgentSettings = AgentSettings()
    limits: Limits = field(default=LIMITS, repr=False)

    def run(self, state: RunState, context: CallContext, cancel: Cancel | None = None) -> Iterator[AgentEvent]:
        """Go on with a run until it ends or pauses; the last event is a RunEnded.

        `context.run_id` is the state's. `cancel` may be called from another thread; closing the iterator ends the run
        too, and then it can go on from the last state that was kept, or be `interrupted`.

        Raises BadInput where the context is another's, and what the model raises: the state that was kept last is
        still good.
        """
        if (state.id, state.principal) != (context.run_id, context.principal.id):
            raise BadInput("The state is that of another run or of somebody else: give the context of its own.")
        cancel = Cancel() if cancel is None else cancel
        reason: Reason | None = None
        while reason is None:
            if state.pending:
                state = yield from self._execute(state, context, cancel)
                if cancel:
                    state, reason = state.interrupted(), "interrupted"
                elif state.waiting:
                    reason = "approval"
                else:
                    state, reason = self._judged(state)
            elif state.progress.turns >= self.settings.turns:
                reason = "turns"
            elif state.progress.tokens >= self.settings.tokens:
                reason = "tokens"
            else:
                reply = yield from self._reply(state, cancel)
                state, reason = self._interrupted(state, reply) if cancel else self._taken(state, reply)
            yield Saved(state)
        yield RunEnded(reason, state)

    # A turn of the model

    def _reply(self, state: RunState, cancel: Cancel) -> Generator[AgentEvent, None, ChatReply]:
        """The model's turn; one that outgrows every bound is cut off there."""
        deltas: list[ChatDelta] = []
        left = self.limits.chat_bytes
        turn: Any = self.model.reply(self._request(state))
        with closing(turn) if hasattr(turn, "close") else nullcontext():
            for delta in turn:
                left -= 1 + len(delta.text) if isinstance(delta, TextDelta) else 1
                left -= len(delta.arguments) if isinstance(delta, CallDelta) else 0
                if cancel or left < 0:
                    break
                deltas.append(delta)
                if isinstance(delta, TextDelta) and delta.text:
                    yield delta
        return gathered(deltas)

    def _request(self, state: RunState) -> ChatRequest:
        settings = self.settings
        told = [settings.instructions]
        if settings.mark_untrusted and any(labels_of(t).integrity is Integrity.UNTRUSTED for t in self.tools):
            told.append(Boundary(state.nonce).instruction)
        return ChatRequest(
            _instructed(state.messages, "\n\n".join(filter(None, told))),
            model=self.model.name,
            tools=specs(self.tools),
            choice=state.choice,
            parallel=settings.parallel,
            max_tokens=settings.max_tokens,
            temperature=settings.temperature,
            top_p=settings.top_p,
            seed=settings.seed,
            stop=settings.stop,
            stream=True,
        )

    def _taken(self, state: RunState, reply: ChatReply) -> tuple[RunState, Reason | None]:
        """The state with the turn in it, and why the run ends here, if it does."""
        before, tokens = state.progress, reply.usage.prompt + reply.usage.completion
        state = replace(
            state,
            turn=state.turn + 1,
            usage=state.usage + reply.usage,
            stop=reply.stop,
            progress=replace(before, turns=before.turns + 1, tokens=before.tokens + tokens),
        )
        message = Message(Role.ASSISTANT, reply.text, _named(reply.calls, state.turn))
        if message.text or message.calls:
            state = replace(state, messages=(*state.messages, message))
        if message.calls:
            return replace(state, pending=(Outcome(),) * len(message.calls)), None
        if state.choice.forced and _ENDS[reply.stop] == "end":
            return _missing(state)
        return state, _ENDS[reply.stop]

    def _interrupted(self, state: RunState, reply: ChatReply) -> tuple[RunState, Reason]:
        """What was said until then stays; calls that were being written do not."""
        said = (Message(Role.ASSISTANT, reply.text),) if reply.text else ()
        return replace(state, messages=(*state.messages, *said)), "interrupted"

    # Its calls

    def _execute(self, state: RunState, context: CallContext, cancel: Cancel) -> Generator[AgentEvent, None, RunState]:
        """The state with what became of the calls that had no result yet."""
        calls, outcomes, running = state.messages[-1].calls, list(state.pending), list[int]()
        ids = [f"{state.turn}.{number}" for number in range(len(calls))]
        boundary = Boundary(state.nonce) if self.settings.mark_untrusted else None
        for number, call in enumerate(calls):
            refusal = self._refusal(state, number)
            if outcomes[number].code:
                continue
            if refusal is None:
                running.append(number)
                yield CallStarted(ids[number], call)
            else:
                result = self.gate.refuse(written(call, ids[number]), context, refusal)
                outcomes[number] = Outcome(result.code, result.text)
                yield CallEnded(ids[number], call, result)
        asked = [written(calls[number], ids[number]) for number in running]
        with closing(execute_each(self.gate, asked, context, cancel)) as results:
            for place, result in results:
                number = running[place]
                if result.code == ApprovalRequired.code:
                    outcomes[number] = Outcome(approval=result.approval)
                    yield CallWaits(ids[number], calls[number], result.approval)
                else:
                    outcomes[number] = Outcome(result.code, result_message(calls[number], result, boundary).text)
                    yield CallEnded(ids[number], calls[number], result)
        return replace(state, pending=tuple(outcomes))

    def _refusal(self, state: RunState, number: int) -> ToolwiseError | None:
        """Why a call of the turn may not run, whatever the gate would say of it."""
        call, choice = state.messages[-1].calls[number], state.choice
        if state.stop is StopReason.LENGTH:
            return TruncatedCall("The turn was cut off, and none of its calls ran: write less, and make fewer calls.")
        if state.stop is not StopReason.CALLS:
            return MalformedCall("The turn ended without waiting for its calls, and none of them ran.")
        if not call.name:
            return None  # the gate says what it is
        if choice.mode == "none":
            return Denied("No tool may be called now: answer without one.")
        if choice.names and call.name not in choice.names:
            return Denied(f"Only {', '.join(choice.names)} may be called now.")
        if number and not self.settings.parallel:
            return LimitExceeded("One call a turn may be made, and this one did not run: make it again by itself.")
        return None

    def _judged(self, state: RunState) -> tuple[RunState, Reason | None]:
        """The state with all results of the turn among its messages, and why the run ends here, if it does."""
        outcomes, calls, progress = state.pending, state.messages[-1].calls, state.progress
        if state.stop is not StopReason.CALLS:
            first = state.stop is StopReason.LENGTH and "cut" not in progress.told
            state = replace(state, progress=replace(progress, told=(*progress.told, "cut"))) if first else state
            return state.settled(), None if first else _ENDS[state.stop]
        digests = [
            jsonio.fingerprint([call.name, call.arguments, one.code, one.text])[:24]
            for call, one in zip(calls, outcomes, strict=True)
        ]
        seen = Counter(dict(progress.seen))
        seen.update(set(digests))  # twice in one turn is one repetition: nothing was read in between
        again, told = max(seen[digest] for digest in digests), list(outcomes)
        for number, (digest, one) in enumerate(zip(digests, outcomes, strict=True)):
            if seen[digest] == self.settings.repeats:
                note = f"[This call has had this result {seen[digest]} times: do something else, or answer.]"
                told[number] = replace(one, text=f"{one.text}\n{note}")
        wanted = state.choice.names
        met = state.choice.forced and any(
            one.code not in _NO_CALL and (not wanted or call.name in wanted)
            for call, one in zip(calls, outcomes, strict=True)
        )
        state = replace(
            state,
            pending=tuple(told),
            choice=ToolChoice() if met else state.choice,
            progress=replace(progress, seen=tuple(sorted(seen.items()))),
        ).settled()
        if all(one.code == BudgetExceeded.code for one in outcomes):
            return state, "budget"
        return state, "no_progress" if again > self.settings.repeats else None


def _missing(state: RunState) -> tuple[RunState, Reason | None]:
    """A call was required, and the turn made none: that is told once."""
    if "call" in state.progress.told:
        return state, "missing_call"
    which = f"one of {', '.join(state.choice.names)}" if state.choice.names else "a tool"
    told = Message(Role.USER, f"A call is required now: call {which}.")
    progress: Progress = replace(state.progress, told=(*state.progress.told, "call"))
    return replace(state, messages=(*state.messages, told), progress=progress), None


def _named(calls: Sequence[ChatCall], turn: int) -> tuple[ChatCall, ...]:
    """The calls of a turn, each with an id of its own: the model's, where it is one."""
    ids: set[str] = set()
    named: list[ChatCall] = []
    for number, call in enumerate(calls):
        id, again = call.id, 0
        while not id or id in ids:
            id, again = f"call_{turn}_{number}" + "_" * again, again + 1
        ids.add(id)
        named.append(replace(call, id=id))
    return tuple(named)


def _instructed(messages: Sequence[Message], told: str) -> tuple[Message, ...]:
    """The conversation with this in its instructions."""
    if not told:
        return tuple(messages)
    if messages and messages[0].role is Role.SYSTEM:
        first = replace(messages[0], text=f"{messages[0].text}\n\n{told}")
        return (first, *messages[1:])
    return (Message(Role.SYSTEM, told), *messages)
