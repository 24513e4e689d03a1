"""What an agent's run tells while it goes on: the pieces of what the model says (`TextDelta`), and these events.

`generate` of `engine.py` tells events of its own. There a call stands in running text, as it was written and without an
id, and one follows the other; what its result becomes is text, too. Here calls have ids and arguments of their own, go
side by side, wait for people, and outlive the process. One word for both would have fields that each leaves empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from toolwise.core.chat import ChatCall, TextDelta
from toolwise.core.types import Result
from toolwise.decode.run_state import RunState

Reason = Literal[
    "end",  # the model answered
    "stop",  # a stop string
    "length",  # the answer was cut off
    "refused",  # the model declined
    "approval",  # a person has to confirm a call; the run goes on from its state
    "interrupted",  # whoever asked went away
    "missing_call",  # a call was required and never came
    "no_progress",  # the same call had the same result too often
    "budget",  # nothing that was asked for could be afforded
    "turns",  # too many of them
    "tokens",
]


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A call on its way to the gate, under the id that the gate knows it by."""

    id: str
    call: ChatCall


@dataclass(frozen=True, slots=True)
class CallEnded:
    """Its one result; also of a call that never started. Those of a turn come as they end."""

    id: str
    call: ChatCall
    result: Result


@dataclass(frozen=True, slots=True)
class CallWaits:
    """A call that a person has to confirm."""

    id: str
    call: ChatCall
    approval: str


@dataclass(frozen=True, slots=True)
class Saved:
    """What to keep: the run goes on from here, and what happens next begins when the next event is asked for."""

    state: RunState


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The last event."""

    reason: Reason
    state: RunState


AgentEvent = TextDelta | CallStarted | CallEnded | CallWaits | Saved | RunEnded
